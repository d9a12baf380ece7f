"""Eager operators run on the card: what they compute, and that no CPU fallback hides behind it.

The judge is PyTorch on the CPU in float32, from inputs that went through the card's number format once. A result in
16 bits may be a few roundings to 9 bits of fraction away, one in float32 a few to 23 bits; each tolerance says how
many.
"""

import contextlib
import math
import os
import subprocess
import sys

import pytest
import torch

HALF = dict(rtol=4e-3, atol=2e-3)  # up to four roundings of 2^-10, and results near zero
SINGLE = dict(rtol=2e-5, atol=1e-5)  # the card's exp, log and sin in float32 are a few last bits off

UNARY = {
    "abs": torch.abs,
    "neg": torch.neg,
    "relu": torch.relu,
    "sign": torch.sign,
    "ceil": torch.ceil,
    "floor": torch.floor,
    "round": torch.round,
    "trunc": torch.trunc,
    "cos": torch.cos,
    "sin": torch.sin,
    "erf": torch.erf,
    "exp": torch.exp,
    "exp2": torch.exp2,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": torch.nn.functional.gelu,
    "silu": torch.nn.functional.silu,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "leaky_relu": torch.nn.functional.leaky_relu,
    "hardtanh": torch.nn.functional.hardtanh,
    "logical_not": torch.logical_not,
    "square": torch.square,
    "cube": lambda x: x**3,
    "clamp": lambda x: x.clamp(-0.5, 0.75),
    "clamp_min": lambda x: x.clamp(min=0.25),
    "add_number": lambda x: x + 1.5,
    "alpha": lambda x: torch.sub(x, x * 0.5, alpha=2),
    "reverse": lambda x: 2 - x,
    "halve": lambda x: x / 2,
    "compare": lambda x: x > 0.25,
    "masked_fill": lambda x: x.masked_fill(x > 0, -1.0),
}
POSITIVE = {
    "log": torch.log,
    "log2": torch.log2,
    "log10": torch.log10,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "reciprocal": torch.reciprocal,
    "power": lambda x: x**1.5,
    "inverse_square": lambda x: x**-2,
}
BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor,
    "where": lambda x, y: torch.where(x > y, x, y),
    "lerp": lambda x, y: torch.lerp(x, y, 0.25),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=0.5),
    "clamp_tensor": lambda x, y: torch.clamp(x, y - 1, y),
}

# A form makes a view of a fresh tensor; `flip` says that the two operands of a binary operator differ.
FORMS = {
    "number": lambda make: make(()),
    "short_row": lambda make: make((7,)),
    "row": lambda make: make((128,)),
    "aligned": lambda make: make((4, 128)),
    "unaligned": lambda make: make((3, 100)),
    "3d": lambda make: make((2, 3, 70)),
    "4d": lambda make: make((2, 3, 4, 64)),
    "5d": lambda make: make((2, 1, 3, 2, 65)),
    "transposed": lambda make: make((100, 5)).t(),
    "permuted": lambda make: make((2, 70, 3)).permute(2, 0, 1),
    "rows": lambda make: make((9, 100))[2:7],
    "every_second_row": lambda make: make((8, 64))[::2],
    "sticks": lambda make: make((4, 256))[:, 64:192],
    "expanded": lambda make: make((1, 96)).expand(5, 96),
}


pytestmark = pytest.mark.usefixtures("on_the_card_only")


@contextlib.contextmanager
def fallbacks_allowed():
    torch.spyre.set_fallback_mode("silent")
    yield
    torch.spyre.set_fallback_mode("error")


def maker(dtype, seed=0, low=-2.0, high=2.0):
    generator = torch.Generator().manual_seed(seed)

    def make(shape):
        values = torch.rand(shape, generator=generator) * (high - low) + low
        if dtype == torch.bool:
            return values > 0
        return (values * 5).to(dtype) if dtype in (torch.int32, torch.int64) else values.to(dtype)

    return make


def pair(form, dtype, **options):
    """A view on the card, and the same numbers on the CPU in float32."""
    make = maker(dtype, **options)
    held = {}

    def on_card(shape):
        held["base"] = make(shape).to("spyre")
        return held["base"]

    card = FORMS[form](on_card)
    return card, card.cpu().float()


def close(card, host, dtype=torch.float16):
    assert card.device.type == "spyre"
    have = card.cpu()
    assert have.shape == host.shape
    if host.dtype in (torch.bool, torch.int64):
        assert have.dtype == host.dtype
        assert torch.equal(have, host)
        return
    torch.testing.assert_close(have.float(), host, equal_nan=True, **(SINGLE if dtype == torch.float32 else HALF))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("op", UNARY)
def test_one_tensor(op, form):
    card, host = pair(form, torch.float16)
    close(UNARY[op](card), UNARY[op](host))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("op", POSITIVE)
def test_one_positive_tensor(op, form):
    card, host = pair(form, torch.float16, low=0.25, high=4.0)
    close(POSITIVE[op](card), POSITIVE[op](host))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("op", BINARY)
def test_two_tensors_alike(op, form):
    x, hx = pair(form, torch.float16, seed=1)
    y, hy = pair(form, torch.float16, seed=2, low=0.5, high=3.0)
    close(BINARY[op](x, y), BINARY[op](hx, hy))


BROADCASTS = {
    "row": ((4, 100), (100,)),
    "column": ((4, 100), (4, 1)),
    "number": ((4, 100), ()),
    "outer": ((5, 1), (1, 70)),
    "batch": ((2, 3, 64), (3, 64)),
    "middle": ((2, 3, 65), (2, 1, 65)),
    "one_element": ((3, 5), (1, 1)),
}


@pytest.mark.parametrize("shapes", BROADCASTS)
@pytest.mark.parametrize("op", BINARY)
def test_broadcasting(op, shapes):
    make_x, make_y = maker(torch.float16, 3), maker(torch.float16, 4, 0.5, 3.0)
    x, y = (make(shape).to("spyre") for make, shape in zip((make_x, make_y), BROADCASTS[shapes], strict=True))
    close(BINARY[op](x, y), BINARY[op](x.cpu().float(), y.cpu().float()))


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "maximum", "lt", "where"])
def test_operands_in_different_layouts(op):
    x = maker(torch.float16, 5)((64, 100)).to("spyre")
    y = maker(torch.float16, 6, 0.5, 3.0)((100, 64)).to("spyre").t()
    close(BINARY[op](x, y), BINARY[op](x.cpu().float(), y.cpu().float()))


@pytest.mark.parametrize("form", ["number", "row", "aligned", "unaligned", "3d", "rows", "expanded"])
@pytest.mark.parametrize("op", [*UNARY, *POSITIVE])
def test_float32(op, form):
    card, host = pair(form, torch.float32, low=0.25, high=2.0)
    function = {**UNARY, **POSITIVE}[op]
    close(function(card), function(host), torch.float32)


@pytest.mark.parametrize("op", BINARY)
def test_two_float32_tensors(op):
    x, hx = pair("unaligned", torch.float32, seed=1)
    y, hy = pair("unaligned", torch.float32, seed=2, low=0.5, high=3.0)
    close(BINARY[op](x, y), BINARY[op](hx, hy), torch.float32)


# ---- dtypes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge", "logical_and"])
def test_integers_are_exact(op):
    x = torch.tensor([5, -7, 2**24 + 1, -(2**30), 0, 12]).to("spyre")
    y = torch.tensor([5, 3, 2**24, 1, 0, -3]).to("spyre")
    result = BINARY[op](x, y)
    expected = BINARY[op](x.cpu().int(), y.cpu().int())
    assert torch.equal(result.cpu().to(expected.dtype), expected)
    assert result.dtype == BINARY[op](x.cpu(), y.cpu()).dtype


@pytest.mark.parametrize("op", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_integers_are_compared_exactly_wherever_they_are(op):
    # Neighbours that one float stands for, and a difference that 32 bits do not hold.
    x = torch.tensor([2**24 + 1, 2**31 - 1, -(2**31), 2_000_000_000, 2**30, 5]).to("spyre")
    y = torch.tensor([2**24, 2**31 - 2, 2**31 - 1, -2_000_000_000, 2**30, 6]).to("spyre")
    for one, other in ((x, y), (y, x), (x, x)):
        assert torch.equal(BINARY[op](one, other).cpu(), BINARY[op](one.cpu(), other.cpu()))


@pytest.mark.parametrize("op", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("number", [0, 2**24 - 1, 2**24, -(2**24), 2**24 + 1, -(2**31)])
def test_integers_are_compared_exactly_with_numbers(op, number):
    x = torch.tensor([0, 1, -1, 2**24 - 2, 2**24 - 1, 2**24, 2**24 + 1, -(2**24), -(2**24) - 1, 2**31 - 1]).to("spyre")
    assert torch.equal(BINARY[op](x, number).cpu(), BINARY[op](x.cpu(), number))


CHOICES = {
    "abs": lambda x, y: x.abs(),
    "relu": lambda x, y: x.relu(),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "clamp": lambda x, y: x.clamp(-(2**24) - 1, 2**24 + 1),
    "clamp_max": lambda x, y: x.clamp(max=2**24 - 1),
    "clamp_tensor": lambda x, y: x.clamp(min=y),
    "hardtanh": lambda x, y: torch.nn.functional.hardtanh(x, -2, 2),
    "where": lambda x, y: torch.where(x > y, x, y),
    "masked_fill": lambda x, y: x.masked_fill(y == 2**24, 7),
    "tril": lambda x, y: x.tril(1),
    "triu": lambda x, y: x.triu(),
}


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("op", CHOICES)
def test_choices_between_integers_are_exact(op, dtype):
    # Whole sticks: a mask of integers is in the order of fp16 where rows end inside one (ADR 0018).
    ones = torch.tensor([2**24 + 1, 2**31 - 1, -(2**31) + 1, 2_000_000_000, -(2**24) - 3, 5, 0, -7], dtype=dtype)
    others = torch.tensor([2**24, 2**31 - 2, 2**31 - 1, -2_000_000_000, -(2**24) - 2, 6, 0, 7], dtype=dtype)
    x, y = ones.repeat(2, 8).to("spyre"), others.repeat(2, 8).to("spyre")
    result = CHOICES[op](x, y)
    expected = CHOICES[op](x.cpu(), y.cpu())
    assert result.dtype == expected.dtype and torch.equal(result.cpu(), expected)


WHOLE = {
    "square": torch.square,
    "cube": lambda x: x**3,
    "floor_divide": lambda x: x // 3,
    "floor_divide_tensor": lambda x: x // (x.abs() + 1),
    "remainder": lambda x: x % 7,
    "fmod": lambda x: torch.fmod(x, -4),
    "div_trunc": lambda x: torch.div(x, 3, rounding_mode="trunc"),
    "sum": lambda x: x.sum(-1),
    "sum_first": lambda x: x.sum(0, keepdim=True),
    "sum_all": torch.sum,
    "prod": lambda x: (x % 3 - 1).prod(0),
    "amax": lambda x: x.amax(-1),
    "amin_first": lambda x: x.amin(0),
    "aminmax": lambda x: torch.aminmax(x, dim=-1),
    "argmax": lambda x: x.argmax(-1),
    "argmin_first": lambda x: x.argmin(0),
    "max": torch.max,
    "max_with_position": lambda x: torch.max(x, -1),
    "min_with_position": lambda x: torch.min(x, 0),
    "count_nonzero": lambda x: torch.count_nonzero(x, -1),
}


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("op", WHOLE)
def test_integers_are_exact_below_2_to_the_24(op, dtype):
    values = torch.randint(-100, 100, (6, 100), dtype=dtype, generator=torch.Generator().manual_seed(3))
    result, expected = WHOLE[op](values.to("spyre")), WHOLE[op](values)
    for one, other in zip(
        torch.utils._pytree.tree_leaves(result), torch.utils._pytree.tree_leaves(expected), strict=True
    ):
        assert one.dtype == other.dtype and torch.equal(one.cpu(), other)


def test_integers_divided_by_zero_raise_what_pytorch_raises():
    x = torch.tensor([4, 5]).to("spyre")
    with fallbacks_allowed(), pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x // 0


def test_integers_beyond_the_card_are_left_to_the_cpu():
    x = torch.tensor([2**24 + 1, -(2**30) - 1, 5]).to("spyre")
    with fallbacks_allowed():
        for op in (lambda t: t < 2**40, lambda t: t > -(2**40)):
            assert torch.equal(op(x).cpu(), op(x.cpu()))
        with pytest.raises(RuntimeError, match="does not fit the card's 32-bit integers"):
            x + 2**40


def test_the_logarithm_of_every_float32():
    values = torch.tensor([0.0, 1e-38, 1e-12, 0.5, 1.0, 3.0, 1e10, 3.4e38, math.inf, -1.0, math.nan])
    torch.testing.assert_close(values.to("spyre").log().cpu(), values.log(), rtol=2e-6, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_extremes_beyond_what_padding_counts_as(sign):
    x = (sign * (1e5 + 1e5 * torch.rand((3, 70), generator=torch.Generator().manual_seed(0)))).to("spyre")
    for op in (torch.amax, torch.amin, torch.argmax, torch.argmin):
        assert torch.equal(op(x, 1).cpu(), op(x.cpu(), 1)), op


def test_positions_in_masked_rows_are_positions():
    x = torch.full((2, 70), -math.inf, dtype=torch.float16).to("spyre")
    assert torch.equal(x.argmax(1).cpu(), torch.zeros(2, dtype=torch.int64))


def test_positions_of_what_is_not_a_number():
    x = torch.tensor([[1.0, math.nan, 3.0, math.nan], [4.0, 2.0, 5.0, 1.0]]).to("spyre")
    for op in (torch.argmax, torch.argmin):
        assert torch.equal(op(x, 1).cpu(), op(x.cpu(), 1)), op


def test_infinities_and_nans_are_told_from_numbers():
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        x = torch.tensor([1.0, math.nan, math.inf, -math.inf, 0.0], dtype=dtype)
        for op in (torch.isnan, torch.isinf, lambda t: t != t, lambda t: t == t):
            assert torch.equal(op(x.to("spyre")).cpu(), op(x)), dtype


def test_truth_values():
    x, _ = pair("unaligned", torch.bool, seed=1)
    y, _ = pair("unaligned", torch.bool, seed=2)
    for function in (torch.logical_and, torch.bitwise_or, torch.bitwise_xor, torch.add, torch.mul, torch.eq):
        assert torch.equal(function(x, y).cpu(), function(x.cpu(), y.cpu())), function
    assert torch.equal((~x).cpu(), ~x.cpu())


PROMOTIONS = [
    (torch.float16, torch.float32),
    (torch.float16, torch.bool),
    (torch.float16, torch.int64),
    (torch.float32, torch.int32),
    (torch.int64, torch.bool),
    (torch.bfloat16, torch.float16),
]


@pytest.mark.parametrize("a,b", PROMOTIONS, ids=lambda t: str(t)[6:])
def test_promotion_is_pytorchs(a, b):
    x, y = maker(a, 1)((3, 70)).to("spyre"), maker(b, 2)((3, 70)).to("spyre")
    for left, right in ((x, y), (y, x)):
        expected = left.cpu() * right.cpu()
        result = left * right
        assert result.dtype == expected.dtype
        torch.testing.assert_close(result.cpu().float(), expected.float(), **HALF)


@pytest.mark.parametrize("to", [torch.float16, torch.float32, torch.int64, torch.bool, torch.bfloat16])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64, torch.bool])
def test_casts(dtype, to):
    x = maker(dtype, 1)((3, 70)).to("spyre")
    # A number that becomes a half is rounded to 9 bits of fraction at once, not to 10 first.
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 1e-2}.get(to, 0)
    torch.testing.assert_close(x.to(to).cpu(), x.cpu().to(to), rtol=tolerance, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_powers_of_tensors(dtype):
    base = torch.tensor([2.0, 0.5, -2.0, -2.0, -0.5, 0.0, 0.0, 3.0, -3.0, 1.0], dtype=dtype).repeat(2, 7)
    exponent = torch.tensor([3.0, 1.5, 2.0, 3.0, -1.0, 0.0, 2.0, -2.0, 0.0, 9.0], dtype=dtype).repeat(2, 7)
    for x, y in ((base, exponent), (base.abs() + 0.1, exponent - 0.25)):
        result = torch.pow(x.to("spyre"), y.to("spyre")).cpu().float()
        # By way of the logarithm, in 16 bits: an exponent of 3 times log 3 is 2 roundings of 2^-9, before exp.
        tolerance = dict(rtol=2e-2, atol=2e-2) if dtype == torch.float16 else SINGLE
        torch.testing.assert_close(result, torch.pow(x.float(), y.float()), **tolerance)
    broken = torch.pow(torch.tensor([-2.0, 0.0]).to("spyre"), torch.tensor([0.5, -1.0]).to("spyre")).cpu()
    assert broken.isnan().tolist() == [True, False] and broken[1] == math.inf


# A call sees one tensor at a time: what an earlier one left in the order of 32 bits, or a part of a tensor.
CHAINS = {
    "and": lambda x: (x > 0) & (x < 1),
    "not": lambda x: ~(x > 0),
    "any": lambda x: (x > 1.5).any(-1),
    "all": lambda x: (x > -1.5).all(-1),
    "all_of_all": lambda x: (x > -5).all(),
    "isfinite": torch.isfinite,
    "of_halves": lambda x: x.half().float() * 2 + 1,
    "of_truth": lambda x: (x.half() > 0).float() * 2,
    "topk": lambda x: x.topk(3)[1],
}


@pytest.mark.parametrize("shape", [(8,), (3, 70), (2, 4, 128)], ids=str)
@pytest.mark.parametrize("op", CHAINS)
def test_what_comes_in_the_order_of_32_bits(op, shape):
    values = maker(torch.float32, 4)(shape)
    close(CHAINS[op](values.to("spyre")), CHAINS[op](values), torch.float32 if "of_h" not in op else torch.float16)


PARTS = {
    "roll": lambda x: x.roll(3, -1),
    "cat": lambda x: torch.cat([x[:, 3:], x[:, :3]], 1),
    "columns": lambda x: x[:, 5:] + 1,
    "sticks": lambda x: x[:, 64:] + 1,
    "rows": lambda x: x[1:3] + 1,
    "row": lambda x: x[1] + 1,
    "chunk": lambda x: x.chunk(2, -1)[1] + 1,
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bool], ids=str)
@pytest.mark.parametrize("op", PARTS)
def test_parts_of_a_tensor(op, dtype):
    values = maker(dtype, 5)((4, 100))
    result, expected = PARTS[op](values.to("spyre")), PARTS[op](values)
    assert result.device.type == "spyre" and result.dtype == expected.dtype
    torch.testing.assert_close(result.cpu(), expected, **HALF)


# ---- in place and out= -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["aligned", "unaligned", "transposed", "rows", "3d", "number"])
def test_in_place_writes_the_tensor_itself(form):
    x, host = pair(form, torch.float16)
    result = x.mul_(0.5).add_(1).relu_()
    assert result is x
    close(x, host.mul(0.5).add(1).relu())


def test_in_place_leaves_the_rest_of_the_storage_alone():
    base = maker(torch.float16)((6, 64)).to("spyre")
    expected = base.cpu()
    base[2:4].add_(1)
    expected[2:4] += 1
    torch.testing.assert_close(base.cpu(), expected, rtol=2e-3, atol=2e-3)


def test_an_operator_may_write_over_what_it_reads():
    x = maker(torch.float16)((4, 64)).to("spyre")
    host = x.cpu().float()
    torch.mul(x, x, out=x)
    close(x, host * host)


@pytest.mark.parametrize("shape", [(3, 70), (0,), (210,)])
def test_out_gets_the_size_of_the_result(shape):
    x = maker(torch.float16)((3, 70)).to("spyre")
    out = torch.zeros(shape, dtype=torch.float16, device="spyre")
    torch.exp(x, out=out)
    close(out, x.cpu().float().exp())


def test_a_reduction_writes_into_out():
    x = maker(torch.float16)((3, 70)).to("spyre")
    out = torch.zeros(3, dtype=torch.float16, device="spyre")
    torch.sum(x, 1, out=out)
    close(out, x.cpu().float().sum(1))


# ---- reductions --------------------------------------------------------------------------------------------------

REDUCTIONS = {
    "sum": torch.sum,
    "mean": torch.mean,
    "amax": torch.amax,
    "amin": torch.amin,
    "any": lambda x, dim, keepdim=False: torch.any(x > 1.5, dim, keepdim),
    "all": lambda x, dim, keepdim=False: torch.all(x > -1.5, dim, keepdim),
}


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, 1, 2, (0, 1), (1, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("shape", [(2, 4, 64), (3, 5, 70)], ids=str)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions(op, shape, dim, keepdim):
    x = maker(torch.float16)(shape).to("spyre")
    close(REDUCTIONS[op](x, dim, keepdim), REDUCTIONS[op](x.cpu().float(), dim, keepdim))


@pytest.mark.parametrize("op", [torch.sum, torch.mean, torch.amax, torch.amin])
@pytest.mark.parametrize("form", FORMS)
def test_reductions_of_everything(op, form):
    x, host = pair(form, torch.float16)
    # Each folded dimension rounds: what is added up is below 64, and 2^-10 of that may be lost each time.
    torch.testing.assert_close(op(x).cpu().float(), op(host), rtol=4e-3, atol=6e-2)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("op", [torch.argmax, torch.argmin])
def test_positions(op, dim):
    x = torch.randperm(5 * 70, generator=torch.Generator().manual_seed(0)).reshape(5, 70).half().to("spyre")
    assert torch.equal(op(x, dim).cpu(), op(x.cpu(), dim))


@pytest.mark.parametrize("op", [torch.max, torch.min])
def test_extremes_with_positions(op):
    x = torch.randperm(5 * 70, generator=torch.Generator().manual_seed(0)).reshape(5, 70).half().to("spyre")
    values, positions = op(x, 1)
    expected = op(x.cpu(), 1)
    assert torch.equal(values.cpu(), expected.values)
    assert torch.equal(positions.cpu(), expected.indices)


def test_products():
    x = maker(torch.float16, low=0.5, high=1.5)((6, 128)).to("spyre")
    close(torch.prod(x, 0), torch.prod(x.cpu().float(), 0))


# ---- matrix products ---------------------------------------------------------------------------------------------

PRODUCTS = [((4, 64), (64, 128)), ((3, 70), (70, 100)), ((1, 128), (128, 64)), ((65, 65), (65, 1))]
MATMUL = dict(rtol=1e-2, atol=3e-2)  # products of values near one, rounded where the order of the sum differs


@pytest.mark.parametrize("a,b", PRODUCTS, ids=str)
def test_matrix_products(a, b):
    x, y = maker(torch.float16, 1, -1, 1)(a).to("spyre"), maker(torch.float16, 2, -1, 1)(b).to("spyre")
    torch.testing.assert_close((x @ y).cpu().float(), x.cpu().float() @ y.cpu().float(), **MATMUL)


def test_a_transposed_matrix():
    x, w = maker(torch.float16, 1, -1, 1)((5, 64)).to("spyre"), maker(torch.float16, 2, -1, 1)((96, 64)).to("spyre")
    torch.testing.assert_close((x @ w.t()).cpu().float(), x.cpu().float() @ w.cpu().float().t(), **MATMUL)


def test_stacks_of_matrices():
    x, y = (
        maker(torch.float16, 1, -1, 1)((3, 5, 70)).to("spyre"),
        maker(torch.float16, 2, -1, 1)((3, 70, 64)).to("spyre"),
    )
    torch.testing.assert_close(torch.bmm(x, y).cpu().float(), torch.bmm(x.cpu().float(), y.cpu().float()), **MATMUL)
    heads = maker(torch.float16, 3, -1, 1)((2, 4, 6, 64)).to("spyre")
    host = heads.cpu().float()
    torch.testing.assert_close((heads @ heads.mT).cpu().float(), host @ host.mT, **MATMUL)


def test_products_with_a_sum():
    x, y = maker(torch.float16, 1, -1, 1)((4, 70)).to("spyre"), maker(torch.float16, 2, -1, 1)((70, 64)).to("spyre")
    b = maker(torch.float16, 3)((64,)).to("spyre")
    hx, hy, hb = x.cpu().float(), y.cpu().float(), b.cpu().float()
    torch.testing.assert_close(torch.addmm(b, x, y).cpu().float(), torch.addmm(hb, hx, hy), **MATMUL)
    scaled = torch.addmm(b, x, y, beta=0.5, alpha=2)
    torch.testing.assert_close(scaled.cpu().float(), torch.addmm(hb, hx, hy, beta=0.5, alpha=2), **MATMUL)


@pytest.mark.parametrize("shape", [(4, 64), (2, 3, 70)], ids=str)
@pytest.mark.parametrize("bias", [False, True])
def test_linear(shape, bias):
    layer = torch.nn.Linear(shape[-1], 96, bias=bias)
    x = maker(torch.float16, 1, -1, 1)(shape)
    with torch.no_grad():
        result = layer.half().to("spyre")(x.to("spyre")).cpu().float()
        expected = layer.cpu().float()(x.float())
    torch.testing.assert_close(result, expected, **MATMUL)


# ---- norms -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("shape", [(4, 3, 64), (3, 5, 100)], ids=str)
def test_softmax(shape, dim):
    x = maker(torch.float16)(shape).to("spyre")
    host = x.cpu().float()
    torch.testing.assert_close(x.softmax(dim).cpu().float(), host.softmax(dim), rtol=1e-2, atol=1e-3)
    torch.testing.assert_close(x.log_softmax(dim).cpu().float(), host.log_softmax(dim), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("shape", [(4, 64), (2, 3, 100)], ids=str)
def test_layer_norm(shape, affine):
    x = maker(torch.float16)(shape).to("spyre")
    width = shape[-1]
    weight = maker(torch.float16, 2)((width,)).to("spyre") if affine else None
    bias = maker(torch.float16, 3)((width,)).to("spyre") if affine else None
    result = torch.nn.functional.layer_norm(x, (width,), weight, bias)
    cpu = [None if t is None else t.cpu().float() for t in (weight, bias)]
    expected = torch.nn.functional.layer_norm(x.cpu().float(), (width,), *cpu)
    torch.testing.assert_close(result.cpu().float(), expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("shape", [(4, 64), (2, 3, 100)], ids=str)
def test_rms_norm(shape):
    x = maker(torch.float16)(shape).to("spyre")
    weight = maker(torch.float16, 2)(shape[-1:]).to("spyre")
    result = torch.nn.functional.rms_norm(x, shape[-1:], weight, 1e-5)
    expected = torch.nn.functional.rms_norm(x.cpu().float(), shape[-1:], weight.cpu().float(), 1e-5)
    torch.testing.assert_close(result.cpu().float(), expected, rtol=1e-2, atol=1e-2)


# ---- moves -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64, torch.bool])
@pytest.mark.parametrize("form", FORMS)
def test_copies_keep_every_element(form, dtype):
    x = FORMS[form](lambda shape: maker(dtype)(shape).to("spyre"))
    with fallbacks_allowed():
        assert torch.equal(x.contiguous().cpu(), x.cpu())
        assert torch.equal(x.clone().cpu(), x.cpu())


@pytest.mark.parametrize("dim", [0, 1])
def test_cat_of_whole_sticks(dim):
    x, y = maker(torch.float16, 1)((4, 64)).to("spyre"), maker(torch.float16, 2)((4, 128 if dim else 64)).to("spyre")
    assert torch.equal(torch.cat([x, y], dim).cpu(), torch.cat([x.cpu(), y.cpu()], dim))


def test_stack():
    x, y = maker(torch.float16, 1)((4, 70)).to("spyre"), maker(torch.float16, 2)((4, 70)).to("spyre")
    for dim in (0, 1):
        assert torch.equal(torch.stack([x, y], dim).cpu(), torch.stack([x.cpu(), y.cpu()], dim))


@pytest.mark.parametrize("diagonal", [0, 1, -2])
def test_triangles(diagonal):
    x = maker(torch.float16)((5, 70)).to("spyre")
    assert torch.equal(x.tril(diagonal).cpu(), x.cpu().tril(diagonal))
    assert torch.equal(x.triu(diagonal).cpu(), x.cpu().triu(diagonal))


def test_gathers():
    table = maker(torch.float16)((10, 64)).to("spyre")
    index = torch.tensor([3, 0, 9, 3]).to("spyre")
    assert torch.equal(table.index_select(0, index).cpu(), table.cpu()[index.cpu()])
    rows = torch.nn.functional.embedding(index, table)
    assert torch.equal(rows.cpu(), table.cpu()[index.cpu()])
    words = torch.tensor([[1, 2, 3], [4, 5, 6]]).to("spyre")
    assert torch.equal(torch.nn.functional.embedding(words, table).cpu(), table.cpu()[words.cpu()])


def test_ranges():
    assert torch.equal(torch.arange(70, device="spyre").cpu(), torch.arange(70))
    assert torch.equal(torch.arange(3, 200, 7, device="spyre").cpu(), torch.arange(3, 200, 7))
    torch.testing.assert_close(torch.arange(0, 2, 0.125, device="spyre").cpu(), torch.arange(0, 2, 0.125))


# ---- gradients, empties, the cache, refusals ---------------------------------------------------------------------


def test_gradients_run_on_the_card():
    x = maker(torch.float16, 1, -1, 1)((4, 64)).to("spyre").requires_grad_()
    w = maker(torch.float16, 2, -1, 1)((64, 96)).to("spyre").requires_grad_()
    hx, hw = (t.detach().cpu().float().requires_grad_() for t in (x, w))
    for a, b in ((x, w), (hx, hw)):
        torch.nn.functional.silu(a @ b).sigmoid().mul(0.125).sum().backward()
    torch.testing.assert_close(x.grad.cpu().float(), hx.grad, rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(w.grad.cpu().float(), hw.grad, rtol=2e-2, atol=2e-2)


def test_tensors_without_elements_need_no_kernel():
    x = torch.empty((0, 4), dtype=torch.float16, device="spyre")
    assert (x + 1).shape == (0, 4)
    assert torch.cat([x, x]).shape == (0, 4)


def test_a_second_call_is_a_hit():
    x = maker(torch.float16)((3, 77)).to("spyre")
    first = torch.exp(x)
    before = torch.spyre.metrics()
    second = torch.exp(x)
    after = torch.spyre.metrics()
    assert after["eager_cache_hits"] - before["eager_cache_hits"] == 1
    assert after["eager_cache_misses"] == before["eager_cache_misses"]
    assert torch.equal(first.cpu(), second.cpu())


def test_another_number_is_another_kernel():
    x = maker(torch.float16)((3, 77)).to("spyre")
    close(x * 2, x.cpu().float() * 2)
    close(x * 3, x.cpu().float() * 3)


def test_a_refusal_is_counted_with_its_reason():
    torch.spyre.reset_metrics()
    x = torch.tensor([7, 8, 9], dtype=torch.int8).to("spyre")
    with fallbacks_allowed():
        for _ in range(2):
            assert (x + 1).tolist() == [8, 9, 10]
    entry = torch.spyre.metrics()["fallbacks"]["aten::add.Tensor"]
    assert entry["calls"] == 2
    assert entry["reasons"] == {"the card computes no int8": 2}
    with pytest.raises(RuntimeError, match="the card computes no int8"):
        x + 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64])
@pytest.mark.parametrize("shape", [(4, 100), (2, 3, 70), (1, 7), (5, 1), (300, 40)], ids=str)
def test_the_position_in_a_flattened_tensor(shape, dtype):
    host = (torch.randn(shape) * 9).to(dtype) if dtype.is_floating_point else torch.randint(-(2**31), 2**31 - 1, shape)
    card = host.to("spyre")
    host = card.cpu()
    for find in (torch.argmax, torch.argmin):
        assert torch.equal(find(card).cpu(), find(host))
        assert torch.equal(find(card, None, True).cpu(), find(host, None, True))


def test_the_first_of_equal_rows_and_what_is_no_number_is_found():
    equal = torch.full((3, 70), 5.0)
    assert equal.to("spyre").argmax().item() == 0 and equal.half().to("spyre").argmin().item() == 0
    equal[2, 50] = torch.nan
    assert equal.to("spyre").argmax().item() == equal.to("spyre").argmin().item() == 190


def test_rows_of_one_element_are_not_gathered():
    index = torch.tensor([0, 1, 1, 3]).to("spyre")
    for dtype in (torch.float16, torch.float32, torch.int64):
        table = torch.arange(1, 5).reshape(4, 1).to(dtype).to("spyre")
        with fallbacks_allowed():
            assert torch.equal(table.index_select(0, index).cpu(), table.cpu().index_select(0, index.cpu()))


def test_tensors_of_two_devices_are_refused_as_everywhere():
    card, host = torch.ones(3, dtype=torch.float16, device="spyre"), torch.ones(3, dtype=torch.float16)
    mixtures = (
        lambda: card + host,
        lambda: host.add_(card),
        lambda: torch.cat([card, host]),
        lambda: torch.exp(card, out=torch.empty(3, dtype=torch.float16)),
        lambda: torch.sum(card, 0, out=torch.empty((), dtype=torch.float16)),
    )
    for mixture in mixtures:
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            mixture()
    close(card + torch.tensor(2.0), torch.full((3,), 3.0))  # but a number may come from anywhere


def test_the_setting_sends_every_operator_to_the_cpu():
    program = """
import torch
x = torch.ones(2, 3, dtype=torch.float16, device="spyre")
(x + 1).exp_().sum(1)
torch.nn.functional.layer_norm(x, (3,))
counts = torch.spyre.metrics()["fallbacks"]
print(sorted(counts), {reason for entry in counts.values() for reason in entry["reasons"]})
"""
    environment = {**os.environ, "SPYRE_EAGER": "0", "TORCH_SPYRE_FALLBACK": "silent"}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    names = "['aten::add.Tensor', 'aten::exp_', 'aten::native_layer_norm', 'aten::sum.dim_IntList']"
    assert result.stdout.strip() == names + " {'eager kernels are switched off (SPYRE_EAGER=0)'}", result.stderr


def test_wrong_arguments_raise_what_the_cpu_raises():
    x = maker(torch.float16)((3, 4)).to("spyre")
    with fallbacks_allowed(), pytest.raises(RuntimeError, match="must match the size of tensor"):
        x + maker(torch.float16)((3, 5)).to("spyre")


def test_a_transformer_block_needs_no_cpu():
    width, heads = 128, 2
    gen = torch.Generator().manual_seed(0)

    def weight(*shape):
        return (torch.randn(shape, generator=gen) / math.sqrt(shape[-1])).half().to("spyre")

    x, qkv, out, up, down = (
        weight(2, 8, width),
        weight(3 * width, width),
        weight(width, width),
        weight(96, width),
        weight(width, 96),
    )

    def block(x, qkv, out, up, down):
        f = torch.nn.functional
        h = f.layer_norm(x, (width,))
        q, k, v = (t.reshape(2, 8, heads, width // heads).transpose(1, 2) for t in f.linear(h, qkv).chunk(3, -1))
        scores = (q @ k.transpose(-1, -2)) / math.sqrt(width // heads)
        x = x + f.linear((scores.softmax(-1) @ v).transpose(1, 2).reshape(2, 8, width), out)
        return x + f.linear(f.gelu(f.linear(f.layer_norm(x, (width,)), up)), down)

    args = (x, qkv, out, up, down)
    expected = block(*(t.cpu().float() for t in args))
    torch.testing.assert_close(block(*args).cpu().float(), expected, rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize("columns", [2, 48, 64])
@pytest.mark.parametrize("rows", [4, 8, 63])
def test_a_woven_mask_along_rows_is_counted(rows, columns):
    """Narrowed bounds beside columns: sticks that run along rows and end inside, in the order that narrowing leaves."""
    bounds = torch.linspace(0, columns, rows)
    inside = (bounds.to("spyre").half().unsqueeze(-1) <= torch.arange(columns).half().to("spyre")).half()
    expected = (bounds.half().unsqueeze(-1) <= torch.arange(columns).half()).half()
    for dim in (0, 1):
        assert torch.equal(inside.sum(dim).cpu(), expected.sum(dim))
