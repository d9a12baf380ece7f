"""Values of 16 and 32 bits in one expression: the card orders the elements of a stick differently after narrowing."""

import pytest
import torch

from tests.inductor import harness

SHAPES = [(128,), (1, 128), (8, 128), (64, 64), (3, 5, 64), (4, 4, 192)]
FUNCTIONS = {
    "where": lambda i, x: torch.where(i > 3, x, -x),
    "product": lambda i, x: x * i,
    "both_masks": lambda i, x: ((i > 3) & (x > 0)).to(torch.float16),
    "masked_fill": lambda i, x: x.masked_fill(i == 3, -1.0),
}


@pytest.fixture
def card(monkeypatch):
    return harness.use_compiler(monkeypatch)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_decide_about_halves_on_the_card(card, name, shape):
    generator = torch.Generator().manual_seed(0)
    i = torch.randint(-50, 50, shape, generator=generator)
    x = torch.randint(-50, 50, shape, generator=generator).half()
    card.check(FUNCTIONS[name], i, x, rtol=2**-9, atol=0)


def test_rows_that_end_inside_a_stick_are_refused_and_run_on_the_cpu(card):
    x, i = torch.ones(2, 100).half(), torch.arange(200).reshape(2, 100)
    card.check(FUNCTIONS["where"], i, x, fallbacks=["aten::where.self"])
