"""Numbers of a program that change from call to call are bound at launch: one kernel for all of them."""

import math

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from tests.inductor.harness import assert_near
from tests.sweeps import in_turn

FUNCTIONS = {
    "add": lambda x, s: x + s,
    "divide": lambda x, s: x / s,
    "divided": lambda x, s: s / (x.abs() + 1),
    "multiply": lambda x, s: x * s,
    "power": lambda x, s: x.abs() ** s,
    "subtract_from": lambda x, s: s - x,
    "in_a_sum": lambda x, s: (x * s).sum(-1) + s,
    "compare": lambda x, s: torch.where(x > s, x, x * 0),
    "alpha": lambda x, s: torch.add(x, x, alpha=s),
    "base": lambda x, s: abs(s) ** x,
    "least": lambda x, s: x.clamp_min(s),
    "of_two": lambda x, s: x * (s + 1) - s * 2,
}
NUMBERS = {"int": [2, 3, 4, 7, -5], "float": [2.5, 3.5, -0.75, 1e-3]}


@pytest.mark.parametrize(
    "name, kind, dtype", in_turn(FUNCTIONS, NUMBERS, [torch.float16, torch.bfloat16, torch.float32]), ids=str
)
def test_a_number_that_changes_is_bound_at_launch(name, kind, dtype):
    function, x = FUNCTIONS[name], torch.randn(5, 70).to(dtype)
    counter = CompileCounterWithBackend("inductor")
    compiled, on_card = torch.compile(function, backend=counter), x.to("spyre")
    torch.spyre.reset_metrics()
    for i, s in enumerate(NUMBERS[kind]):
        if name == "power" and s < 0:
            continue
        found = compiled(on_card, s)
        expected = function(x.float(), s).to(found.dtype)
        assert_near(found, expected, rtol=2e-2, atol=3e-2)
        assert counter.frame_count <= min(i, 1) + 1, f"compiled again for {s}"
    assert torch.spyre.metrics()["fallbacks"] == {}


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_of_integers(dtype):
    x = torch.randint(-1000, 1000, (3, 40), dtype=dtype)
    compiled = torch.compile(lambda x, s: x * s + s)
    for s in (2, 3, 70001, -4):
        assert torch.equal(compiled(x.to("spyre"), s).cpu(), x * s + s)


def test_in_a_closure():
    x, factor = torch.randn(4, 64, dtype=torch.float16), 2

    @torch.compile
    def scaled(x):
        return x * factor

    for factor in (2, 3, 5, 9):  # noqa: B007 - the closure reads it
        assert_near(scaled(x.to("spyre")), x * factor)
    for factor in (1.5, 2.5, 4.5):
        assert_near(scaled(x.to("spyre")), x * factor)


def test_as_an_attribute_of_a_module():
    class Scaled(torch.nn.Module):
        scale = 2.5

        def forward(self, x):
            return x * self.scale

    module, x = Scaled(), torch.randn(4, 64, dtype=torch.float16)
    compiled = torch.compile(module)
    for module.scale in (2.5, 3.5, 4.25):
        assert_near(compiled(x.to("spyre")), x * module.scale)


def test_special_numbers_are_told_apart():
    x = torch.ones(2, 64)
    compiled = torch.compile(lambda x, s: x * s)
    for s in (2.5, 3.5, math.nan, -0.0, 0.0, math.inf, -math.inf, 2.5, math.nan):
        found = compiled(x.to("spyre"), s).cpu()
        expected = x * s
        torch.testing.assert_close(found, expected, equal_nan=True)
        assert torch.equal(found.signbit(), expected.signbit()) or math.isnan(s)


def test_a_number_beside_positions():
    compiled = torch.compile(lambda x, s: x + torch.arange(70, device=x.device) * s + s)
    x = torch.randint(0, 9, (3, 70))
    for s in (2, 3, 4):
        assert torch.equal(compiled(x.to("spyre"), s).cpu(), x + torch.arange(70) * s + s)


def test_a_number_as_a_tensor_of_the_host():
    compiled = torch.compile(lambda x, s: x * s)
    x = torch.randn(3, 70, dtype=torch.float16)
    for s in (torch.tensor(2.5), torch.tensor(-3.5), torch.tensor(0.125, dtype=torch.float64)):
        assert_near(compiled(x.to("spyre"), s), x * s)


def test_numbers_kept_on_the_card_are_bounded():
    from torch_spyre._inductor import kernels

    compiled, x = torch.compile(lambda x, s: x + s), torch.zeros(64).to("spyre")
    for s in range(2, 2 * kernels._SCALARS_AT_MOST):
        compiled(x, float(s) + 0.5)
    assert kernels._scalar_on_card.cache_info().currsize <= kernels._SCALARS_AT_MOST
