"""Scores of 16-bit attention stay float32 between the two products: unscaled ones are large, and a softmax sees every
rounding of theirs. The judge is float64, of the inputs as the card holds them."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.sweeps import in_turn


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def held(*shape, dtype):
    return torch.randn(shape, dtype=dtype).to("spyre")


def attend(compiled, *args, **kwargs):
    run = torch.compile(F.scaled_dot_product_attention, fullgraph=True) if compiled else F.scaled_dot_product_attention
    torch.spyre.reset_metrics()
    out = run(*args, **kwargs)
    assert not torch.spyre.metrics()["fallbacks"]
    return out.cpu().double()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("width", [256, 512])
@pytest.mark.parametrize("keys", [64, 37, 130])
def test_unscaled_scores_keep_their_bits(keys, width, dtype, compiled):
    q, k, v = (
        held(1, 2, 40, width, dtype=dtype),
        held(1, 2, keys, width, dtype=dtype),
        held(1, 2, keys, 64, dtype=dtype),
    )
    found = attend(compiled, q, k, v, scale=1.0)
    expected = F.scaled_dot_product_attention(*(t.cpu().double() for t in (q, k, v)), scale=1.0)
    # A probability and a result have ten bits each; scores rounded to as many would be off by up to 9 %.
    torch.testing.assert_close(found, expected, rtol=0, atol=6e-3 * v.cpu().abs().max().item())


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("keys", [64, 37])
@pytest.mark.parametrize("kind", ["causal", "bool", "float16", "float32", "grouped", "minus_infinity"])
def test_masks(kind, keys, compiled):
    heads = 4 if kind == "grouped" else 2
    q, k, v = (held(2, h, n, 64, dtype=torch.float16) for h, n in ((heads, 24), (2, keys), (2, keys)))
    allowed = torch.rand(2, 1, 24, keys) < 0.7
    allowed[..., 0] = True
    masks = {
        "bool": allowed,
        "float16": torch.where(allowed, 0.0, torch.finfo(torch.float16).min).half(),
        "float32": torch.where(allowed, 0.0, torch.finfo(torch.float32).min),
        "minus_infinity": torch.where(allowed, 0.0, -math.inf).half(),
    }
    mask = masks.get(kind)
    options = dict(is_causal=kind == "causal", enable_gqa=kind == "grouped")
    found = attend(compiled, q, k, v, mask if mask is None else mask.to("spyre"), **options)
    if mask is not None and mask.dtype != torch.bool:
        mask = mask.double()
    expected = F.scaled_dot_product_attention(*(t.cpu().double() for t in (q, k, v)), mask, **options)
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("keys", [pytest.param(12, marks=pytest.mark.full), 64])
def test_a_query_that_sees_no_key(keys, dtype, compiled):
    """The first tokens of a text that is padded on the left: zeros, as in PyTorch, not the mean of all values."""
    q, k, v = (held(2, h, n, 64, dtype=dtype) for h, n in ((4, 12), (2, keys), (2, keys)))
    mask = torch.ones(12, keys, dtype=torch.bool).tril().expand(2, 1, 12, keys).clone()
    mask[0, :, :, :3] = False
    found = attend(compiled, q, k, v, attn_mask=mask.to("spyre"), enable_gqa=True)
    expected = F.scaled_dot_product_attention(*(t.cpu().double() for t in (q, k, v)), attn_mask=mask, enable_gqa=True)
    assert not found[0, :, :3].any()
    torch.testing.assert_close(found, expected, rtol=0, atol=6e-3 * v.cpu().abs().max().item())


def whole_row_masks(dtype, keys):
    """Masks that forbid row 3 whole, by name."""
    allowed = torch.rand(2, 1, 9, keys) < 0.7
    allowed[..., 0], allowed[:, :, 3] = True, False
    masks = {"bool": allowed, "of_keys": torch.zeros(1, 1, 1, keys, dtype=torch.bool)}
    for kind in {dtype, torch.float32}:
        masks[f"min_{kind}"] = torch.where(allowed, 0.0, torch.finfo(kind).min).to(kind)
        # In bfloat16 -inf is held as finfo.min is: a row of either is the mean of its keys (docs/numerics.md).
        if kind != torch.bfloat16:
            masks[f"inf_{kind}"] = torch.where(allowed, 0.0, -math.inf).to(kind)
    return masks


@pytest.mark.parametrize(
    "dtype, keys, compiled", in_turn([torch.float16, torch.bfloat16, torch.float32], [64, 37], [False, True]), ids=str
)
def test_rows_that_are_masked_whole_are_as_on_the_cpu(dtype, keys, compiled):
    q, k, v = (held(2, 4, n, 64, dtype=dtype) for n in (9, keys, keys))
    for name, mask in whole_row_masks(dtype, keys).items():
        torch._dynamo.reset()
        found = attend(compiled, q, k, v, mask.to("spyre"))
        expected = F.scaled_dot_product_attention(q.cpu(), k.cpu(), v.cpu(), mask).double()
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5 if dtype == torch.float32 else 1e-2, msg=name)
        if not name.startswith("min"):
            assert not found[:, :, 3].any(), name


def masks_of_scores():
    allowed = torch.rand(8, 8, generator=torch.Generator().manual_seed(3)) < 0.6
    row_masked_whole = allowed.clone()
    row_masked_whole[2] = False
    bias = torch.randn(1, 1, 8, 8, generator=torch.Generator().manual_seed(4))
    return {"causal": None, "bool": allowed | torch.eye(8, dtype=torch.bool), "row": row_masked_whole, "float": bias}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("kind", masks_of_scores())
@pytest.mark.parametrize("groups", [1, 2])
def test_gradients_of_gradients(groups, kind, dtype):
    """A penalty on gradients: it must not vanish, nor change the first ones."""
    mask = masks_of_scores()[kind]
    query, shared = (t.to(dtype) for t in (torch.randn(1, 2 * groups, 8, 16), torch.randn(1, 2, 8, 16)))

    def second(device, dtype):
        q, k = (t.to(device, dtype).requires_grad_() for t in (query, shared))
        given = None if mask is None else mask.to(device, dtype if kind == "float" else torch.bool)
        wanted = (q, k, given.requires_grad_()) if kind == "float" else (q, k)
        out = F.scaled_dot_product_attention(q, k, k, given, is_causal=mask is None, enable_gqa=groups > 1)
        first = torch.autograd.grad(out.square().sum(), wanted, create_graph=True)
        return first + torch.autograd.grad(sum(g.float().square().sum() for g in first), wanted)

    with sdpa_kernel(SDPBackend.MATH):  # of the others only the first gradient has a rule
        expected = second("cpu", torch.float32)
    for found, wanted in zip(second("spyre", dtype), expected, strict=True):
        # 16-bit steps round to 2**-10, and second gradients add up a dozen of them.
        atol = 1e-3 if dtype == torch.float32 else 2e-2 * float(wanted.detach().abs().max())
        torch.testing.assert_close(found.detach().cpu().float(), wanted.detach(), rtol=1e-3, atol=atol)
