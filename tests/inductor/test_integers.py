"""Integers are exact over all 32 bits: the card's own arithmetic, choices by products, folds by digits."""

import pytest
import torch

WIDTH = 2**32


def wrapped(x):
    """What 32 bits keep of an integer."""
    return (x + WIDTH // 2) % WIDTH - WIDTH // 2 if x.dtype == torch.int64 else x


def numbers(*shape):
    """Of all magnitudes, with neighbours of powers of two, where fp32 rounds."""
    size = torch.randint(0, 31, shape)
    near = 2**size + torch.randint(-3, 4, shape)
    spread = (torch.rand(shape, dtype=torch.float64) * 2.0 ** size.double()).long()
    return torch.where(torch.rand(shape) < 0.5, near, spread) * torch.where(torch.rand(shape) < 0.5, -1, 1)


def divisors(*shape):
    x = numbers(*shape)
    return torch.where(x == 0, 7, x)


POINTWISE = {
    "abs": lambda x, y: x.abs(),
    "clamp": lambda x, y: x.clamp(-(2**25) - 1, 2**29 + 1),
    "clamp_min": lambda x, y: x.clamp_min(2**24 + 1),
    "compare": lambda x, y: (x < y, x <= y, x == y, x != y, x >= y, x > y),
    "floor_divide": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "fmod": torch.fmod,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "mul": lambda x, y: x * y,
    "pow": lambda x, y: x**3,
    "relu": lambda x, y: torch.relu(x),
    "remainder": torch.remainder,
    "remainder_of_number": lambda x, y: x % 7,
    "sign": lambda x, y: torch.sign(x),
    "square": lambda x, y: x.square(),
    "sub": lambda x, y: x - y,
    "trunc_divide": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "where": lambda x, y: torch.where(x > y, x, y),
    "where_number": lambda x, y: torch.where(x > y, x, 2**24 + 1),
}

FOLDS = {
    "amax": lambda x, dim: x.amax(dim),
    "amin": lambda x, dim: x.amin(dim),
    "argmax": lambda x, dim: x.argmax(dim),
    "argmin": lambda x, dim: x.argmin(dim),
    "max": lambda x, dim: x.max(dim),
    "sum": lambda x, dim: x.sum(dim),
}


def assert_same(function, *given):
    expected = torch.utils._pytree.tree_leaves(function(*given))
    torch.spyre.reset_metrics()
    found = torch.utils._pytree.tree_leaves(torch.compile(function)(*(t.to("spyre") for t in given)))
    for f, e in zip(found, expected, strict=True):
        assert torch.equal(f.cpu(), wrapped(e)), f"{f.cpu()} for {wrapped(e)}"
    assert not torch.spyre.metrics()["fallbacks"]


@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise(name):
    assert_same(POINTWISE[name], numbers(8, 100), divisors(8, 100))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("shape", [(8, 100), (300, 40), (3, 700)], ids=str)
@pytest.mark.parametrize("name", FOLDS)
def test_fold(name, shape, dim):
    assert_same(lambda x: FOLDS[name](x, dim), numbers(*shape))


def test_fold_of_neighbours():
    """Equal in fp32, and equal in the high half: the low one decides, and the first of equals is taken."""
    x = 2**30 + torch.tensor([[0, 3, 1, 3, 2], [-1, -2, -1, -3, -2]])
    assert_same(lambda x: (x.argmax(1), x.argmin(1), x.amax(1), x.amin(1)), x)


def test_whole_tensor():
    assert_same(lambda x: (x.sum(), x.max(), x.min()), numbers(5, 100))


def test_product():
    assert_same(lambda x: x.prod(0), numbers(5, 64))


def test_a_sum_too_long_for_fp32_is_added_in_parts():
    x = torch.arange(70000).view(1, -1) % 1000
    torch.spyre.reset_metrics()
    assert torch.equal(torch.compile(lambda x: x.sum(1))(x.to("spyre")).cpu(), x.sum(1))
    assert not torch.spyre.metrics()["fallbacks"]


def test_counts_take_the_short_way(monkeypatch):
    """Truth values add up in one fold, integers of unknown size in several."""
    from torch_spyre._inductor import kernels

    texts = []

    def compile_graph(text, compiler=kernels.compile_graph):
        kernel = compiler(text)
        texts.append(kernel.text)
        return kernel

    monkeypatch.setattr(kernels, "compile_graph", compile_graph)
    assert_same(lambda x: (x > 0).sum(-1), numbers(4, 100))
    assert_same(lambda x: x.sum(-1), numbers(4, 100))
    assert [text.count("reduce.sum") for text in texts] == [1, 2]


BEYOND = {
    "compared": lambda x: x == 2**32 + 1,
    "divided": lambda x: x // 2**40,
    "remaining": lambda x: (x % 2**33) < 2**31,
}


@pytest.mark.parametrize("name", BEYOND)
def test_a_number_that_the_card_does_not_have_is_left_to_the_cpu(name):
    x = torch.tensor([[1, 5, 2**31 - 1, 7]])
    torch.spyre.reset_metrics()
    assert torch.equal(torch.compile(BEYOND[name])(x.to("spyre")).cpu(), BEYOND[name](x))
    assert torch.spyre.metrics()["fallbacks"]


def test_a_number_that_the_card_cannot_hold_is_refused():
    x = numbers(4, 64).to("spyre")
    for function in (lambda x: x.masked_fill(x > 0, 2**36), lambda x: torch.full_like(x, 2**35)):
        for run in (function, torch.compile(function)):
            with pytest.raises(RuntimeError, match="does not fit"):
                run(x)
