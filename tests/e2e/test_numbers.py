"""Numbers keep their values: conversions between all types, infinities, NaN, subnormals, and in-place results.

Everything runs as eager calls and compiled, judged by PyTorch on the CPU. Where a value has a place in the card's
16-bit format, it is compared exactly.
"""

import itertools
import math
import os
import subprocess
import sys

import pytest
import torch

from tests.sweeps import in_turn

DTYPES = [
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.bool,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.float8_e4m3fn,
    torch.float8_e5m2fnuz,
]
FLOATS = [torch.float16, torch.bfloat16, torch.float32]
LENGTHS = [1, 7, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 200]
INF, NAN = math.inf, math.nan
WAYS = ["eager", "compiled"]


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def way_of(function, way):
    torch._dynamo.reset()  # lambdas share their code, and so a limit on compilations
    return function if way == "eager" else torch.compile(function, fullgraph=True, dynamic=False)


def values(dtype, shape):
    """Small whole numbers and quarters: exact in every type that has them, fp8 included."""
    count = torch.arange(math.prod(shape)).reshape(shape)
    if dtype == torch.bool:
        return count % 3 == 0
    if dtype.is_floating_point:
        return ((count % 13) / 4).to(torch.float32).to(dtype)
    return (count % 100).to(dtype)


def same(card, host):
    have = card.cpu()
    assert have.dtype == host.dtype and have.shape == host.shape
    assert torch.equal(have.float(), host.float()), (have, host)


# ---- conversions ----


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_every_conversion_has_a_way(source, way):
    x = values(source, (3, 70))
    card = x.to("spyre")
    for target in DTYPES:
        same(way_of(lambda t, target=target: t.to(target), way)(card), x.to(target))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", LENGTHS)
def test_fp8_of_every_length(length, way):
    x = (torch.arange(2 * length).reshape(2, length) % 128 / 8).to(torch.float8_e4m3fn)
    same(way_of(lambda t: t.to(torch.float16), way)(x.to("spyre")), x.to(torch.float16))


CHAINS = {
    "half_float": (torch.float32, (torch.float16, torch.float32)),
    "float_half": (torch.float16, (torch.float32, torch.float16)),
    "long_half_float": (torch.int64, (torch.float16, torch.float32)),
    "bool_float_half": (torch.bool, (torch.float32, torch.bfloat16)),
    "half_long_half": (torch.float16, (torch.int64, torch.float16)),
}


def chain(through):
    def run(t):
        for dtype in through:
            t = t.to(dtype)
        return t

    return run


def check_chains(lengths, leads):
    for (start, through), length, lead in itertools.product(CHAINS.values(), lengths, leads):
        x = values(start, (*lead, length))
        same(chain(through)(x.to("spyre")), chain(through)(x))


def test_widening_and_narrowing_in_a_row():
    check_chains(LENGTHS, [(4,)])
    check_chains([32, 64], [(), (1,), (3,), (64,), (2, 2), (2, 1), (1, 3), (2, 3, 5), (32,), (32, 32)])


@pytest.mark.full
def test_widening_and_narrowing_of_every_length():
    check_chains(range(1, 201), [(4,), (2, 3)])


@pytest.mark.full
@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_every_conversion_of_every_length(source):
    for length in range(1, 201):
        x = values(source, (2, length))
        card = x.to("spyre")
        for target in DTYPES:
            same(card.to(target), x.to(target))
            if length in LENGTHS:
                same(way_of(lambda t, target=target: t.to(target), "compiled")(card), x.to(target))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lead", [(), (4,), (2, 2), (64,)], ids=str)
def test_arithmetic_between_widened_rows_of_one_stick(lead, way):
    x = values(torch.float16, (*lead, 32))
    same(way_of(lambda t: (t.float() + 1).half() * 2, way)(x.to("spyre")), (x.float() + 1).half() * 2)


# ---- the ends of the range ----


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_infinities_saturate_and_nan_stays(dtype):
    x = torch.tensor([INF, -INF, NAN, torch.finfo(dtype).min, torch.finfo(dtype).max, 1.0], dtype=dtype)
    card = x.to("spyre")
    wide = card.float().cpu()
    assert wide.isnan().tolist() == [False, False, True, False, False, False]
    largest = 8573157376.0
    assert wide[0] == largest and wide[1] == -largest and wide[5] == 1
    back = card.cpu()
    assert torch.equal(back.isnan(), x.isnan())
    if dtype == torch.float16:
        assert back[0] == INF and back[1] == -INF and back[3] == -65472 and back[4] == 65472
    assert torch.equal(card.isnan().cpu(), x.isnan())
    assert card.isinf().cpu().tolist()[:3] == [True, True, False]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrowing_on_the_card_saturates(dtype, way):
    x = torch.tensor([INF, -INF, NAN, torch.finfo(torch.float32).min, 1e20, -2.0, 8.5e9])
    have = way_of(lambda t: t.to(dtype).float(), way)(x.to("spyre")).cpu()
    largest = 8573157376.0
    assert have.tolist()[:2] == [largest, -largest] and have[2].isnan()
    assert have.tolist()[3:6] == [-largest, largest, -2.0] and abs(have[6] - 8.5e9) < 1e7


MASKS = {"min": lambda dtype: torch.finfo(dtype).min, "inf": lambda dtype: -INF}


def masked_rows(dtype, kind, length):
    torch.manual_seed(0)
    scores = torch.randn(5, length).to(dtype).to("spyre").cpu()
    mask = torch.zeros(5, length, dtype=dtype)
    for row in range(4):
        mask[row, row + 1 :] = MASKS[kind](dtype)
    return scores, mask


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", [32, 70, 128])
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_masks_through_softmax(dtype, kind, length, way):
    scores, mask = masked_rows(dtype, kind, length)
    expected = (scores.float() + mask.float()).softmax(-1)
    have = way_of(lambda s, m: (s + m).softmax(-1), way)(scores.to("spyre"), mask.to("spyre"))
    torch.testing.assert_close(have.cpu().float(), expected, rtol=1e-2, atol=2e-3)
    chosen = way_of(lambda s, m: s.masked_fill(m, MASKS[kind](dtype)).softmax(-1), way)
    have = chosen(scores.to("spyre"), (mask != 0).to("spyre"))
    torch.testing.assert_close(have.cpu().float(), expected, rtol=1e-2, atol=2e-3)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_row_that_is_masked_whole_is_uniform(dtype, way):
    for length in (64, 70):
        x = torch.full((3, length), torch.finfo(dtype).min, dtype=dtype).to("spyre")
        have = way_of(lambda t: t.softmax(-1), way)(x).cpu().float()
        torch.testing.assert_close(have, torch.full((3, length), 1 / length), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_masks_through_attention(dtype, kind, way):
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 70, 64).to(dtype).to("spyre").cpu() for _ in range(3))
    mask = torch.zeros(70, 70, dtype=dtype).masked_fill(torch.ones(70, 70).triu(1).bool(), MASKS[kind](dtype))
    attend = torch.nn.functional.scaled_dot_product_attention
    expected = attend(q.float(), k.float(), v.float(), attn_mask=mask.float())
    have = way_of(attend, way)(*(t.to("spyre") for t in (q, k, v, mask)))
    torch.testing.assert_close(have.cpu().float(), expected, rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", [1e-3, 0.3, 1 / 3, 1e-7])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_assigned_numbers_are_those_that_a_tensor_brings(dtype, number, way):
    def assign(t):
        t[1] = number
        return t + 0

    have = way_of(assign, way)(torch.zeros(3, dtype=dtype).to("spyre")).cpu()
    assert torch.equal(have[1], torch.tensor(number, dtype=dtype).to("spyre").cpu())


@pytest.mark.parametrize("number", [3, 7.0, 0.1, 4, -1e-3])
@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64], ids=str)
def test_division_by_a_number_is_rounded_once(dtype, number):
    x = torch.arange(1, 201).to(dtype)
    eager, compiled = (way_of(lambda x: x / number, way)(x.to("spyre")).cpu() for way in WAYS)
    torch.testing.assert_close(compiled, eager, rtol=0, atol=0)
    if eager.dtype == torch.float32:
        torch.testing.assert_close(compiled, x / number, rtol=0, atol=0)


PUT = {
    "padded": lambda x, n: torch.nn.functional.pad(x, (0, 1, 1, 0), value=n),
    "masked_fill": lambda x, n: x.masked_fill(x.to(torch.bool), n),
    "masked_fill_": lambda x, n: x.clone().masked_fill_(x.to(torch.bool), n),
    "fill_": lambda x, n: x.clone().fill_(n),
    "assigned": lambda x, n: x.clone().index_fill(0, torch.tensor([0], device=x.device), n),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PUT)
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("number", [-1, -3, 2.5])
def test_numbers_put_into_integers_become_theirs(dtype, name, number, way):
    x = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    try:
        expected = PUT[name](x, number)
    except RuntimeError:
        return  # what PyTorch refuses is not the card's to judge
    found = way_of(lambda x: PUT[name](x, number), way)(x.to("spyre"))
    torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=0)
    torch.testing.assert_close(found.to(torch.float32).cpu(), expected.float(), rtol=0, atol=0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_clamps_between_nan_are_nan(dtype, way, on_the_card_only):
    x = torch.tensor([-5.0, 0.5, INF], dtype=dtype)
    for bounds in ({"min": NAN, "max": 1.0}, {"min": -1.0, "max": NAN}, {"min": NAN}, {"max": NAN}):
        assert way_of(lambda t, b=bounds: t.clamp(**b), way)(x.to("spyre")).cpu().isnan().all()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_clamps_keep_nan_and_what_they_do_not_bound(dtype, way):
    x = torch.tensor([NAN, -5.0, 0.5, 5.0, INF, -INF], dtype=dtype)
    for bounds in ({"min": -1.0, "max": 1.0}, {"min": -1.0}, {"max": 1.0}):
        host, have = x.clamp(**bounds), way_of(lambda t, b=bounds: t.clamp(**b), way)(x.to("spyre")).cpu()
        assert torch.equal(have.isnan(), host.isnan())
        kept = host.isfinite()
        assert torch.equal(have[kept], host[kept])
        beyond = host.isinf()
        assert (have[beyond].abs().float() > 8e9).all() and torch.equal(have[beyond] > 0, host[beyond] > 0)


KINDS_OF_NUMBERS = {
    "isnan": torch.isnan,
    "isinf": torch.isinf,
    "isfinite": torch.isfinite,
    "isposinf": torch.isposinf,
    "isneginf": torch.isneginf,
    "nan_to_num": lambda t: torch.nan_to_num(t, 0.5, 100.0, -100.0),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", KINDS_OF_NUMBERS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_kinds_of_numbers_are_told_on_the_card(dtype, name, way):
    for shape in ((6,), (5, 33), (2, 64)):
        x = values(dtype, shape)
        x.view(-1)[:6] = torch.tensor([INF, -INF, NAN, 1.0, -2.0, 0.0])
        torch.spyre.reset_metrics()
        have = way_of(KINDS_OF_NUMBERS[name], way)(x.to("spyre"))
        assert not torch.spyre.metrics()["fallbacks"]
        same(have, KINDS_OF_NUMBERS[name](x))


def test_extremes_and_positions_see_nan_and_the_ends_of_16_bits():
    for dtype in (torch.float16, torch.bfloat16):
        rows = torch.zeros(4, 70, dtype=dtype)
        rows[0, 3], rows[1], rows[2], rows[3, 5:9] = NAN, -INF, torch.finfo(dtype).min, INF
        card = rows.to("spyre")
        for op in (torch.amax, torch.amin):
            assert torch.equal(op(card, 1).isnan().cpu(), op(rows, 1).isnan())
        assert torch.equal(card.argmax(1).cpu(), rows.argmax(1))
        assert torch.equal(card[[0, 3]].argmin(1).cpu(), rows[[0, 3]].argmin(1))


def test_subnormal_halves_have_one_value(tmp_path):
    x = torch.arange(1, 1024, dtype=torch.int16).view(torch.float16)
    card = x.to("spyre")
    assert torch.equal(card.cpu(), x)
    assert torch.equal(card.float().cpu(), x.float())
    torch.save(card, tmp_path / "x.pt")
    assert torch.equal(torch.load(tmp_path / "x.pt", map_location="cpu"), x)
    assert torch.equal(torch.load(tmp_path / "x.pt").cpu(), x)
    assert torch.equal((card * 2).cpu(), x * 2)


def test_the_vendors_rules_are_one_setting_away():
    program = (
        "import torch\n"
        "x = torch.tensor([2.0**-15, 2.0**-24, 65504.0, float('inf'), 1.5]).half()\n"
        "print(x.to('spyre').cpu().tolist(), x.to('spyre').float().cpu().tolist())\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "SPYRE_NUMBER_FORMAT": "vendor"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed == (
        "[1.52587890625e-05, 0.0, 65472.0, inf, 1.5] "
        "[3.0517578125e-05, 5.960464477539063e-08, 65472.0, 4294967296.0, 1.5]\n"
    )


# ---- order ----


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_is_the_largest_when_sorting(dtype, descending, way):
    x = torch.tensor([[3.0, NAN, -1.0, INF, NAN, -INF, 0.5], [NAN] * 7, [2.0, 1.0, 7.0, 6.0, 5.0, 4.0, 3.0]]).to(dtype)
    values, positions = x.sort(dim=-1, descending=descending, stable=True)
    sort = way_of(lambda t: t.sort(dim=-1, descending=descending, stable=True), way)
    have, at = sort(x.to("spyre"))
    assert torch.equal(at.cpu(), positions)
    assert torch.equal(have.cpu().isnan(), values.isnan())
    finite = values.isfinite()
    assert torch.equal(have.cpu()[finite], values[finite])
    order = way_of(lambda t: t.argsort(dim=-1, descending=descending, stable=True), way)(x.to("spyre"))
    assert torch.equal(order.cpu(), positions)


def test_sorting_by_its_other_names():
    x = torch.tensor([[3.0, NAN, -1.0], [1.0, 2.0, 0.0]])
    card = x.to("spyre")
    torch.testing.assert_close(card.msort().cpu(), x.msort(), equal_nan=True)
    torch.testing.assert_close(card.quantile(0.5, 1).cpu(), x.quantile(0.5, 1), equal_nan=True)
    torch.testing.assert_close(card.topk(2).values.cpu(), x.topk(2).values, equal_nan=True)
    torch.testing.assert_close(
        card.topk(2, largest=False).values.cpu(), x.topk(2, largest=False).values, equal_nan=True
    )
    torch.testing.assert_close(card.median(1).values.cpu(), x.median(1).values, equal_nan=True)


# ---- results that cannot be cast back ----

IN_PLACE = {
    "mul_": lambda t, o: t.mul_(o),
    "add_": lambda t, o: t.add_(o),
    "sub_": lambda t, o: t.sub_(o),
    "div_": lambda t, o: t.div_(o),
    "div_floor": lambda t, o: t.div_(o, rounding_mode="floor"),
    "floor_divide_": lambda t, o: t.floor_divide_(o),
    "remainder_": lambda t, o: t.remainder_(o),
    "fmod_": lambda t, o: t.fmod_(o),
    "pow_": lambda t, o: t.pow_(o),
    "clamp_": lambda t, o: t.clamp_(-o, o),
    "clamp_min_": lambda t, o: t.clamp_min_(o),
    "clamp_max_": lambda t, o: t.clamp_max_(o),
    "iadd": lambda t, o: t.__iadd__(o),
    "imul": lambda t, o: t.__imul__(o),
    "itruediv": lambda t, o: t.__itruediv__(o),
    "exp_": lambda t, o: t.exp_(),
    "sqrt_": lambda t, o: t.sqrt_(),
    "sigmoid_": lambda t, o: t.sigmoid_(),
    "reciprocal_": lambda t, o: t.reciprocal_(),
    "lerp_": lambda t, o: t.lerp_(t, o),
    "addcmul_": lambda t, o: t.addcmul_(t, t, value=o),
    "masked_fill_": lambda t, o: t.masked_fill_(t > 1, o),
    "eq_": lambda t, o: t.eq_(o),
    "logical_not_": lambda t, o: t.logical_not_(),
}
OTHERS = {
    "float": lambda device: 2.5,
    "int": lambda device: 3,
    "float_tensor": lambda device: torch.full((4,), 2.5, device=device),
    "half_number": lambda device: torch.tensor(2.5, dtype=torch.float16, device=device),
    "long_tensor": lambda device: torch.full((4,), 3, dtype=torch.int64, device=device),
}
TARGETS = [torch.int32, torch.int64, torch.bool, torch.float16, torch.float32]


def outcome(name, other, dtype, device, way):
    """The values, or whether PyTorch's error is that the result cannot be cast; Dynamo has words of its own."""
    target = torch.tensor([0, 1, 2, 3]).to(dtype).to(device)
    try:
        operand = OTHERS[other](device)
        way_of(lambda t: IN_PLACE[name](t, operand), way)(target)
    except Exception as error:
        text = str(error)
        casts = "can't be cast to the desired output type"
        return casts if casts in text and way == "eager" else "error"
    return target.cpu().float().tolist()


#: Of all kinds of operands when called; of a number, the two kinds in turn, when compiled.
IN_PLACE_CALLS = [(name, "eager", tuple(OTHERS)) for name in IN_PLACE]
IN_PLACE_CALLS += [
    pytest.param(*call.values[:1], "compiled", call.values[1:], marks=call.marks)
    for call in in_turn(IN_PLACE, ("float", "int"))
]


@pytest.mark.parametrize("name, way, others", IN_PLACE_CALLS, ids=str)
def test_in_place_results_that_cannot_be_cast_back_are_errors(name, way, others):
    for other, dtype in itertools.product(others, TARGETS):
        if way == "compiled" and name == "addcmul_" and not dtype.is_floating_point:
            continue  # PyTorch cuts the factor down to an integer, but not in compiled programs
        torch._dynamo.reset()
        expected = outcome(name, other, dtype, "cpu", "eager")
        if way == "compiled" and isinstance(expected, str):
            expected = "error"
        have = outcome(name, other, dtype, "spyre", way)
        if isinstance(expected, list) and isinstance(have, list):
            if dtype in (torch.float16, torch.bfloat16):  # one symbol for NaN and infinity
                expected = [value if math.isfinite(value) else math.nan for value in expected]
            torch.testing.assert_close(torch.tensor(have), torch.tensor(expected), rtol=4e-3, atol=1e-3, equal_nan=True)
        else:
            assert have == expected, (name, other, dtype)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", [(65537,), (200_000,), (2, 65536), (3, 300, 200), (131_072, 2)], ids=str)
def test_sums_of_more_integers_than_float32_adds_exactly(shape, way, on_the_card_only):
    x = torch.randint(-(2**31) // 300_000, 2**31 // 300_000, shape, generator=torch.Generator().manual_seed(0))
    for sums in (lambda x: x.sum(), lambda x: x.sum(0), lambda x: x.sum(0, keepdim=True)):
        assert torch.equal(way_of(sums, way)(x.to("spyre")).cpu(), sums(x))
