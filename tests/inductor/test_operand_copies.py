"""Operands that have no place in a graph beside others are copied on the card first; nothing goes to the CPU."""

import pytest
import torch


def numbers(dtype, *shape):
    x = torch.randn(shape)
    return (x * 2**12).to(dtype) if not dtype.is_floating_point else x.to(dtype)  # products fit 32 bits


def check(function, *given, rtol=1e-6, atol=1e-6):
    expected = function(*given)
    torch.spyre.reset_metrics()
    for run in (function, torch.compile(function)):
        found = run(*(t.to("spyre") for t in given))
        assert not torch.spyre.metrics()["fallbacks"]
        assert found.stride() == expected.stride()
        torch.testing.assert_close(found.cpu(), expected, rtol=rtol, atol=atol)


WORDS = [torch.float32, torch.int32, torch.int64]


@pytest.mark.parametrize("dtype", WORDS, ids=str)
@pytest.mark.parametrize("shape", [(33, 70), (64, 32), (3, 130)], ids=str)
def test_a_transpose_beside_a_sum(shape, dtype):
    check(lambda x, y: x.t() + y, numbers(dtype, *shape), numbers(dtype, *shape[::-1]))


@pytest.mark.parametrize("dtype", WORDS, ids=str)
def test_channels_come_last(dtype):
    check(lambda x, y: x.permute(0, 2, 3, 1) * y, numbers(dtype, 2, 6, 5, 7), numbers(dtype, 2, 5, 7, 6))


@pytest.mark.parametrize("dtype", WORDS, ids=str)
@pytest.mark.parametrize("n", [1, 31, 33, 70])
def test_a_vector_along_rows_repeats_along_columns(n, dtype):
    check(lambda x, y: x[:, None].expand(n, 40) + y, numbers(dtype, n), numbers(dtype, n, 40))


@pytest.mark.parametrize("dtype", WORDS, ids=str)
def test_an_outer_product(dtype):
    check(lambda x, y: x[:, None] * y[None], numbers(dtype, 33), numbers(dtype, 70))


def test_a_choice_between_transposes():
    check(
        lambda x, y, m: torch.where(m, x.t(), y),
        numbers(torch.float32, 33, 70),
        numbers(torch.float32, 70, 33),
        torch.rand(70, 33) > 0.5,
    )


@pytest.mark.parametrize("dtype", WORDS, ids=str)
def test_the_last_token_of_each_row(dtype):
    """A column that starts inside a stick."""
    check(lambda x: x[:, -1] * 3, numbers(dtype, 4, 10))


def test_positions_one_to_a_stick():
    check(
        lambda table, i: torch.nn.functional.embedding(i, table),
        torch.randn(50, 64).half(),
        torch.tensor([[3], [49]]),
        atol=1e-2,
    )


@pytest.mark.parametrize("heads", [2, 3, 4])
def test_rotation_of_pairs(heads):
    """The rotary embedding of FMS: float32 pairs (D/2, 2) of 16-bit heads, times matrices of 2 x 2."""

    def rotate(x, freqs):
        pairs = x.float().view(2, 5, heads, 8, 2)
        return freqs[:, -5:, None].mul(pairs.unsqueeze(-2)).sum(5).flatten(3).type_as(x)

    check(rotate, torch.randn(2, 5, heads, 16).half(), torch.randn(2, 9, 8, 2, 2), rtol=2e-3, atol=2e-2)


#: Of 300 columns: whole sticks, the last stick, parts that begin or end inside of one, all.
PARTS = [(0, 64), (64, 192), (256, 300), (0, 126), (70, 90), (100, 300), (298, 300), (0, 300)]
FLOATS = [torch.float16, torch.bfloat16, torch.float32]


def small(dtype, *shape):
    return torch.randint(-2, 3, shape).to(dtype)  # sums of few products are exact in every format


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("begin, end", PARTS)
def test_a_part_with_sticks_along_the_other_dimension(begin, end, dtype):
    """Of an argument and of what was computed; a copy holds the part, and who reads it counts from its beginning."""
    x, w, y = small(dtype, 33, 300), small(dtype, 5, 300), small(dtype, end - begin, 33)
    check(lambda x, y: x[:, begin:end].t() + y, x, y)
    check(lambda v, w, y: (v @ w)[:, begin:end].t() + y, small(dtype, 33, 5), w, y)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("begin, end", PARTS)
def test_parts_of_one_product_multiplied(begin, end, dtype):
    def scores(v, w):
        both = v @ w
        return both[:, begin:end] @ both[:, : end - begin].t()

    check(scores, small(dtype, 33, 2), small(dtype, 2, 300), rtol=8e-3, atol=0.5)  # of sums up to 4800, in bfloat16


@pytest.mark.parametrize("begin, end", PARTS)
def test_a_part_that_is_read_before_and_after_another_is_written(begin, end):
    def twice(x, y):
        both = x * 2
        before = both[:, begin:end].t() + y
        both[:, :begin] = 1
        both[:, end:] = 3
        return before + both[:, begin:end].t() + both.sum()

    check(twice, small(torch.float16, 33, 300), small(torch.float16, end - begin, 33), rtol=2e-3, atol=0.1)
