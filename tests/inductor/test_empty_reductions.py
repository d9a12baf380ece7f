"""Reductions of no elements: products with k = 0 are zeros, sums are zero, and what does not exist raises."""

import pytest
import torch


def half(*shape):
    return torch.randn(shape, dtype=torch.float16)


CASES = {
    "mm": (lambda x, y: x @ y, half(5, 0), half(0, 70)),
    "mm_added": (lambda x, y, z: x @ y + z, half(5, 0), half(0, 70), half(5, 70)),
    "bmm": (lambda x, y: x @ y, half(3, 5, 0), half(3, 0, 70)),
    "matmul_of_four": (lambda x, y: x @ y, half(2, 3, 5, 0), half(2, 3, 0, 70)),
    "matmul_repeated": (lambda x, y: x @ y, half(2, 3, 5, 0), half(0, 70)),
    "addmm": (torch.addmm, half(70), half(5, 0), half(0, 70)),
    "baddbmm": (torch.baddbmm, half(3, 5, 70), half(3, 5, 0), half(3, 0, 70)),
    "linear": (torch.nn.functional.linear, half(4, 5, 0), half(70, 0), half(70)),
    "mv": (lambda x, y: x @ y, half(5, 0), half(0)),
    "dot": (lambda x, y: x @ y, half(0), half(0)),
    "einsum": (lambda x, y: torch.einsum("bik,bkj->bij", x, y), half(2, 5, 0), half(2, 0, 6)),
    "sum": (lambda x: x.sum(1), half(5, 0)),
    "sum_of_all": (lambda x: x.sum(), half(5, 0)),
    "sum_outer": (lambda x: x.sum(0), half(0, 70)),
    "sum_of_two": (lambda x: x.sum((0, 2)), half(4, 5, 0)),
    "sum_of_integers": (lambda x: x.sum(1), torch.zeros(5, 0, dtype=torch.int64)),
    "mean": (lambda x: x.mean(1), half(5, 0)),
    "mean_outer": (lambda x: x.mean(0), half(0, 70)),
    "prod": (lambda x: x.prod(1), half(5, 0)),
    "any": (lambda x: x.any(1), torch.zeros(5, 0, dtype=torch.bool)),
    "all": (lambda x: x.all(1), torch.zeros(5, 0, dtype=torch.bool)),
    "norm": (lambda x: torch.linalg.vector_norm(x, dim=1), half(5, 0)),
    "softmax": (lambda x: x.softmax(1), half(5, 0)),
    "cumsum": (lambda x: x.cumsum(1), half(5, 0)),
    "layer_norm": (lambda x: torch.nn.functional.layer_norm(x, (64,)), half(0, 64)),
    "float_sum": (lambda x: x.sum(1), torch.randn(5, 0)),
    "float_mm": (lambda x, y: x @ y, torch.randn(5, 0), torch.randn(0, 70)),
    "attention": (
        torch.nn.functional.scaled_dot_product_attention,
        half(1, 2, 5, 64),
        half(1, 2, 0, 64),
        half(1, 2, 0, 64),
    ),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_folded_as_on_the_cpu(name, compiled):
    function, *given = CASES[name]
    expected = function(*given)
    run = torch.compile(function) if compiled else function
    found = run(*(x.to("spyre") for x in given))
    assert found.dtype == expected.dtype and found.device.type == "spyre"
    torch.testing.assert_close(found.cpu(), expected, equal_nan=True, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", ["amax", "amin", "argmax", "argmin", "max"])
def test_the_largest_of_nothing_does_not_exist(name, compiled):
    def function(x):
        return getattr(x, name)(1)

    run = torch.compile(function) if compiled else function
    with pytest.raises((RuntimeError, IndexError)):
        run(half(5, 0).to("spyre"))
