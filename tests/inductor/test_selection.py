"""Orders and selections of 32-bit values on the card, to the last bit: sort, topk, unique, what a mask keeps."""

import pytest
import torch


def integers(*shape):
    x = torch.randint(-(2**31), 2**31 - 1, shape) >> torch.randint(0, 31, shape)
    return torch.where(torch.rand(shape) < 0.3, torch.randint(0, 4, shape), x)  # some are equal


def floats(*shape):
    x = torch.randn(shape)
    x.view(-1)[:4] = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0])[: x.numel()]
    return x


def check(function, *given):
    torch.spyre.reset_metrics()
    found = function(*(t.to("spyre") for t in given))
    expected = function(*given)
    assert not torch.spyre.metrics()["fallbacks"]
    for f, e in zip(*(torch.utils._pytree.tree_leaves(t) for t in (found, expected)), strict=True):
        assert f.dtype == e.dtype
        torch.testing.assert_close(f.cpu(), e, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("make", [integers, floats], ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(1,), (31,), (70,), (2, 65)], ids=str)
@pytest.mark.parametrize("descending", [False, True])
def test_sort(descending, shape, make):
    check(lambda x: tuple(x.sort(dim=-1, stable=True, descending=descending)), make(*shape))


@pytest.mark.parametrize("make", [integers, floats], ids=lambda f: f.__name__)
def test_compiled_sort(make):
    check(torch.compile(lambda x: tuple(x.sort(dim=-1, stable=True))), make(2, 40))


def test_argsort_of_columns():
    check(lambda x: torch.argsort(x, dim=0, stable=True), integers(40, 3))


def test_the_largest_integers():
    check(lambda x: x.topk(3).values, integers(2, 50))


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("n", [1, 50, 130])
def test_unique(n, dtype):
    given = torch.randint(0, 20, (n,)).to(dtype)
    check(lambda x: torch.unique(x, return_inverse=True, return_counts=True), given)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.float16, torch.bool], ids=str)
@pytest.mark.parametrize("shape", [(1,), (70,), (5, 33)], ids=str)
@pytest.mark.parametrize("kept", [0.0, 0.5, 1.0])
def test_masked_select(kept, shape, dtype):
    x, mask = (
        integers(*shape) if dtype == torch.int64 else torch.randint(0, 9, shape).to(dtype),
        torch.rand(shape) < kept,
    )
    check(torch.masked_select, x, mask)
    check(lambda t, m: t[m], x, mask)


def test_rows_that_a_mask_keeps():
    check(lambda x, m: x[m], torch.randint(0, 9, (40, 64)).half(), torch.rand(40) < 0.5)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("shape", [(1,), (70,), (5, 33)], ids=str)
def test_masked_scatter(shape, dtype):
    x, source = torch.randint(0, 9, shape).to(dtype), torch.randint(9, 99, shape).to(dtype)
    mask = torch.rand(shape) < 0.5
    check(lambda t, m, s: t.masked_scatter(m, s), x, mask, source)
    check(lambda t, m, s: t.clone().masked_scatter_(m, s), x, mask, source)


def test_images_take_the_place_of_tokens():
    """Whole rows of 16-bit values, more elements than positions can be told apart."""
    x, images = torch.randint(0, 9, (1, 40, 128)).half(), torch.randint(9, 99, (12, 128)).half()
    mask = torch.zeros(1, 40, dtype=torch.bool)
    mask[:, 7:19] = True
    check(lambda t, m, s: t.masked_scatter(m.unsqueeze(-1).expand_as(t), s), x, mask, images)


def test_too_few_sources_are_pytorchs_error():
    x, mask = torch.zeros(4), torch.ones(4, dtype=torch.bool)
    with pytest.raises(RuntimeError, match="Number of elements of source < number of ones in mask"):
        x.to("spyre").masked_scatter(mask.to("spyre"), torch.zeros(3).to("spyre"))
