"""32-bit operands whose sticks run along another dimension, or order their lanes otherwise, beside arithmetic: one
graph, one launch, nothing left out of it."""

import pytest
import torch

WORDS = [torch.float32, torch.int32, torch.int64]
LENGTHS = [1, 31, 32, 33, 63, 64, 65, 127, 128, 129]  # around a stick of 32 words, and of 64 half-words


def numbers(dtype, *shape):
    x = torch.randn(shape)
    return (x * 2**12).to(dtype) if not dtype.is_floating_point else x.to(dtype)


def check(function, *given):
    expected = function(*given)
    on_card = [t.to("spyre") for t in given]
    for run, launches in ((function, 3), (torch.compile(function), 1)):
        run(*on_card).cpu()  # compiles
        torch.spyre.reset_metrics()
        found = run(*on_card)
        torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=0)
        assert found.stride() == expected.stride()
        metrics = torch.spyre.metrics()
        assert not metrics["fallbacks"]
        assert metrics["launches"] <= launches  # an eager call may copy two operands first


@pytest.mark.parametrize("dtype", WORDS, ids=str)
@pytest.mark.parametrize("n", LENGTHS)
def test_a_transpose_beside_a_sum(n, dtype):
    check(lambda x, y: x.t() + y, numbers(dtype, n, 40), numbers(dtype, 40, n))
    check(lambda x, y: x.t() + y, numbers(dtype, 5, n), numbers(dtype, n, 5))


@pytest.mark.parametrize("dtype", WORDS, ids=str)
def test_both_operands_are_transposed_otherwise(dtype):
    check(
        lambda x, y, z: x.permute(0, 2, 1) + y.permute(2, 0, 1) + z,
        numbers(dtype, 3, 33, 70),
        numbers(dtype, 70, 33, 3),
        numbers(dtype, 3, 70, 33),
    )


@pytest.mark.parametrize("n", [33, 64, 70])
def test_a_choice_between_transposes(n):
    mask = torch.rand(n, 40) > 0.5
    check(lambda x, y, m: torch.where(m, x.t(), y), numbers(torch.float32, 40, n), numbers(torch.float32, n, 40), mask)


@pytest.mark.parametrize("n", LENGTHS)
def test_a_part_of_a_storage_is_transposed(n):
    check(lambda x, y: x[1:, :].t() + y, numbers(torch.float32, 41, n), numbers(torch.float32, n, 40))
