"""Functions against exact values, over their whole domain: `accuracy.py` says where, and how far off they may be."""

import math

import pytest
import torch

from tests.e2e import accuracy


@pytest.mark.parametrize("kind", accuracy.FORMATS)
@pytest.mark.parametrize("name", accuracy.FUNCTIONS)
def test_functions_are_as_accurate_as_published(name, kind):
    error, at = accuracy.worst_error(name, kind)
    assert error <= accuracy.FUNCTIONS[name].most[kind], f"{error} half places off at {at!r}"


def test_compiled_functions_are_the_same():
    for name in ("expm1", "log1p", "log", "sin", "tanh", "erf"):
        function = accuracy.FUNCTIONS[name]
        x = function.points.float().to("spyre")
        assert torch.equal(torch.compile(function.call)(x).nan_to_num().cpu(), function.call(x).nan_to_num().cpu()), (
            name
        )


ENDS = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -1e-45, 3.4e38, -3.4e38, 1.0, -1.0]


@pytest.mark.parametrize("name", [n for n in accuracy.FUNCTIONS if n != "gelu_tanh"])
def test_the_ends_of_float32(name):
    call = accuracy.FUNCTIONS[name].call
    x = torch.tensor(ENDS)
    if name in ("sin", "cos"):
        x = x[x.abs() < 1e6]
    # Judged in doubles: PyTorch's vector code for float32 makes gelu of infinity a NaN on some processors.
    expected = call(x.double()).float()
    torch.testing.assert_close(call(x.to("spyre")).cpu(), expected, rtol=2e-6, atol=1e-37, equal_nan=True)


@pytest.mark.parametrize("power", [2.5, -2.5, 65, 66, -65, 1e3])
def test_powers_of_negative_numbers_and_infinities(power):
    x = torch.tensor([-math.inf, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, math.inf])
    torch.testing.assert_close((x.to("spyre") ** power).cpu(), x**power, rtol=3e-5, atol=1e-37, equal_nan=True)
    exponents = torch.full_like(x, power)
    found = (x.to("spyre") ** exponents.to("spyre")).cpu()
    torch.testing.assert_close(found, x**power, rtol=3e-5, atol=1e-37, equal_nan=True)


def test_powers_of_a_negative_constant():
    y = torch.tensor([0.0, 1.0, 2.0, 3.0, -2.0, 0.5])
    torch.testing.assert_close(((-2.0) ** y.to("spyre")).cpu(), (-2.0) ** y, rtol=3e-5, atol=0, equal_nan=True)


ROUNDINGS = [torch.round, torch.floor, torch.ceil, torch.trunc]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_rounding_is_exact(dtype):
    whole = torch.arange(-70, 70) / 4
    large = torch.tensor([300.5, 511.5, 512.0, 600.0, 601.0, 1023.0, 1024.0, 8388607.0, 8388609.0, 16777215.0, 1e9])
    odd = torch.tensor([0.49999997, -0.49999997, 0.50000006, 2.4999998, 1e-30, -1e-30, 8388607.5])
    x = torch.cat([whole, large, -large, odd]).to(dtype).to("spyre")
    for op in ROUNDINGS:
        assert torch.equal(op(x).float().cpu(), op(x.float().cpu())), op


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_remainders_are_exact(dtype):
    generator = torch.Generator().manual_seed(0)
    x = (torch.randn(400, generator=generator) * 100).to(dtype)
    y = torch.randn(400, generator=generator).to(dtype)
    x[:50], y[50:60] = (y[:50] * 7).to(dtype), 0.0
    x[60:64], y[60:64] = (
        torch.tensor([5.0, -5.0, 3.0, 1e4]).to(dtype),
        torch.tensor([0.1, 0.1, math.inf, 3.0]).to(dtype),
    )
    x, y = x.to("spyre"), y.to("spyre")
    wide_x, wide_y = x.float().cpu(), y.float().cpu()
    for op in (torch.fmod, torch.remainder, torch.floor_divide):
        expected = op(wide_x, wide_y)
        finite = expected.abs() < 6e4
        found = op(x, y).float().cpu()
        torch.testing.assert_close(
            found[finite],
            expected[finite].to(dtype).to("spyre").float().cpu(),
            rtol=2e-3 if dtype == torch.float16 else 0,
            atol=0,
        )


def test_large_halves_through_gelu():
    x = torch.tensor([-60000.0, -3000.0, 3000.0, 60000.0]).half().to("spyre")
    for approximate in ("none", "tanh"):
        found = torch.nn.functional.gelu(x, approximate=approximate).cpu()
        assert torch.equal(found, torch.relu(x.cpu())), found
