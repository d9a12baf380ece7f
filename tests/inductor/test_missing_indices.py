"""An index that does not exist is never ignored: eager calls raise, compiled programs raise or fault."""

import pytest
import torch
import torch.nn.functional as F
import torch_spyre._C

ROWS = 10


@pytest.fixture(autouse=True)
def reset_after_faults():
    """A fault is the end of its stream."""
    yield
    torch_spyre._C._reset_device(0)


def table(dtype=torch.float16):
    return torch.arange(ROWS * 70, dtype=torch.float32).reshape(ROWS, 70).remainder(50).to(dtype)


def grid(index):
    return index.view(-1, 1).expand(-1, 70).contiguous()


def values(index):
    return torch.ones(index.numel(), 70, dtype=torch.float16)


# function(table, index): rows of the table by index.
OPERATORS = {
    "gather": lambda x, i: x.gather(0, grid(i)),
    "index": lambda x, i: x[i],
    "index_add": lambda x, i: x.index_add(0, i, values(i).to(x.device)),
    "index_copy": lambda x, i: x.index_copy(0, i, values(i).to(x.device)),
    "index_put": lambda x, i: x.index_put((i,), values(i).to(x.device)),
    "index_select": lambda x, i: x.index_select(0, i),
    "index_select_of_part": lambda x, i: torch.cat([x, x])[ROWS // 2 : ROWS // 2 + ROWS].index_select(0, i),
    "embedding": lambda x, i: F.embedding(i, x),
    "scatter": lambda x, i: x.scatter(0, grid(i), values(i).to(x.device)),
    "scatter_add": lambda x, i: x.scatter_add(0, grid(i), values(i).to(x.device)),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, grid(i), values(i).to(x.device), "amax"),
    "scatter_value": lambda x, i: x.scatter(0, grid(i), 2.0),
    "take": lambda x, i: x[:, 0].contiguous().take(i),
    "one_hot": lambda x, i: F.one_hot(i, ROWS),
    "cross_entropy": lambda x, i: F.cross_entropy(x.t()[: i.numel()].contiguous(), i),
    "nll_loss": lambda x, i: F.nll_loss(x.t()[: i.numel()].contiguous(), i, reduction="none"),
}
GOOD = [0, 3, 9, 3]
BAD = {"past the end": [0, 3, 10, 3], "far past the end": [0, 1 << 20, 1, 2], "before the start": [0, -11, 1, 2]}
AS_MANY_AS_ROWS = [0, 3, 9, 3, 1, 2, 10, 4, 5, 6]


def run(function, x, index, compiled):
    function = torch.compile(function) if compiled else function
    result = function(x.to("spyre"), torch.tensor(index).to("spyre"))
    return result.cpu()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", OPERATORS)
def test_an_index_that_exists(name, compiled):
    function, x = OPERATORS[name], table()
    index = [0, 3, 9, 1] if name in ("index_copy", "index_put", "scatter") else GOOD
    found = run(function, x, index, compiled)
    expected = function(x.float() if name in ("cross_entropy", "nll_loss") else x, torch.tensor(index))
    torch.testing.assert_close(found.float(), expected.float(), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("bad", [*BAD, "as many as rows"])
@pytest.mark.parametrize("name", OPERATORS)
def test_an_index_that_does_not_exist(name, bad, compiled):
    index = AS_MANY_AS_ROWS if bad == "as many as rows" else BAD[bad]
    with pytest.raises((RuntimeError, IndexError)):
        run(OPERATORS[name], table(), index, compiled)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("name", ["gather", "index_select", "scatter_value"])
def test_of_every_type(name, dtype, compiled):
    with pytest.raises((RuntimeError, IndexError)):
        run(OPERATORS[name], table(dtype), BAD["past the end"], compiled)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_table_that_is_a_part_of_another(compiled):
    """Rows behind the part exist in memory, but not in the program."""
    whole = torch.randn(3 * ROWS, 64, dtype=torch.float16)
    function = torch.compile(torch.index_select) if compiled else torch.index_select
    part = whole.to("spyre")[ROWS : 2 * ROWS]
    good = torch.tensor([0, 9])
    assert torch.equal(function(part, 0, good.to("spyre")).cpu(), whole.to("spyre")[ROWS : 2 * ROWS].cpu()[good])
    for index in ([0, ROWS], [0, -1]):
        torch_spyre._C._reset_device(0)
        with pytest.raises((RuntimeError, IndexError)):
            function(part, 0, torch.tensor(index).to("spyre")).cpu()


ROWS_OF_A_PART = {
    "index_select": lambda t, i: torch.index_select(t[:ROWS], 0, i) + 1,
    "embedding": lambda t, i: F.embedding(i, t[:ROWS]) + 1,
    "index": lambda t, i: t[:ROWS][i] + 1,
    "in the middle": lambda t, i: torch.index_select(t[ROWS : 2 * ROWS], 0, i) + 1,
    "of a computed one": lambda t, i: torch.index_select((t * 2)[:ROWS], 0, i),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", ROWS_OF_A_PART)
def test_a_part_that_the_program_takes(name, compiled):
    whole = torch.randn(3 * ROWS, 64, dtype=torch.float16).to("spyre")
    meaning = ROWS_OF_A_PART[name]
    function = torch.compile(meaning) if compiled else meaning
    good = torch.tensor([0, 9])
    found = function(whole, good.to("spyre")).cpu()
    torch.testing.assert_close(found, meaning(whole.cpu(), good), rtol=2e-3, atol=2e-3)
    torch_spyre._C._reset_device(0)
    with pytest.raises((RuntimeError, IndexError)):
        function(whole, torch.tensor([0, ROWS]).to("spyre")).cpu()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_classes_to_ignore_are_ignored(compiled):
    x, target = torch.randn(6, 20, dtype=torch.float16), torch.tensor([1, -100, 19, 0, -100, 5])
    function = torch.compile(F.cross_entropy) if compiled else F.cross_entropy
    found = function(x.to("spyre"), target.to("spyre")).cpu().float()
    torch.testing.assert_close(found, F.cross_entropy(x.float(), target), rtol=2e-2, atol=2e-2)
    for wrong in (20, -1, -99):
        torch_spyre._C._reset_device(0)
        with pytest.raises((RuntimeError, IndexError)):
            function(x.to("spyre"), torch.where(target == 5, wrong, target).to("spyre")).cpu()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_positions_from_the_end_are_positions(compiled):
    x = torch.randn(ROWS, 70, dtype=torch.float16)
    found = run(lambda x, i: x[i], x, [-1, -10, 3], compiled)
    assert torch.equal(found, x.to("spyre").cpu()[torch.tensor([-1, -10, 3])])
