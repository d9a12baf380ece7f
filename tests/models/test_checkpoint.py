"""A checkpoint folder on the card, judged by float32 on the CPU that reads the same files.

    SPYRE_CHECKPOINT=path/to/granite-3.3-8b-instruct pytest tests/models/test_checkpoint.py

The folder is one of Hugging Face: config.json, safetensors in one file or several, perhaps a tokenizer. It needs the
memory of its weights and a little more. How far the logits may be off is data: tolerances.json.
"""

import json
import os
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoTokenizer, GraniteConfig, LlamaConfig, Qwen2Config

from tests.models import large

pytestmark = pytest.mark.usefixtures("on_the_card_only")
FOLDER = os.environ.get("SPYRE_CHECKPOINT")
PROMPT = "The emulated card reads what a real one would be given, and so"


def prompt_for(folder: Path, config) -> torch.Tensor:
    """A sentence, where the folder says how to read it; else tokens that mean nothing."""
    if any((folder / name).exists() for name in ("tokenizer.json", "tokenizer_config.json")):
        return AutoTokenizer.from_pretrained(folder)(PROMPT, return_tensors="pt").input_ids
    return torch.randint(1, config.vocab_size, (1, 12), generator=torch.Generator().manual_seed(0))


def check(folder: Path, new: int = 4) -> None:
    config = AutoConfig.from_pretrained(folder)
    dtype = config.dtype if config.dtype in (torch.float16, torch.bfloat16) else torch.float16
    weights = large.from_folder(folder)
    model = large.on_card(config, dtype, weights)
    model.forward = torch.compile(model.forward)
    torch.spyre.reset_metrics()
    text = large.generate(model, prompt_for(folder, config), new, "static")
    assert not torch.spyre.metrics()["interpreted_ops"]
    expected = large.judge(config, weights, text.tokens[:, :-1], new)
    error, chosen = large.compare(text, expected.logits)
    allowed = large.tolerance(config, dtype)
    assert error < allowed, f"{config.model_type}: logits are off by {error:.4f}, allowed is {allowed}"
    assert chosen, "the card chose a token that the judge would not have chosen"


@pytest.mark.skipif(FOLDER is None, reason="SPYRE_CHECKPOINT names no checkpoint folder")
def test_the_folder_that_was_given():
    check(Path(FOLDER))


SIZES = {
    "vocab_size": 256, "hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "max_position_embeddings": 64, "eos_token_id": None, "bos_token_id": None,
    "pad_token_id": 0,
}  # fmt: skip


@pytest.mark.parametrize("config, dtype", [
    (GraniteConfig(**SIZES, tie_word_embeddings=True, logits_scaling=4.0), torch.bfloat16),
    (LlamaConfig(**SIZES, tie_word_embeddings=False), torch.float16),
    pytest.param(Qwen2Config(**SIZES, tie_word_embeddings=False), torch.float16, marks=pytest.mark.full),
], ids=["granite", "llama", "qwen2"])  # fmt: skip
def test_a_folder_of_several_files(tmp_path, config, dtype):
    config.dtype = dtype
    large.write_folder(tmp_path, config, large.seeded(dtype), shard_bytes=100_000)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert len(set(index["weight_map"].values())) > 1
    check(tmp_path)


def test_weights_that_are_not_the_files_are_noticed(tmp_path):
    """The judge reads what the card was given: with other weights it disagrees."""
    config = LlamaConfig(**SIZES, tie_word_embeddings=False)
    model = large.on_card(config, torch.float16, large.seeded(torch.float16, seed=1))
    text = large.generate(model, torch.arange(1, 9)[None], 1, "static")
    expected = large.judge(config, large.seeded(torch.float16, seed=2), text.tokens[:, :-1], 1)
    assert large.compare(text, expected.logits)[0] > 0.5
