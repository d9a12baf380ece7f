"""Small decoders of every kind of mask, rotation and routing, run as they are: nothing leaves the card.

``scripts/model_sweep.py`` runs every architecture, in every dtype and mode.
"""

import pytest

from tests.models.run import run

pytestmark = pytest.mark.usefixtures("on_the_card_only")


# What rounding leaves of two layers, relative to the result. float32 products have fp32's own error.
# GPT-J adds 16-bit masks to its scores: rows of padding see all keys, by scores that float32 masks absorb.
ALLOWED = {"float16": 4e-3, "bfloat16": 2e-2, "float32": 2e-6}


@pytest.mark.parametrize("dtype", ALLOWED)
@pytest.mark.parametrize("name", ["llama", "phi", "gptj", "bloom", "mixtral"])
def test_forward(name, dtype):
    found = run(name, "forward", "eager", dtype)
    assert not found["fallbacks"] and not found["interpreted"]
    assert found["error"]["result"] < ALLOWED[dtype] * (2 if name == "gptj" else 1)


@pytest.mark.parametrize("name", ["llama", "gpt2", "granitemoe"])
def test_generate(name):
    found = run(name, "generate", "eager", "float16")
    assert not found["fallbacks"] and not found["interpreted"]
    assert found["same_tokens"] and found["error"]["logits"] < ALLOWED["float16"]
