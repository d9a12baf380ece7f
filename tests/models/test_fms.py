"""The first program of Torch-Spyre's own documentation, word for word, with IBM's Foundation Model Stack."""

import pytest
import torch

fms = pytest.importorskip("fms.models")
from fms.models.granite import Granite, GraniteConfig  # noqa: E402

# Granite 3.3's shape in small: grouped heads, scaled embeddings, residuals and logits.
SMALL = GraniteConfig(
    src_vocab_size=512, emb_dim=256, nheads=4, head_dim=64, kvheads=2, nlayers=2, hidden_grow_factor=3.0, pad_id=0,
    max_expected_seq_len=128, rope_theta=1e7, tie_heads=False, embedding_multiplier=12.0, logits_scaling=16.0,
    residual_multiplier=0.22, attention_multiplier=1 / 64,
)  # fmt: skip
fms.register_model("granite", "3.3-8b-instruct", lambda **kwargs: Granite(SMALL, **kwargs))


def distance(found: torch.Tensor, expected: torch.Tensor) -> float:
    found = found.detach().float().cpu()
    return float((found - expected).square().mean().sqrt() / expected.square().mean().sqrt())


def reference(model, input_ids):
    """The same weights in float32 on the CPU."""
    judge = fms.get_model("granite", "3.3-8b-instruct")
    judge.load_state_dict({name: tensor.float().cpu() for name, tensor in model.state_dict().items()})
    with torch.no_grad():
        return judge(input_ids)


def test_the_first_snippet(on_the_card_only):
    input_ids = torch.randint(1, 512, (1, 24), generator=torch.Generator().manual_seed(0))
    torch.spyre.reset_metrics()

    get_model = fms.get_model
    model = get_model("granite", "3.3-8b-instruct", device_type="spyre")
    compiled = torch.compile(model, backend="spyre")
    output = compiled(input_ids.to("spyre"))

    torch.spyre.synchronize()
    metrics = torch.spyre.metrics()
    assert not metrics["fallbacks"] and not metrics["interpreted_ops"]
    assert distance(output, reference(model, input_ids)) < 2e-6


def test_sixteen_bits(on_the_card_only):
    input_ids = torch.randint(1, 512, (1, 24), generator=torch.Generator().manual_seed(0))
    model = fms.get_model("granite", "3.3-8b-instruct", device_type="spyre", data_type="float16")
    torch.spyre.reset_metrics()
    output = model(input_ids.to("spyre"))
    assert not torch.spyre.metrics()["interpreted_ops"]
    assert distance(output, reference(model, input_ids)) < 4e-3
