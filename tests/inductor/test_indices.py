"""x[i, j]: elements and rows by position, in compiled programs."""

import pytest
import torch
from torch_spyre._inductor import kernels

from tests.inductor.harness import use_compiler

TYPES = [torch.float16, torch.bfloat16, torch.float32, torch.int64, torch.int32, torch.bool]
ROWS, COLUMNS = [1, -1, 3], [0, 6, -7]

# function(x, i, j), and the shape of x.
INDICES = {
    "rows": (lambda x, i, j: x[i], (5, 70)),
    "rows in two dimensions": (lambda x, i, j: x[i[:, None].expand(3, 2)], (5, 70)),
    "one row": (lambda x, i, j: torch.ops.aten.index.Tensor(x, [i[1]]), (5, 70)),
    "columns": (lambda x, i, j: x[:, j], (5, 70)),
    "elements of a row": (lambda x, i, j: x[j], (65,)),
    "elements": (lambda x, i, j: x[i, j], (5, 64)),
    "rows of two dimensions": (lambda x, i, j: x[i, j], (5, 7, 63)),
    "the last two": (lambda x, i, j: x[:, i, j], (5, 7, 70)),
    "one between": (lambda x, i, j: x[i, :, j], (5, 7, 70)),
    "a grid": (lambda x, i, j: x[i[:, None], j], (5, 70)),
    "three": (lambda x, i, j: x[i[:, None], j, i], (5, 7, 70)),
    "a part of a tensor": (lambda x, i, j: x[1:6, ::2][i, j], (8, 70)),
    "turned": (lambda x, i, j: x.t()[i, j], (70, 5)),
    "an axis and a number": (lambda x, i, j: x[i, 3, j], (5, 7, 70)),
}


def values(dtype, *shape):
    return torch.randint(0, 2 if dtype == torch.bool else 90, shape).to(dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", INDICES)
def test_by_position(name, dtype, monkeypatch):
    function, shape = INDICES[name]
    positions = torch.tensor(ROWS), torch.tensor(COLUMNS)
    use_compiler(monkeypatch).check(function, values(dtype, *shape), *positions, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("shape,count", [((3000,), 1500), ((50, 70), 1500), ((2, 3, 700), 2048)])
def test_more_elements_than_pairs_can_be_compared(shape, count, dtype, both):
    positions = [torch.randint(-n, n, (count,)) for n in shape]
    both.check(lambda x, *positions: x[positions], values(dtype, *shape), *positions, rtol=0, atol=0)


@pytest.mark.parametrize("bad", [5, -6, 1 << 20])
@pytest.mark.parametrize("name", ["elements", "rows of two dimensions", "one between", "a grid"])
def test_a_position_that_does_not_exist(name, bad):
    import torch_spyre._C

    function, shape = INDICES[name]
    positions = torch.tensor([1, bad, 3]), torch.tensor(COLUMNS)
    try:
        with pytest.raises((RuntimeError, IndexError)):
            torch.compile(function)(*(t.to("spyre") for t in (values(torch.float16, *shape), *positions))).cpu()
    finally:
        torch_spyre._C._reset_device(0)  # a fault is the end of its stream


def mask(x, rows, columns, start=0):
    """As transformers makes masks: aranges along axes of their own."""
    i = torch.arange(rows, device=x.device)[:, None, None, None]
    j = torch.arange(start, start + columns, device=x.device)[None, None, None, :] + 0
    return x[i, j]


COUNTED = {
    "all": lambda x: mask(x, 3, 1200),
    "a part": lambda x: mask(x, 2, 64),
    "a part from 7 on": lambda x: mask(x, 3, 130, 7),
    "one row": lambda x: mask(x[:1], 1, 70),
    "columns first": lambda x: mask(x, 3, 70).permute(3, 0, 1, 2),
    "of int32": lambda x: x[torch.arange(3, device=x.device).int()[:, None], torch.arange(70, device=x.device).int()],
    "columns": lambda x: x[:, torch.arange(64, device=x.device)],
}


@pytest.mark.parametrize("dtype", TYPES[:5], ids=str)
@pytest.mark.parametrize("name", COUNTED)
def test_positions_that_count_are_views(name, dtype, both):
    """Of x more than pairs could be compared, and where the result is as x lies nothing runs but the sum."""
    both.check(lambda x: COUNTED[name](x) + 1, values(dtype, 3, 1200), rtol=0, atol=0)
    if both.on_card and dtype == torch.float16 and name in ("all", "a part", "one row", "of int32", "columns"):
        assert len(kernels.traffic()) == 1


@pytest.mark.parametrize("name", COUNTED)
def test_positions_that_count_have_results_of_their_own(name, both):
    both.check(COUNTED[name], values(torch.bool, 3, 1200))


def test_what_is_written_after_it_was_read(both):
    def f(x):
        before = mask(x, 3, 70)
        x.add_(1)
        return before * 2

    both.check(f, values(torch.float16, 3, 70), rtol=0, atol=0)


def put(x, place, values):
    x = x.clone()
    x[place] = values
    return x


PUTS = {
    "rows": (lambda x, i, v: x.index_put((i,), v[:, None]), (5, 70)),
    "elements of a row": (lambda x, i, v: x.index_put((i,), v), (65,)),
    "elements of a row of one": (lambda x, i, v: put(x, (slice(None), i), v), (1, 64)),
    "elements in place": (lambda x, i, v: x.clone().index_put_((i,), v) + v[0], (65,)),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("name", PUTS)
def test_put_at_positions(name, dtype, monkeypatch):
    function, shape = PUTS[name]
    given = values(dtype, *shape), torch.tensor(ROWS), values(dtype, 3)
    use_compiler(monkeypatch).check(function, *given, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bool], ids=str)
def test_put_into_columns(dtype, both):
    """Of 16 bits: words are moved as rows only."""
    given = values(dtype, 5, 70), torch.tensor(ROWS), values(dtype, 3)
    both.check(lambda x, i, v: put(x, (slice(None), i), v), *given, rtol=0, atol=0)


def test_positions_that_are_written_twice_add_up(both):
    x, values = torch.zeros(65, dtype=torch.float16), torch.tensor([1.0, 2, 3], dtype=torch.float16)
    both.check(lambda x, i, v: x.index_put((i,), v, True), x, torch.tensor([1, -1, 1]), values)
