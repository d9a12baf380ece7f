"""Copies of 32-bit values that the card can only do in 16 bits: every bit arrives, compiled and eager."""

import pytest
import torch
import torch.nn.functional as F

from tests.sweeps import in_turn

MOVES = {
    "beside": lambda x, y: torch.cat([x, y], -1),
    "padded": lambda x, y: F.pad(x, (1, 2)),
    "without_first": lambda x, y: x[..., 1:].clone(),
    "transposed": lambda x, y: x.transpose(0, -1).contiguous(),
    "transposed_and_flat": lambda x, y: x.transpose(0, -1).reshape(-1),
    "stacked": lambda x, y: torch.stack([x, y], -1),
}


def words(dtype, *shape):
    """All kinds of bits, those of NaNs and of numbers near zero too."""
    bits = torch.randint(-(2**31), 2**31 - 1, shape)
    return bits if dtype == torch.int64 else bits.to(torch.int32).view(torch.float32)


def assert_same_bits(function, *given):
    torch.spyre.reset_metrics()
    found = function(*(t.to("spyre") for t in given)).cpu()
    expected = function(*given).contiguous()
    assert not torch.spyre.metrics()["fallbacks"]
    assert found.shape == expected.shape
    assert torch.equal(found.contiguous().view(torch.int32), expected.view(torch.int32))


NAMES = ["beside", "padded", "without_first", "transposed", "transposed_and_flat", "stacked"]
SHAPES = [(4, 100), (65, 70), (2, 3, 70), (3, 64)]


@pytest.mark.parametrize(
    "name, dtype, compile_it, shape",
    in_turn(NAMES, [torch.float32, torch.int64], [True, False], SHAPES),
    ids=str,
)
def test_move(name, dtype, compile_it, shape):
    function = torch.compile(MOVES[name]) if compile_it else MOVES[name]
    assert_same_bits(function, words(dtype, *shape), words(dtype, *shape))


@pytest.mark.parametrize("compile_it", [True, False], ids=["compiled", "eager"])
@pytest.mark.parametrize("shape", [(1, 7), (1, 130), (7,), (2, 7)], ids=str)
def test_a_token_is_appended(shape, compile_it):
    def append(x, y):
        return torch.cat([x, y], -1)

    given = words(torch.int64, *shape), words(torch.int64, *shape[:-1], 1)
    assert_same_bits(torch.compile(append) if compile_it else append, *given)


@pytest.mark.parametrize("compile_it", [True, False], ids=["compiled", "eager"])
@pytest.mark.parametrize("shape", [(4, 100), (2, 3, 70)], ids=str)
def test_columns_are_picked(shape, compile_it):
    def pick(x, i):
        return x.index_select(-1, i)

    given = words(torch.float32, *shape), torch.randint(0, shape[-1], (5,))
    assert_same_bits(torch.compile(pick) if compile_it else pick, *given)
