"""Copies between tensors of one card that lie differently: the same elements, moved by the card and not by the host."""

import itertools

import pytest
import torch

from tests.sweeps import in_turn

WORDS = [torch.float32, torch.int32, torch.int64]


def numbers(dtype, *shape):
    return torch.arange(torch.Size(shape).numel()).view(shape).to(dtype)


def stays_on_the_card(function):
    torch.spyre.synchronize()
    before = torch.spyre.metrics()
    result = function()
    torch.spyre.synchronize()
    after = torch.spyre.metrics()
    assert after["transfers_to_host"] == before["transfers_to_host"] and not after["fallbacks"]
    return result


@pytest.mark.parametrize("dtype", [torch.float16, *WORDS], ids=str)
@pytest.mark.parametrize(
    "shape, seen_as",
    [((2, 2), (4, 1)), ((3, 4), (12, 1)), ((24, 2), (48,)), ((24, 2), (48, 1)), ((2, 40), (8, 10)), ((2, 40), (80, 1))],
)
def test_rows_seen_as_other_rows(shape, seen_as, dtype):
    x = numbers(dtype, *shape)
    target = torch.empty(seen_as, dtype=dtype, device="spyre")
    found = stays_on_the_card(lambda: target.copy_(x.to("spyre").view(seen_as)))
    assert torch.equal(found.cpu(), x.view(seen_as))


@pytest.mark.parametrize("to", WORDS + [torch.float16], ids=str)
@pytest.mark.parametrize("dtype", WORDS + [torch.float16], ids=str)
def test_conversions_of_what_lies_otherwise(dtype, to):
    x = numbers(dtype, 24, 2)
    found = stays_on_the_card(lambda: x.to("spyre").view(48).to(to))
    assert torch.equal(found.cpu(), x.view(48).to(to))


@pytest.mark.parametrize("shape", [(24, 4), (2, 4), (63, 5), (64, 4), (130, 3), (3, 24, 4), (2, 2, 1, 64)], ids=str)
def test_widened_values_along_any_dimension(shape):
    """Values transposed before they were widened from fp16: sticks along rows, in the order that widening leaves."""
    x = numbers(torch.float16, *shape).remainder(1000)
    for dims in ((-1, -2), (0, -1)):
        transposed = x.transpose(*dims).contiguous().to("spyre").transpose(*dims).float()
        found = stays_on_the_card(lambda transposed=transposed: torch.empty(shape, device="spyre").copy_(transposed))
        assert torch.equal(found.cpu(), x.float())
        rows = stays_on_the_card(lambda transposed=transposed: transposed.sum(-1))
        assert torch.equal(rows.cpu(), x.float().sum(-1))


@pytest.mark.parametrize("dtype", [torch.bool, torch.float16, torch.bfloat16, *WORDS], ids=str)
@pytest.mark.parametrize(
    "padding", [(0, 52), (3, 0), (0, 0, 1, 2), (1, 2, 3, 4), (-2, 5), (0, -12), (2, 2, -1, 0, 1, 1)], ids=str
)
def test_padding(padding, dtype):
    x = numbers(dtype, 2, 3, 12)
    found = stays_on_the_card(lambda: torch.nn.functional.pad(x.to("spyre"), padding))
    assert torch.equal(found.cpu(), torch.nn.functional.pad(x, padding))


@pytest.mark.parametrize("n", [4, 16, 31, 40])
def test_widened_rows_shorter_than_a_stick(n):
    """Heads whose distance is that of two sticks: the pair of sticks is told from the heads."""
    x = numbers(torch.float16, 2, 2, 1, n)
    widened = x.to("spyre").float()
    found = stays_on_the_card(lambda: torch.empty(x.shape, device="spyre").copy_(widened))
    assert torch.equal(found.cpu(), x.float())
    torch.testing.assert_close(widened.softmax(-1).cpu(), x.float().softmax(-1))


@pytest.mark.parametrize("columns", [2, 5, 40])
def test_woven_rows_seen_as_one(columns):
    """The weights of experts, narrowed from float32 and flattened."""
    x = numbers(torch.float16, 24, columns)
    flat = stays_on_the_card(lambda: x.float().to("spyre").half().view(-1, 1).clone())
    assert torch.equal(flat.cpu(), x.view(-1, 1))
    column = stays_on_the_card(lambda: x.float().to("spyre").half().view(-1, 1) * torch.ones(1, 64).half().to("spyre"))
    assert torch.equal(column.cpu(), x.view(-1, 1).expand(-1, 64))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, *WORDS], ids=str)
@pytest.mark.parametrize("tokens", [1, 12])
@pytest.mark.parametrize("part", [slice(16, 32), slice(1, 32, 2), slice(0, 16), slice(3, 19)], ids=str)
def test_a_part_of_two_heads(part, tokens, dtype):
    """Two heads of 16 words are as long as a stick: the batch is told from the sticks along a row."""
    x = numbers(dtype, 2, tokens, 2, 64).remainder(500)
    for transposed in (x, x.transpose(1, 2)):
        on_card = x.to("spyre") if transposed is x else x.to("spyre").transpose(1, 2)
        assert torch.equal(stays_on_the_card(lambda v=on_card: v[..., part].clone()).cpu(), transposed[..., part])
        assert torch.equal(stays_on_the_card(lambda v=on_card: -v[..., part]).cpu(), -transposed[..., part])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("width", [16, 32, 64, 70])
def test_a_part_of_rows_put_side_by_side(width, dtype):
    """Two rows of 32 fp16 values together are as long as a stick: one of them steps as far as sticks do."""
    x = torch.randn(2, 8, width).to(dtype).to("spyre")

    def part(x):
        return torch.stack([x, torch.zeros_like(x)], 2).flatten(1, 2).narrow(1, 0, 15).contiguous()

    assert torch.equal(part(x).cpu(), part(x.cpu()))


@pytest.mark.parametrize("dtype", [torch.float16, *WORDS], ids=str)
@pytest.mark.parametrize("shape", [(2, 4, 4, 5), (3, 33), (65, 2), (2, 3, 40)], ids=str)
def test_sticks_along_any_dimension(shape, dtype):
    x = numbers(dtype, *shape)
    for order in itertools.permutations(range(len(shape))):
        transposed = x.permute(order).contiguous().to("spyre").permute([order.index(d) for d in range(len(shape))])
        found = stays_on_the_card(
            lambda transposed=transposed: torch.empty(shape, dtype=dtype, device="spyre").copy_(transposed)
        )
        assert torch.equal(found.cpu(), x)


@pytest.mark.parametrize("shape", [(2, 12, 128), (2, 2, 12, 64), (24, 128), (3, 40)], ids=str)
def test_writes_into_what_a_conversion_left(shape):
    """float32 narrowed on the card lies in an order of its own, and keeps it."""
    x, y = numbers(torch.float32, *shape).remainder(512), numbers(torch.float32, *shape).remainder(500).half()
    narrowed, other = x.to("spyre").half(), y.to("spyre")
    view = narrowed.view(-1)
    stays_on_the_card(lambda: narrowed.add_(other))
    assert torch.equal(narrowed.cpu(), (x + y).half()) and torch.equal(view.cpu(), (x + y).half().view(-1))
    narrowed = x.to("spyre").half()
    stays_on_the_card(lambda: narrowed.copy_(other))
    assert torch.equal(narrowed.cpu(), y)


def test_patches_behind_a_class_token():
    x = numbers(torch.float16, 2, 17, 128).remainder(1000)
    found = stays_on_the_card(lambda: x.to("spyre")[:, 1:].transpose(1, 2).reshape(2, 128, 4, 4).contiguous())
    assert torch.equal(found.cpu(), x[:, 1:].transpose(1, 2).reshape(2, 128, 4, 4))


STEPS = {
    "rows": lambda x: x[:, ::2],
    "rows of rows": lambda x: x[::3, 1::2],
    "columns": lambda x: x[..., ::2],
    "columns from inside a stick": lambda x: x[..., 1::3],
    "both": lambda x: x[:, ::2, ::2],
    "part of a stick": lambda x: x[..., 3:23],
    "one element": lambda x: x[2, 3, 4],
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bool, *WORDS], ids=str)
@pytest.mark.parametrize("shape", [(4, 9, 25), (4, 10, 65), (5, 7, 64)], ids=str)
@pytest.mark.parametrize("steps", STEPS)
def test_steps_over_rows_and_columns(steps, shape, dtype):
    """No dimension needs to be a multiple of the step, and what is between the steps stays when they are written."""
    view = STEPS[steps]
    x = numbers(torch.int64, *shape).remainder(1000).to(dtype)
    on_card = x.to("spyre")
    assert torch.equal(stays_on_the_card(lambda: view(on_card).contiguous()).cpu(), view(x))
    new = view(x).flip(0) + 1 if view(x).ndim else x[0, 0, 1]
    moved = new.to("spyre")
    stays_on_the_card(lambda: view(on_card).copy_(moved))
    view(x).copy_(new)
    assert torch.equal(on_card.cpu(), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64], ids=str)
@pytest.mark.parametrize("dim, size, step", [(2, 3, 2), (2, 3, 1), (1, 2, 1), (3, 7, 3), (3, 4, 4)])
def test_windows_that_overlap(dim, size, step, dtype):
    x = numbers(dtype, 2, 3, 9, 20).remainder(1000)
    found = stays_on_the_card(lambda: x.to("spyre").unfold(dim, size, step).contiguous())
    assert torch.equal(found.cpu(), x.unfold(dim, size, step))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64], ids=str)
@pytest.mark.parametrize("shape", [(2,), (65,), (1, 65), (3, 65), (3, 33), (129, 2)], ids=str)
def test_flip_and_selection_along_any_dimension(shape, dtype):
    x = numbers(dtype, *shape)
    torch.spyre.reset_metrics()
    on_card = x.to("spyre")
    for dim in range(x.ndim):
        assert torch.equal(on_card.flip(dim).cpu(), x.flip(dim))
        places = torch.tensor([0, -1, 1]).remainder(shape[dim])
        assert torch.equal(on_card.index_select(dim, places.to("spyre")).cpu(), x.index_select(dim, places))
    assert not torch.spyre.metrics()["fallbacks"]


@pytest.mark.parametrize("shape", [(5, 70), (7, 32), (2, 3, 5, 70), (2, 12, 2, 64), (3, 5, 7, 33)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, *WORDS], ids=str)
def test_clones_keep_the_order_of_dimensions(dtype, shape, on_the_card_only):
    x = numbers(dtype, *shape).remainder(1000)
    for order in itertools.permutations(range(len(shape))):
        view = x.to("spyre").permute(order)
        found = view.clone(memory_format=torch.preserve_format)
        assert found.stride() == x.permute(order).clone(memory_format=torch.preserve_format).stride()
        assert torch.equal(found.cpu(), x.permute(order))


@pytest.mark.parametrize(
    "widened, shape", in_turn(["target", "source", "both"], [(2, 12, 2, 64), (2, 3, 5, 70), (3, 5, 7, 32)]), ids=str
)
def test_sums_into_what_a_conversion_left(widened, shape, on_the_card_only):
    """The gradients that meet behind a norm: one was widened, the other not, and their dimensions lie otherwise."""
    x = numbers(torch.float16, *shape).remainder(1000)

    def on_card(values, is_widened):
        return values.to("spyre").float() if is_widened else values.float().to("spyre")

    for order in itertools.permutations(range(len(shape))):
        back = [order.index(d) for d in range(len(shape))]
        for transposed in (False, True):
            a = on_card(x, widened != "source")
            b = on_card(x.permute(order).contiguous(), widened != "target").permute(back)
            target, source = (b, a) if transposed else (a, b)
            assert torch.equal(target.add_(source).cpu(), 2 * x.float())


SIZES = [1, 2, 3, 32, 64, 65]


COLUMN_DTYPES = [torch.bool, torch.float16, torch.float32, torch.int64]


@pytest.mark.parametrize("shape, dtype", in_turn(itertools.product(SIZES, SIZES), COLUMN_DTYPES), ids=str)
def test_columns_written_in_place_leave_the_others(dtype, shape, on_the_card_only):
    torch.full((1 << 16,), 7.0, dtype=torch.float16).to("spyre")  # what is behind the ends of rows is not zero
    x = numbers(dtype, *shape).remainder(100)
    for column in sorted({0, min(1, shape[1] - 1), shape[1] // 2, shape[1] - 1}):
        for rows in (slice(None), slice(0, 1), slice(1, None)):
            card, host = x.to("spyre"), x.clone()
            if host[rows].numel() == 0:
                continue
            for write in (
                lambda t: t.copy_(torch.ones(t.shape, dtype=dtype).to(t.device)),
                lambda t: t.logical_not_() if dtype == torch.bool else t.mul_(3),
                lambda t: t.fill_(0),
            ):
                write(card[rows, column])
                write(host[rows, column])
                assert torch.equal(card.cpu(), host), (column, rows)
