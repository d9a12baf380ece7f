"""Bits of integers, exactly over all 32 of them: compiled and eager, on the card."""

import operator

import pytest
import torch

EDGES = [
    0,
    1,
    -1,
    2,
    -2,
    255,
    65535,
    65536,
    -65536,
    2**24 + 1,
    -(2**24) - 1,
    2**31 - 1,
    -(2**31),
    0x55555555,
    -0x55555556,
]
BINARY = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
SHIFTS = {"left": operator.lshift, "right": operator.rshift}


def integers(*shape, dtype):
    """Numbers of all sizes, and those where a sign, a digit or float32 ends."""
    x = torch.randint(-(2**31), 2**31 - 1, shape) >> torch.randint(0, 31, shape)
    flat = x.flatten()
    flat[: len(EDGES)] = torch.tensor(EDGES)[: flat.numel()]
    return flat[torch.randperm(flat.numel())].view(shape).to(dtype)


def in_32_bits(x):
    """What the card keeps of an int64."""
    return x.to(torch.int32).to(x.dtype)


def check(function, *given, compile_it):
    torch.spyre.reset_metrics()
    run = torch.compile(function, fullgraph=True) if compile_it else function
    found = run(*(t.to("spyre") for t in given))
    expected = function(*given)
    assert not torch.spyre.metrics()["fallbacks"]
    assert found.dtype == expected.dtype
    assert torch.equal(found.cpu(), in_32_bits(expected))


both_ways = pytest.mark.parametrize("compile_it", [True, False], ids=["compiled", "eager"])
both_types = pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)


@both_ways
@both_types
@pytest.mark.parametrize("shape", [(130,), (3, 33)], ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_of_two_tensors(name, shape, dtype, compile_it):
    check(BINARY[name], integers(*shape, dtype=dtype), integers(*shape, dtype=dtype), compile_it=compile_it)


@both_ways
@pytest.mark.parametrize("mask", [0, 1, -1, 0xFF, 0x0FF0, -256, 2**31 - 1, -(2**31), 0x55555555, 0x10101], ids=hex)
@pytest.mark.parametrize("name", BINARY)
def test_of_a_tensor_and_a_number(name, mask, compile_it):
    check(lambda x: BINARY[name](x, mask), integers(70, dtype=torch.int32), compile_it=compile_it)


@both_ways
@both_types
def test_not(dtype, compile_it):
    check(operator.invert, integers(3, 40, dtype=dtype), compile_it=compile_it)


@both_ways
@pytest.mark.parametrize("bits", [0, 1, 7, 8, 15, 16, 17, 24, 31])
@pytest.mark.parametrize("name", SHIFTS)
def test_shift_by_a_number(name, bits, compile_it):
    check(lambda x: SHIFTS[name](x, bits), integers(100, dtype=torch.int32), compile_it=compile_it)


@both_ways
@pytest.mark.parametrize("name", SHIFTS)
def test_shift_by_a_tensor(name, compile_it):
    """Shifts that leave the word too, of which only the sign stays."""
    given = integers(2, 130, dtype=torch.int32), torch.randint(-2, 40, (2, 130), dtype=torch.int32)
    check(SHIFTS[name], *given, compile_it=compile_it)


@both_ways
def test_a_row_against_a_column(compile_it):
    check(operator.and_, integers(70, dtype=torch.int32), integers(5, 1, dtype=torch.int32), compile_it=compile_it)


@both_ways
def test_truth_values_beside_integers(compile_it):
    """What generate() does with the rows that are done."""
    check(lambda done, x: x & ~done, torch.tensor([True, False, True]), torch.tensor([1, 1, 0]), compile_it=compile_it)


def test_in_place():
    x, y = integers(40, dtype=torch.int32), integers(40, dtype=torch.int32)
    torch.spyre.reset_metrics()
    card = x.to("spyre")
    card &= y.to("spyre")
    card <<= 3
    assert not torch.spyre.metrics()["fallbacks"]
    assert torch.equal(card.cpu(), (x & y) << 3)


def test_shifts_of_floats_are_not_ours():
    """PyTorch multiplies by a power of two; the card leaves that to the CPU and counts it."""
    torch.spyre.reset_metrics()
    x = torch.tensor([1.0, 3.0])
    try:
        expected = torch.bitwise_left_shift(x, 2)
    except RuntimeError as error:
        with pytest.raises(RuntimeError, match=str(error)[:40].replace("(", r"\(")):
            torch.bitwise_left_shift(x.to("spyre"), 2)
        return
    assert torch.equal(torch.bitwise_left_shift(x.to("spyre"), 2).cpu(), expected)
