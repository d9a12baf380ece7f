"""Rows that positions choose, read and written: every length around sticks, sources that lie in every way, eager and
compiled. The card's bundles are its compiler's own, so that a fault of the device is a failure, too."""

import pytest
import torch

from tests.sweeps import in_turn

pytestmark = pytest.mark.usefixtures("on_the_card_only")

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.int32, torch.int64, torch.bool]
LENGTHS = [1, 2, 31, 32, 33, 63, 64, 65, 66, 95, 96, 97, 127, 128, 129, 191, 192, 193, 200]
ROOM = 4  # rows behind those that are written


def numbers(dtype, *shape):
    counted = torch.arange(1, 1 + torch.Size(shape).numel()).view(shape)
    return counted.remainder(251 if dtype != torch.bool else 2).to(dtype)


# A source [1, 2, n, 64] as attention makes it, of n rows.
LAYOUTS = {
    "rows": lambda dtype, n: numbers(dtype, 1, 2, n, 64),
    "heads of a projection": lambda dtype, n: numbers(dtype, 1, n, 128).view(1, n, 2, 64).transpose(1, 2),
    "batch and heads": lambda dtype, n: numbers(dtype, 2, 1, n, 64).transpose(0, 1),
    "columns": lambda dtype, n: numbers(dtype, 1, 2, 64, n).transpose(2, 3),
    "a part": lambda dtype, n: numbers(dtype, 1, 3, n + 2, 128)[:, 1:, 1:-1, 64:],
    "every second": lambda dtype, n: numbers(dtype, 1, 2, 2 * n, 64)[:, :, ::2],
}


def turned(x):
    """Rotated by half, as rotary embeddings do: a result of the card, which lies as the card likes."""
    return torch.cat([x[..., 32:], x[..., :32]], -1)


def index_copy(cache, places, source):
    return cache.index_copy_(2, places, source)


def index_add(cache, places, source):
    return cache.index_add_(2, places, source)


def index_put(cache, places, source):
    cache[:, :, places] = source
    return cache


def index_select(cache, places, source):
    return source.index_select(2, places - places.min())


def slice_scatter(cache, places, source):
    return cache.slice_scatter(source, 2, 1, 1 + source.shape[2])


def gather(cache, places, source):
    return cache.gather(2, places[None, None, :, None].expand(1, 2, -1, 64))


def scatter(cache, places, source):
    return cache.scatter(2, places[None, None, :, None].expand(1, 2, -1, 64), source)


MOVES = [index_copy, index_put, index_select, slice_scatter, index_add, gather, scatter]


def check(move, dtype, n, layout, compiled, change=lambda x: x):
    cache, places = numbers(dtype, 1, 2, n + ROOM, 64), torch.arange(n).flip(0) + 1
    make = LAYOUTS[layout]
    expected = move(cache.clone(), places, change(make(dtype, n)))
    torch._dynamo.reset()
    moved = torch.compile(move, fullgraph=True) if compiled else move
    source = {"rows": make}.get(layout, make)(dtype, n)
    # The card's own copy keeps the strides of what is copied where they are dense; views are made there again.
    found = moved(cache.to("spyre"), places.to("spyre"), change(on_card(source)))
    assert found.shape == expected.shape
    assert torch.equal(found.cpu(), expected)


def on_card(source):
    """The same view of a base on the card."""
    base = source._base if source._base is not None else source
    return base.to("spyre").as_strided(source.shape, source.stride(), source.storage_offset())


@pytest.mark.parametrize(
    "move, dtype, layout, compiled, n",
    in_turn(MOVES, DTYPES, LAYOUTS, [False, True], LENGTHS, one_in=19),
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_rows_of_every_length(move, dtype, layout, compiled, n):
    if move is index_add and dtype == torch.bool:
        pytest.skip("PyTorch does not add truth values")
    check(move, dtype, n, layout, compiled)


@pytest.mark.parametrize("n", [*LENGTHS, *(pytest.param(n, marks=pytest.mark.full) for n in range(1, 201))])
def test_keys_that_were_turned(n):
    """What a static cache is given for a prompt of n tokens."""
    check(index_copy, torch.float16, n, "heads of a projection", False, turned)


@pytest.mark.parametrize("dtype, n", in_turn(DTYPES, [1, 2, 31, 64, 65, 100]))
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("shape", [(1,), (1, 1), (2,)], ids=str)
def test_rows_of_one_element(shape, dtype, n, compiled):
    x, source = numbers(dtype, n + ROOM, *shape), numbers(dtype, n, *shape)
    places = torch.arange(n).flip(0) + 1

    def copied(x, places, source):
        return x.index_copy(0, places, source), x.index_copy_(0, places, source), x[places]

    expected = copied(x.clone(), places, source)
    torch._dynamo.reset()
    found = (torch.compile(copied) if compiled else copied)(*(t.to("spyre") for t in (x, places, source)))
    assert all(torch.equal(f.cpu(), e) for f, e in zip(found, expected, strict=True))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [1025, 3000, pytest.param(100_000, marks=pytest.mark.full)])
def test_more_elements_than_pairs_are_compared(dtype, n):
    """Along the only dimension: as rows that the card finds by their number."""
    generator = torch.Generator().manual_seed(n)
    x, other = numbers(dtype, n), numbers(dtype, n).flip(0).contiguous()
    places, mask = torch.randperm(n, generator=generator), torch.rand(n, generator=generator) > 0.5

    def chosen(x, other, places, mask):
        return (
            x.gather(0, places), x[places], x.index_select(0, places), x.flip(0), x.scatter(0, places, other),
            x.scatter(0, places[: n // 2], 1), x.index_put((places,), other), x.masked_scatter(mask, other),
        )  # fmt: skip

    expected = chosen(x, other, places, mask)
    found = chosen(*(t.to("spyre") for t in (x, other, places, mask)))
    assert all(torch.equal(f.cpu(), e) for f, e in zip(found, expected, strict=True))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kept", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("n", [100, 1025, 9240, pytest.param(100_000, marks=pytest.mark.full)])
def test_long_masks_select(n, kept, dtype):
    x, mask = numbers(dtype, n), torch.rand(n, generator=torch.Generator().manual_seed(n)) < kept
    expected = x.masked_select(mask)
    assert torch.equal(x.to("spyre").masked_select(mask.to("spyre")).cpu(), expected)
    assert torch.equal(torch.compile(torch.masked_select)(x.to("spyre"), mask.to("spyre")).cpu(), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_many_positions_in_several_rows(dtype):
    x, places = numbers(dtype, 3, 1500), torch.randperm(1500, generator=torch.Generator().manual_seed(0)).repeat(3, 1)
    for dim in (0, 1):
        index, each = (places % 3, x) if dim == 0 else (places, x)
        assert torch.equal(each.to("spyre").gather(dim, index.to("spyre")).cpu(), each.gather(dim, index))
    written = x.scatter(1, places, numbers(dtype, 3, 1500).flip(1))
    found = x.to("spyre").scatter(1, places.to("spyre"), numbers(dtype, 3, 1500).flip(1).to("spyre"))
    assert torch.equal(found.cpu(), written)
