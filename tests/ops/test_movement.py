"""Copies: nothing is computed, so every code must arrive unchanged, NaN payloads included."""

import numpy as np
import pytest

from . import device, formats
from .card import INPUT_FILL, OUTPUT_FILL, check_op, compare
from .cases import case
from .device import Axis, Tensor, round_up, tensor
from .formats import FP8, FP16, FP32, INT32

COPIED = (FP16, FP32, INT32, FP8, "SEN152_FP8", "SENINT8", "SENUINT32", "BFLOAT16", "IEEE_FP16")


def bits(rng, fmt, shape):
    return rng.integers(0, 1 << formats.BITS[fmt], shape, np.uint64).astype(formats.code_type(fmt))


# rows, columns, splits, order of the input and of the output, cut of the input and of the output
PLAIN = (["c", "r"], ["c", "r"], {}, {})
COPIES = {
    "aligned": (4, 256, 1, 1, *PLAIN),
    "unaligned": (5, 100, 1, 1, *PLAIN),
    "other-order": (5, 300, 1, 1, ["c", "r"], ["r", "c"], {}, {}),
    "slice": (3, 100, 1, 1, ["c", "r"], ["c", "r"], {"rows_more": {"r": 4, "c": 1}, "start": {"r": 2, "c": 1}}, {}),
    "into-a-slice": (3, 100, 1, 1, ["c", "r"], ["c", "r"], {}, {"rows_more": {"r": 4}, "start": {"r": 2}}),
    "split-2-rows": (6, 100, 2, 1, *PLAIN),
    "split-32-rows": (32, 70, 32, 1, *PLAIN),
    "split-2-stick": (3, 256, 1, 2, *PLAIN),
    "split-32-stick": (2, 4096, 1, 32, *PLAIN),
    "split-4-by-8": (4, 1024, 4, 8, *PLAIN),
    "split-other-order": (4, 512, 2, 4, ["c", "r"], ["r", "c"], {}, {}),
}


@pytest.mark.parametrize("fmt,scenario", [case("identity", fmt, s, fmt, s) for fmt in COPIED for s in COPIES])
def test_copy(card, rng, fmt, scenario):
    rows, columns, row_split, column_split, from_order, to_order, from_cut, to_cut = COPIES[scenario]
    loops = {"r": rows, "c": columns}
    x = tensor("X", loops, from_order, "c", fmt, **from_cut)
    y = tensor("Y", loops, to_order, "c", fmt, **to_cut)
    codes = bits(rng, fmt, (rows, columns))
    check_op(card, "identity", [("r", rows, row_split), ("c", columns, column_split)], [(x, codes)], y, codes)


@pytest.mark.parametrize(
    "fmt,lacks", [case("identity", fmt, f"expand-{s}", fmt, s) for fmt in COPIED for s in ("r", "c")]
)
def test_expand(card, rng, fmt, lacks):
    """A copy that broadcasts: over rows, or one lane over whole sticks."""
    loops = {"r": 3, "c": 100}
    x = tensor("X", loops, ["c"] if lacks == "r" else ["", "r"], "c" if lacks == "r" else None, fmt)
    y = tensor("Y", loops, ["c", "r"], "c", fmt)
    codes = bits(rng, fmt, x.extents)
    expected = np.broadcast_to(codes[None, :] if lacks == "r" else codes[:, None], (3, 100))
    check_op(card, "identity", [("r", 3, 1), ("c", 100, 1)], [(x, codes)], y, expected)


# rows, columns, splits; sticks change from columns to rows.
TURNS = {
    "aligned": (128, 192, 1, 1),
    "unaligned": (100, 70, 1, 1),
    "unaligned-rows": (100, 128, 1, 1),
    "unaligned-columns": (64, 100, 1, 1),
    "small": (3, 5, 1, 1),
    "split-2-rows": (128, 100, 2, 1),
    "split-2-columns": (70, 128, 1, 2),
    "split-32-rows": (2048, 64, 32, 1),
    "split-32-columns": (64, 2048, 1, 32),
    "split-4-by-8": (256, 512, 4, 8),
}


@pytest.mark.parametrize("scenario", [case("ReStickifyOpHBM", FP16, s, s) for s in TURNS])
def test_restickify(card, rng, scenario):
    rows, columns, *splits = TURNS[scenario]
    loops = {"r": rows, "c": columns}
    x, y = tensor("X", loops, ["c", "r"], "c"), tensor("Y", loops, ["r", "c"], "r")
    codes = bits(rng, FP16, (rows, columns))
    check_op(card, "ReStickifyOpHBM", [("r", rows, splits[0]), ("c", columns, splits[1])], [(x, codes)], y, codes)


@pytest.mark.parametrize("split", [case("ReStickifyOpHBM", FP16, f"three-loops-{n}", n) for n in (1, 2)])
def test_restickify_of_three_loops(card, rng, split):
    loops = {"a": 4, "r": 70, "c": 100}
    x, y = tensor("X", loops, ["a", "c", "r"], "c"), tensor("Y", loops, ["a", "r", "c"], "r")
    codes = bits(rng, FP16, (4, 70, 100))
    space = [("a", 4, split), ("r", 70, 1), ("c", 100, 1)]
    check_op(card, "ReStickifyOpHBM", space, [(x, codes)], y, codes)


# ---- gather and scatter --------------------------------------------------------------------------------------------


def table(name, rows, columns, fmt, index, stick="c"):
    """A tensor whose rows are chosen by an index tensor."""
    width = formats.lanes(fmt)
    axes = [
        Axis(round_up(columns, width) // width, f"floor({stick}/{width})", lambda at: at[stick] // width),
        Axis(rows, f"IndirectAccess('{index}')", lambda at: at["row"]),
        Axis(width, f"Mod({stick}, {width})", lambda at: at[stick] % width),
    ]
    padded = {stick: round_up(columns, width)}
    return Tensor(name, fmt, ["row", stick], [rows, columns], axes, padded)


# table rows, picks, columns, splits of picks and columns
GATHERS = {
    "aligned": (10, 4, 128, 1, 1),
    "unaligned": (7, 5, 100, 1, 1),
    "more-picks-than-rows": (3, 20, 64, 1, 1),
    "many-index-sticks": (50, 96, 70, 1, 1),
    "split-2-picks": (10, 4, 100, 2, 1),
    "split-32-picks": (20, 64, 64, 32, 1),
    "split-2-columns": (10, 5, 128, 1, 2),
    "split-32-columns": (5, 3, 2048, 1, 32),
    "split-whole-index-sticks": (9, 64, 64, 2, 1),
}


@pytest.mark.parametrize(
    "fmt,scenario", [case("identity", fmt, f"gather-{s}", fmt, s) for fmt in (FP16, FP32) for s in GATHERS]
)
def test_gather(card, rng, fmt, scenario):
    rows, picks, columns, *splits = GATHERS[scenario]
    loops = {"i": picks, "c": columns}
    index = tensor("idx", loops, ["i"], "i", "SENUINT32")
    values, y = table("T", rows, columns, fmt, "idx"), tensor("Y", loops, ["c", "i"], "c", fmt)
    where = rng.integers(0, rows, picks).astype(np.uint32)
    codes = bits(rng, fmt, (rows, columns))
    space = [("i", picks, splits[0]), ("c", columns, splits[1])]
    # Index padding is read only where the loop is padded, and it is not.
    check_op(card, "identity", space, [(index, where), (values, codes)], y, codes[where])


@pytest.mark.parametrize("op,fmt", [case("add", fmt, "gather", "add", fmt) for fmt in (FP16, FP32)])
def test_gather_into_arithmetic(card, rng, op, fmt):
    """Any pointwise op may read through an index."""
    loops = {"i": 6, "c": 100}
    index = tensor("idx", loops, ["i"], "i", "SENUINT32")
    values, x = table("T", 9, 100, fmt, "idx"), tensor("X", loops, ["c", "i"], "c", fmt)
    y = tensor("Y", loops, ["c", "i"], "c", fmt)
    where = rng.integers(0, 9, 6).astype(np.uint32)
    codes, other = (formats.encode(fmt, rng.normal(0, 1, n)) for n in ((9, 100), (6, 100)))
    total = formats.decode(fmt, codes[where]) + formats.decode(fmt, other)
    space = [("i", 6, 1), ("c", 100, 1)]
    check_op(card, op, space, [(index, where), (values, codes), (x, other)], y, formats.encode(fmt, total))


SCATTERS = {
    "aligned": (10, 4, 128, 1, 1),
    "unaligned": (7, 5, 100, 1, 1),
    "split-2-picks": (10, 4, 100, 2, 1),
    "split-32-picks": (64, 32, 64, 32, 1),
    "split-2-columns": (10, 5, 128, 1, 2),
}


@pytest.mark.parametrize(
    "fmt,scenario", [case("identity", fmt, f"scatter-{s}", fmt, s) for fmt in (FP16, FP32) for s in SCATTERS]
)
def test_scatter(card, rng, fmt, scenario):
    rows, picks, columns, *splits = SCATTERS[scenario]
    loops = {"i": picks, "c": columns}
    index = tensor("idx", loops, ["i"], "i", "SENUINT32")
    x, y = tensor("X", loops, ["c", "i"], "c", fmt), table("Y", rows, columns, fmt, "idx")
    where = rng.permutation(rows)[:picks].astype(np.uint32)  # what happens to a row written twice is open
    codes, before = bits(rng, fmt, (picks, columns)), bits(rng, fmt, (rows, columns))
    expected = before.copy()
    expected[where] = codes
    space = [("i", picks, splits[0]), ("c", columns, splits[1])]
    initial = y.pack(before, OUTPUT_FILL[formats.BITS[fmt]])
    check_op(card, "identity", space, [(index, where), (x, codes)], y, expected, before=initial)


# ---- relayout between scratchpads ----------------------------------------------------------------------------------

# rows, columns, how cores divide (rows, columns) before and after.
SHUFFLES = {
    "rows-to-columns": (4, 256, (2, 1), (1, 2)),
    "columns-to-rows": (4, 256, (1, 2), (2, 1)),
    "32-rows-to-columns": (32, 4096, (32, 1), (1, 32)),
    "grid-to-rows": (8, 512, (2, 4), (8, 1)),
    "same": (4, 128, (4, 1), (4, 1)),
}


def division(splits):
    rows, columns = splits
    owner = {
        "r": f"Mod(core_id, {rows})",
        "c": f"Mod(floor(core_id/{rows}), {columns})" if rows > 1 else f"Mod(core_id, {columns})",
    }
    return "work_division={" + f"r: ({rows}, {owner['r']}), c: ({columns}, {owner['c']})" + "}"


@pytest.mark.parametrize(
    "fmt,scenario", [case("shuffle", fmt, s, fmt, s) for fmt in (FP16, FP32, FP8) for s in SHUFFLES]
)
def test_shuffle(card, rng, fmt, scenario):
    rows, columns, before, after = SHUFFLES[scenario]
    loops = {"r": rows, "c": columns}

    def make(name, place):
        return tensor(name, loops, ["c", "r"], "c", fmt, place=place)

    half = 1 << 20
    spaces = [[("r", rows, s[0]), ("c", columns, s[1])] for s in (before, after)]
    x, y = make("X", "hbm=0"), make("Y", "hbm=1")
    ops = [
        device.op_text("identity", spaces[0], [x], make("A", "lx=0")),
        device.op_text(
            "shuffle", spaces[1], [make("A", f"lx=0 {division(before)}")], make("B", f"lx={half} {division(after)}")
        ),
        device.op_text("identity", spaces[1], [make("B", f"lx={half}")], y),
    ]
    codes = bits(rng, fmt, (rows, columns))
    kernel = device.kernel_text([(x, "input"), (y, "output")], ops)
    memories = [x.pack(codes, INPUT_FILL[formats.BITS[fmt]]), y.blank(OUTPUT_FILL[formats.BITS[fmt]])]
    compare(fmt, card.run(kernel, memories)[1][y.elements()], codes, kernel)
