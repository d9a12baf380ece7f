"""Views that see other rows than their memory has, read beside tensors that lie otherwise, and written in part.

The layout search brings them together inside one graph, so eager calls and compiled programs do the same, and nothing
goes through the host.
"""

import itertools

import pytest
import torch

from tests.sweeps import in_turn

FLOATS = [torch.float16, torch.bfloat16, torch.float32]
DTYPES = [torch.bool, *FLOATS, torch.int32, torch.int64]
ROWS = [(3, 130), (2, 70), (24, 2), (5, 31), (1, 33), (64, 65), (7, 64), (200, 1)]
LENGTHS = [1, 2, 31, 32, 33, 63, 64, 65, 127, 129, 200]


def numbers(dtype, *shape):
    values = torch.arange(torch.Size(shape).numel()).view(shape).remainder(97)
    return values.remainder(3).eq(0) if dtype == torch.bool else values.to(dtype)


def as_a_conversion_left_it(x):
    """The same values, narrowed or widened on the card: their lanes are in another order than a fresh tensor's."""
    if x.dtype == torch.bool:
        return x.long().to("spyre") > 0
    wide = x.dtype in (torch.float32, torch.int32, torch.int64)
    return (x.half() if wide else x.float()).to("spyre").to(x.dtype)


MADE = {"fresh": lambda x: x.to("spyre"), "converted": as_a_conversion_left_it}
SEEN = {
    "one row": lambda x: x.view(-1),
    "one column": lambda x: x.view(-1, 1),
    "other rows": lambda x: x.view(x.shape[1], x.shape[0]),
    "a part of one row": lambda x: x.view(-1)[3:],
    "every second of a part": lambda x: x.view(-1)[1:][::2],
}


def beside_others(view, other, mask):
    chosen = torch.where(mask, view, other)
    return chosen, view.logical_not(), view.to(torch.float32) + other.to(torch.float32)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("made, seen, shape, dtype", in_turn(MADE, SEEN, ROWS, DTYPES, one_in=12), ids=str)
def test_views_that_join_or_part_rows(made, seen, shape, dtype, compiled, on_the_card_only):
    x = numbers(dtype, *shape)
    view = SEEN[seen](x)
    if view.numel() == 0:
        return
    other, mask = numbers(dtype, *view.shape).flip(0), numbers(torch.bool, *view.shape)
    run = torch.compile(beside_others, dynamic=False) if compiled else beside_others
    found = run(SEEN[seen](MADE[made](x)), other.to("spyre"), mask.to("spyre"))
    for got, wanted in zip(found, beside_others(view, other, mask), strict=True):
        assert torch.equal(got.cpu(), wanted)


@pytest.mark.parametrize("shape, dtype", in_turn(ROWS, DTYPES), ids=str)
def test_elements_of_joined_rows_by_number(shape, dtype, on_the_card_only):
    x = numbers(dtype, *shape)
    places = torch.arange(0, min(x.numel(), 400), 2).flip(0)  # every one is compared with every element
    found = x.to("spyre").view(-1).gather(0, places.to("spyre"))
    assert torch.equal(found.cpu(), x.view(-1).gather(0, places))


CONVERSIONS = [(a, b) for a, b in itertools.permutations(DTYPES, 2)]


@pytest.mark.parametrize("length, step, conversion", in_turn(LENGTHS, [2, 3, 64, 65], CONVERSIONS), ids=str)
def test_conversions_into_steps(length, step, conversion, on_the_card_only):
    """What is computed goes to every third element, say, and those between keep what they had."""
    source, target = conversion
    x = numbers(source, length)
    for first in sorted({0, 1, step - 1}):
        host = numbers(target, first + length * step)
        card = host.to("spyre")
        host[first::step][:length].copy_(x)
        card[first::step][:length].copy_(x.to("spyre"))
        assert torch.equal(card.cpu(), host)


@pytest.mark.parametrize("length, step, dtype", in_turn(LENGTHS, [2, 3, 64, 65], DTYPES), ids=str)
def test_arithmetic_in_steps(length, step, dtype, on_the_card_only):
    """Reads and writes the same places, of a tensor that is wider than they are."""
    x = numbers(dtype, length)
    for first in sorted({0, 1, step - 1}):
        host = numbers(dtype, first + length * step)
        card = host.to("spyre")
        for base, other in ((host, x), (card, x.to("spyre"))):
            places = base[first::step][:length]
            places.logical_or_(other) if dtype == torch.bool else places.add_(other)
        assert torch.equal(card.cpu(), host)
