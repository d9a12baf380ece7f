"""Models that are more than a decoder: an encoder before it, images, speech, both beside text; and training them.

Nothing leaves the card. ``scripts/model_sweep.py`` runs every architecture, in every dtype and mode.
"""

import pytest

from tests.models.run import STEPS, run

pytestmark = pytest.mark.usefixtures("on_the_card_only")

full = pytest.mark.full
WAYS = ["eager", pytest.param("compiled", marks=full)]
# What rounding leaves of two layers in float16, relative to the result. A classifier's few logits, and cosines of
# random texts and images, are small differences of larger numbers.
FORWARD = {"vit": 8e-3, "clip": 8e-3, "siglip": 4e-3, "llava": 4e-3, "whisper": 4e-3, "t5": 4e-3}


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("name", FORWARD)
def test_forward(name, how):
    found = run(name, "forward", how, "float16")
    assert not found["fallbacks"] and not found["interpreted"]
    assert found["error"]["result"] < FORWARD[name]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("name", ["t5", "whisper", "llava"])
def test_generate(name, how):
    found = run(name, "generate", how, "float16")
    assert not found["fallbacks"] and not found["interpreted"]
    assert found["same_tokens"] and found["error"]["logits"] < FORWARD[name]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("name", ["llama", *[pytest.param(other, marks=full) for other in ("bert", "vit", "t5")]])
def test_twenty_steps_follow_the_cpu(name, how):
    """In float32, whose products have fp32's own error, the losses of AdamW agree to six digits."""
    found = run(name, "loop", how, "float32")
    assert not found["fallbacks"] and not found["interpreted"]
    assert len(found["losses"]) == STEPS and found["losses"][-1] < 0.8 * found["losses"][0]
    assert found["error"]["losses"] < 2e-6
