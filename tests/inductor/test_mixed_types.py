"""Values of 16 and 32 bits in one expression: the card orders the elements of a stick differently after narrowing."""

import pytest
import torch
from torch_spyre._inductor import config

from tests.inductor import harness
from tests.sweeps import in_turn

SHAPES = [(128,), (1, 128), (8, 128), (64, 64), (3, 5, 64), (4, 4, 192)]
RAGGED = [(5,), (1, 1), (2, 100), (100, 2), (3, 5, 70), (65, 65)]  # rows that end inside a stick
FUNCTIONS = {
    "where": lambda i, x: torch.where(i > 3, x, -x),
    "product": lambda i, x: x * i,
    "both_masks": lambda i, x: ((i > 3) & (x > 0)).to(torch.float16),
    "masked_fill": lambda i, x: x.masked_fill(i == 3, -1.0),
}


@pytest.fixture
def card(monkeypatch):
    return harness.use_compiler(monkeypatch)


@pytest.mark.parametrize("shape, name", in_turn(SHAPES + RAGGED, FUNCTIONS, one_in=2), ids=str)
def test_integers_decide_about_halves_on_the_card(card, name, shape):
    generator = torch.Generator().manual_seed(0)
    i = torch.randint(-50, 50, shape, generator=generator)
    x = torch.randint(-50, 50, shape, generator=generator).half()
    card.check(FUNCTIONS[name], i, x, rtol=2**-9, atol=0)


@pytest.mark.parametrize("shape", RAGGED, ids=str)
def test_a_ragged_mask_made_by_one_kernel_is_in_order_for_the_next(card, shape):
    i, x = torch.arange(-30, -30 + torch.Size(shape).numel()).reshape(shape), torch.ones(shape).half()
    torch.spyre.reset_metrics()
    mask = torch.compile(lambda i: i > 3, fullgraph=True)(i.to("spyre"))
    found = torch.compile(lambda m, x: torch.where(m, x, -x), fullgraph=True)(mask, x.to("spyre"))
    assert torch.equal(found.cpu(), torch.where(i > 3, x, -x))
    assert torch.spyre.metrics()["fallbacks"] == {}


# Masks and fp16 are 16-bit and floats and integers 32-bit here, all from outside: none has the lanes of the other.
APART = [(128,), (100,), (3, 64), (4, 100), (5, 7), (2, 3, 130), (65, 65), (1, 70)]
BESIDE_FLOATS = {
    "where": lambda m, h, x, y: torch.where(m, x, y),
    "masked_fill": lambda m, h, x, y: x.masked_fill(m, 0),
    "masks_of_both": lambda m, h, x, y: (x > 0) | m,
    "sum": lambda m, h, x, y: h.float() + y,
    "choice_of_either": lambda m, h, x, y: torch.where(m, h, x),
    "all_transposed": lambda m, h, x, y: torch.where(m.transpose(0, -1), x.transpose(0, -1), 1.0),
}
BESIDE_INTEGERS = {
    "where": lambda m, i, j: torch.where(m, i, j),
    "masked_fill": lambda m, i, j: i.masked_fill(m, 1),
    "zeroed": lambda m, i, j: i.masked_fill(m, 0),
    "kept": lambda m, i, j: torch.where(m, i, 0),
    "numbers": lambda m, i, j: torch.where(m, 2147483647, -5) + i * 0,
    "maximum": lambda m, i, j: torch.maximum(i, j),
    "minimum": lambda m, i, j: torch.minimum(i, j.masked_fill(m, 7)),
}


def everything(shape):
    """A mask, fp16 values and two tensors of floats, the first with everything that a selection must not touch."""
    generator = torch.Generator().manual_seed(0)
    m = torch.rand(shape, generator=generator) < 0.5
    h = torch.randint(-50, 50, shape, generator=generator).half()
    x, y = torch.randn((2, *shape), generator=generator)
    for first, special in enumerate((float("nan"), float("inf"), -0.0)):
        x.view(-1)[first::7] = special
    return m, h, x, y


def whole_numbers(shape):
    """Integers that fp32 does not tell apart, and those whose difference overflows."""
    generator = torch.Generator().manual_seed(1)
    ends = torch.tensor([-(2**31), -(2**31) + 1, 2**31 - 1, 2**31 - 2, 2**24 + 1, 0])
    i, j = (ends[torch.randint(len(ends), shape, generator=generator)] for _ in range(2))
    return torch.rand(shape, generator=generator) < 0.5, i, j


def bits(x):
    return x.view(torch.int32) if x.dtype == torch.float32 else x


def same_bits(card, function, *args):
    found = card.check(function, *args, rtol=0, atol=0)
    expected = function(*args)
    assert torch.equal(bits(found.cpu()), bits(expected))


@pytest.mark.parametrize("shape, name", in_turn(APART, BESIDE_FLOATS, one_in=2), ids=str)
def test_halves_and_masks_meet_floats_from_elsewhere(card, name, shape):
    same_bits(card, BESIDE_FLOATS[name], *everything(shape))


@pytest.mark.parametrize("shape", [(3, 64), (64, 3), (4, 100), (5, 7), (128, 130)], ids=str)
def test_a_mask_may_lie_along_the_columns(card, shape):
    _, _, x, y = everything(shape)
    m, *_ = everything(shape[::-1])
    same_bits(card, lambda m, x, y: torch.where(m.t(), x, y), m, x, y)


@pytest.mark.parametrize("shape, name", in_turn(APART, BESIDE_INTEGERS, one_in=2), ids=str)
def test_a_choice_between_integers_is_exact(card, name, shape):
    same_bits(card, BESIDE_INTEGERS[name], *whole_numbers(shape))


@pytest.mark.parametrize("cores", [1, 2, 7, 32])
@pytest.mark.parametrize("planning", [False, True])
@pytest.mark.parametrize("shape", [(4, 100), (70, 192)], ids=str)
def test_any_number_of_cores_chooses_the_same(card, shape, planning, cores):
    with config.patch(sencores=cores, lx_planning=planning):
        m, _, x, _ = everything(shape)
        same_bits(card, lambda m, x: torch.where(m, x, x * 2) * 4, m, x)
        same_bits(card, lambda m, i, j: torch.where(m, i, j) * 1, *whole_numbers(shape))


@pytest.mark.parametrize("shape", [(128,), (8, 128), *RAGGED], ids=str)
def test_a_mask_of_floats_meets_one_of_halves_in_the_next_kernel(shape):
    m, h, _, y = (t.to("spyre") for t in everything(shape))
    torch.spyre.reset_metrics()
    interleaved = torch.compile(lambda y: y > 0, fullgraph=True)(y)
    both = torch.compile(lambda w, m: w | m, fullgraph=True)(interleaved, m)
    chosen = torch.compile(lambda w, h: torch.where(w, h, -h), fullgraph=True)(interleaved, h)
    eager = torch.where((y > 0) & m, y, 0.0)
    assert torch.spyre.metrics()["fallbacks"] == {}
    m, h, y = m.cpu(), h.cpu(), y.cpu()
    assert torch.equal(both.cpu(), (y > 0) | m)
    assert torch.equal(chosen.cpu(), torch.where(y > 0, h, -h))
    assert torch.equal(eager.cpu(), torch.where((y > 0) & m, y, 0.0))


@pytest.mark.parametrize("shape", [(3, 64), (4, 100), (5, 7)], ids=str)
def test_choices_between_integers_are_exact_without_a_compiler_too(shape):
    m, i, j = whole_numbers(shape)
    on_card = [t.to("spyre") for t in (m, i, j)]
    for function in (torch.where, lambda m, i, j: i.masked_fill(m, -1), lambda m, i, j: torch.tril(i)):
        torch.spyre.reset_metrics()
        found = function(*on_card)
        assert torch.spyre.metrics()["fallbacks"] == {}
        assert torch.equal(found.cpu(), function(m, i, j))
