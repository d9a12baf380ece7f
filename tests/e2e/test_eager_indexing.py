"""x[i, j] with several tensors of positions: what it selects, and that all of it is on the card."""

import pytest
import torch

pytestmark = pytest.mark.usefixtures("on_the_card_only")

DTYPES = [torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.int32, torch.int64]
SHAPES = [(1, 12), (2, 12), (2, 64), (1, 65), (2, 65), (3, 100)]


def numbers(dtype, *shape):
    counted = torch.arange(1, 1 + torch.Size(shape).numel()).view(shape)
    return counted.remainder(7 if dtype != torch.bool else 2).to(dtype)


def check(x, *indices):
    expected = x[indices]
    found = x.to("spyre")[tuple(i.to("spyre") if isinstance(i, torch.Tensor) else i for i in indices)]
    assert found.shape == expected.shape
    assert torch.equal(found.cpu(), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_positions_that_count_up(shape, dtype):
    """A model's mask of padding, and a part of it."""
    rows, columns = torch.arange(shape[0]).view(-1, 1, 1, 1), torch.arange(shape[1])
    check(numbers(dtype, *shape), rows, columns)
    check(numbers(dtype, *shape), rows, columns[3:])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_positions_that_vary_together(shape, dtype):
    rows, columns = torch.tensor([0, -1, 0, 0]), torch.tensor([0, 5, -1, 5])
    check(numbers(dtype, *shape), rows, columns)
    check(numbers(dtype, *shape, 70), rows, columns)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_positions_that_vary_together_beside_others(dtype):
    x, last = numbers(dtype, 2, 5, 70), torch.tensor([3, 65, 0, -1])
    check(x, torch.tensor([0, -1, 0, 1]), slice(None), last)  # not neighbours: what is indexed comes first
    check(x, slice(None), torch.tensor([4, 0, -2, 1]), last)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_positions_of_their_own(shape, dtype):
    x = numbers(dtype, shape[0], 5, shape[1])
    rows, others = torch.arange(shape[0])[:, None], torch.tensor([[4, -2, 0]])
    check(x, rows, others)
    check(x, rows, slice(None), torch.tensor([[1, 2, 3]]))  # not neighbours: what is indexed comes first


def test_a_position_that_does_not_exist():
    with pytest.raises(IndexError):
        numbers(torch.float32, 2, 12).to("spyre")[torch.tensor([0, 2]).to("spyre"), torch.tensor([0, 1]).to("spyre")]


@pytest.mark.parametrize("dtype", [torch.int64, torch.float16, torch.float32], ids=str)
def test_rows_of_one_element(dtype):
    x, places = torch.arange(2, 9).to(dtype)[:, None], torch.tensor([1, -1, 1, 0])
    assert torch.equal(x.to("spyre")[places.to("spyre")].cpu(), x[places])


def both_ways(function, *tensors):
    """Eager and compiled, against the CPU."""
    expected = function(*tensors)
    for way in (function, torch.compile(function, fullgraph=True)):
        found = way(*(t.to("spyre") for t in tensors))
        assert found.shape == expected.shape
        assert torch.equal(found.cpu(), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(32,), (1, 32), (1, 65), (1, 1, 33), (1, 7, 1), (40, 1), (1, 1)], ids=str)
def test_one_index_where_nothing_else_is_longer_than_one(shape, dtype):
    """There are no rows to move: elements are chosen one by one, read and written."""
    torch._dynamo.reset()
    dim = max(range(len(shape)), key=lambda d: shape[d])
    at = (slice(None),) * dim
    places = torch.tensor([[0, -1], [shape[dim] // 2, 0]])
    both_ways(lambda x, i: x[(*at, i)], numbers(dtype, *shape), places)

    def written(x, i):
        y = x.clone()
        y[(*at, i)] = x[(*at, i)].logical_not() if x.dtype == torch.bool else x[(*at, i)] + 1
        return y

    both_ways(written, numbers(dtype, *shape), places[:1] if shape[dim] > 1 else places[:1, :1])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(2, 32), (3, 1, 33), (40, 70)], ids=str)
def test_one_index_along_the_stick(shape, dtype):
    """32-bit values are moved as half-words, beside positions that are computed: some count from the end."""
    torch._dynamo.reset()
    both_ways(lambda x, i: x[..., i], numbers(dtype, *shape), torch.tensor([0, -1, 5]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("columns", [1024, 1025])
def test_gathers_and_scatters_along_more_than_16_bits_tell_apart(columns, dtype):
    """The logits of a vocabulary: the card counts to 1024 in its 16-bit floats."""
    torch._dynamo.reset()
    x, places = numbers(dtype, 2, columns), torch.tensor([[0, columns - 1, 1023], [5, 1, columns // 2]])
    both_ways(lambda x, i: x.gather(-1, i), x, places)
    both_ways(lambda x, i: x.scatter(-1, i, 1), x, places)
    both_ways(lambda x, i: x.scatter(-1, i, x[:, 3:6]), x, places)
    if dtype != torch.bool:
        both_ways(lambda x, i: x.scatter_add(-1, i, x[:, 3:6]), x, places)
