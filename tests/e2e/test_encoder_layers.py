"""PyTorch's transformer modules in eval mode, whose fused operators are taken apart for the card."""

import pytest
import torch

TOLERANCE = 0.02  # fp16 through two layers, against float32


def on_card(value):
    return (value.half() if value.is_floating_point() else value).to("spyre")


def same_as_the_cpu(module, run, compiled: bool) -> None:
    torch.manual_seed(0)
    with torch.no_grad():
        expected = run(module, lambda x: x)
        card = module.half().to("spyre")
        torch.spyre.reset_metrics()
        found = run(torch.compile(card) if compiled else card, on_card).cpu().float()
    assert (found - expected).abs().max() < TOLERANCE
    assert torch.spyre.metrics()["fallbacks"] == {}


PAD = torch.zeros(2, 10, dtype=torch.bool)
PAD[1, 7:] = True
CAUSAL = torch.triu(torch.ones(10, 10, dtype=torch.bool), 1)
MASKS = {"none": {}, "padding": {"src_key_padding_mask": PAD}, "causal": {"src_mask": CAUSAL}}
MASKS["both"] = MASKS["padding"] | MASKS["causal"]


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("heads, width", [(4, 64), (2, 128)])
@pytest.mark.parametrize("norm_first, activation", [(False, "relu"), (True, "gelu")])
def test_encoder_layer(masks, heads, width, norm_first, activation):
    x = torch.randn(2, 10, width)
    layer = torch.nn.TransformerEncoderLayer(
        width, heads, 2 * width, batch_first=True, norm_first=norm_first, activation=activation
    )
    given = MASKS[masks]
    same_as_the_cpu(layer.eval(), lambda m, to: m(to(x), **{k: to(v) for k, v in given.items()})[:, :7], False)


@pytest.mark.parametrize("masks", [pytest.param("none", marks=pytest.mark.full), "both"])
def test_encoder_layer_compiled(masks):
    x = torch.randn(2, 10, 64)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval()
    given = MASKS[masks]
    same_as_the_cpu(layer, lambda m, to: m(to(x), **{k: to(v) for k, v in given.items()})[:, :7], True)


def test_encoder_packs_no_padded_texts():
    x = torch.randn(2, 10, 64)
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2).eval()
    same_as_the_cpu(encoder, lambda m, to: m(to(x), src_key_padding_mask=to(PAD))[:, :7], False)


@pytest.mark.parametrize("weights", [False, True])
def test_multi_head_attention(weights):
    x = torch.randn(2, 10, 64)

    def run(module, to):
        given = to(x)
        return module(given, given, given, need_weights=weights)[int(weights)]

    same_as_the_cpu(torch.nn.MultiheadAttention(64, 4, batch_first=True).eval(), run, False)
