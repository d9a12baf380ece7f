"""Tensors made of numbers: as PyTorch makes them on the CPU, and no fallback (ADR 0070)."""

import pytest
import torch

pytestmark = [
    pytest.mark.usefixtures("on_the_card_only"),
    pytest.mark.filterwarnings("ignore:torch.range is deprecated"),
]

FLOATS, WORDS = [torch.float16, torch.bfloat16, torch.float32], [torch.int32, torch.int64]
NARROW = [torch.bool, torch.uint8, torch.int8, torch.int16]

FACTORIES = {
    "eye": (lambda **k: torch.eye(5, 70, **k), FLOATS + WORDS + NARROW),
    "a tall eye": (lambda **k: torch.eye(1500, 64, **k), FLOATS + WORDS + NARROW),
    "no eye": (lambda **k: torch.eye(0, **k), FLOATS + WORDS),
    "linspace": (lambda **k: torch.linspace(-3, 7, 1000, **k), FLOATS + WORDS),
    "linspace of one": (lambda **k: torch.linspace(-3, 7, 1, **k), FLOATS + WORDS),
    "logspace": (lambda **k: torch.logspace(-2, 3, 65, **k), FLOATS),
    "range": (lambda **k: torch.range(1, 9, 2, **k), FLOATS + WORDS),
    "arange": (lambda **k: torch.arange(100, **k), FLOATS + WORDS + NARROW[1:]),
    "arange down": (lambda **k: torch.arange(10, -50, -3, **k), FLOATS + WORDS + NARROW[2:]),
    "arange by fractions": (lambda **k: torch.arange(0.5, 9, 2.5, **k), FLOATS + WORDS),
    "full": (lambda **k: torch.full((3, 70), 3, **k), FLOATS + WORDS + NARROW),
    "tril_indices": (lambda **k: torch.tril_indices(50, 70, 1, **k), WORDS),
    "triu_indices": (lambda **k: torch.triu_indices(50, 70, -1, **k), WORDS),
    "scalar_tensor": (lambda **k: torch.scalar_tensor(1, **k), FLOATS + WORDS + NARROW),
    "hann_window": (lambda **k: torch.hann_window(65, **k), FLOATS),
    "kaiser_window": (lambda **k: torch.kaiser_window(65, **k), FLOATS),
    "kaiser_window with beta": (lambda **k: torch.kaiser_window(65, False, 3.0, **k), FLOATS),
}
CASES = [
    pytest.param(make, dtype, id=f"{name}-{dtype}") for name, (make, dtypes) in FACTORIES.items() for dtype in dtypes
]
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 2e-2, torch.float32: 1e-6}  # windows are computed on the card


@pytest.mark.parametrize("make, dtype", CASES)
def test_a_factory(make, dtype):
    expected, found = make(dtype=dtype), make(dtype=dtype, device="spyre")
    assert found.device.type == "spyre" and found.dtype == dtype and found.shape == expected.shape
    allowed = TOLERANCE.get(dtype, 0)
    torch.testing.assert_close(found.cpu(), expected, rtol=allowed, atol=allowed)


@pytest.mark.parametrize("size", [(7, 7), (0,)], ids=str)
@pytest.mark.parametrize("dtype", FLOATS + WORDS + NARROW, ids=str)
def test_factories_that_write_into_a_tensor(dtype, size):
    for make in (lambda out: torch.eye(7, out=out), lambda out: torch.eye(7, 80, out=out)):
        out = torch.empty(size, dtype=dtype, device="spyre")
        assert make(out) is out
        assert torch.equal(out.cpu(), make(torch.empty(0, dtype=dtype)))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_results_replace_what_no_type_can_hold(dtype):
    # Bytes that are no numbers of the type: what uninitialised memory may hold.
    expected = torch.eye(7, 80, dtype=dtype)
    for _ in range(8):
        torch.full((200,), float("nan"), dtype=torch.float16, device="spyre")  # gone at once; its memory is next
        out = torch.empty((7, 7), dtype=dtype, device="spyre")
        torch.eye(7, 80, out=out)
        assert torch.equal(out.cpu(), expected)


def test_a_result_behind_the_start_of_a_storage_keeps_what_is_before_it():
    base = torch.arange(4, dtype=torch.float32, device="spyre")
    out = base[2:]
    torch.arange(10, 15, dtype=torch.float32, device="spyre", out=out)
    assert out.cpu().tolist() == [10, 11, 12, 13, 14] and base.cpu().tolist() == [0, 1, 10, 11]


@pytest.mark.parametrize("dtype", FLOATS + WORDS, ids=str)
@pytest.mark.parametrize("offset", [0, 1, -2, 65])
def test_a_matrix_with_a_diagonal(offset, dtype):
    for n in (1, 5, 70):
        x = torch.arange(1, n + 1).to(dtype)
        assert torch.equal(torch.diag(x.to("spyre"), offset).cpu(), torch.diag(x, offset))
        rows = torch.stack([x, x.flip(0)])
        found = torch.diag_embed(rows.to("spyre"), offset, 0, 2)
        assert torch.equal(found.cpu(), torch.diag_embed(rows, offset, 0, 2))


def test_a_factory_is_neither_counted_nor_announced(recwarn):
    torch.spyre.reset_metrics()
    torch.spyre.set_fallback_mode("warn")
    try:
        torch.linspace(0, 1, 7, device="spyre"), torch.randperm(9, device="spyre")
    finally:
        torch.spyre.set_fallback_mode("error")
    assert not torch.spyre.metrics()["fallbacks"]
    assert not [w for w in recwarn if "fall" in str(w.message)]
