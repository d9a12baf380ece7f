"""Values of 16 and 32 bits in one expression: the card orders the elements of a stick differently after narrowing."""

import pytest
import torch

from tests.inductor import harness

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


@pytest.mark.parametrize("shape", SHAPES + RAGGED, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
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
