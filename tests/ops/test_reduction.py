"""Reductions over the stick (one stick per result, all lanes alike) and over other loops (lane by lane).

Exact: maxima have no rounding, and sums are made in the stated order (folding.py). Lanes behind the data hold NaN in
memory; a mask replaces them by a number that changes nothing.
"""

import numpy as np
import pytest

from . import formats
from .card import check_op
from .cases import case, ordinary_codes
from .device import round_up, tensor
from .folding import fold, padded
from .formats import FP16, FP32

STEP = {
    "max": (np.maximum, -np.inf, -65504.0),
    "min": (np.minimum, np.inf, 65504.0),
    "mean": (np.add, 0.0, 0.0),
    "sum": (np.add, 0.0, 0.0),
    "prod": (np.multiply, 1.0, None),
}
STICK = ["max", "mean", "min", "sum"]

# rows, columns, splits of (rows, columns); columns are the stick.
SHAPES = {
    "aligned": (4, 128, 1, 1),
    "unaligned": (5, 100, 1, 1),
    "one-element": (3, 1, 1, 1),
    "one-lane-over": (2, 65, 1, 1),
    "split-2-rows": (6, 100, 2, 1),
    "split-32-rows": (32, 70, 32, 1),
    "split-2-columns": (3, 128, 1, 2),
    "split-2-columns-unaligned": (3, 230, 1, 2),
    "split-32-columns": (2, 2048, 1, 32),
    "split-32-columns-unaligned": (2, 2030, 1, 32),
    "split-4-by-8": (8, 512, 4, 8),
}


def constants_of(op, reduced):
    return {"scaling_factor": 1.0 / reduced} if op == "mean" else {}


def finish(op, fmt, folded, reduced):
    """The last step of a mean multiplies by a constant of the op's format."""
    if op != "mean":
        return formats.encode(fmt, folded)
    factor = formats.decode(fmt, formats.encode(fmt, np.float64(1.0 / reduced)))
    return formats.encode(fmt, (np.float32(factor) * folded).astype(np.float32))


def numbers(rng, op, fmt, shape):
    # A product of many numbers must stay in range.
    if op == "prod":
        return formats.encode(fmt, rng.uniform(0.8, 1.25, shape) * rng.choice([-1, 1], shape)).astype(
            formats.code_type(fmt)
        )
    return ordinary_codes(rng, fmt, shape, 3.0)


def fold_codes(op, fmt, codes, axis, splits, extent=None, mask=None):
    step, first, _ = STEP[op]
    values = formats.decode(fmt, codes)
    if mask is not None:
        values = padded(values, axis, extent, formats.decode(fmt, formats.encode(fmt, np.float64(mask))))
    with np.errstate(all="ignore"):
        # What is masked runs along the stick.
        lanes = 1 if mask is None else formats.lanes(fmt)
        return finish(op, fmt, fold(values, axis, splits, step, first, lanes), codes.shape[axis])


STICK_CASES = [case(op, fmt, s, op, fmt, s) for op in STICK for fmt in (FP16, FP32) for s in SHAPES]


@pytest.mark.parametrize("op,fmt,scenario", STICK_CASES)
def test_over_the_stick(card, rng, op, fmt, scenario):
    rows, columns, row_split, column_split = SHAPES[scenario]
    loops = {"r": rows, "c": columns}
    x = tensor("X", loops, ["c", "r"], "c", fmt)
    y = tensor("Y", loops, ["", "r"], None, fmt)
    codes = numbers(rng, op, fmt, (rows, columns))
    expected = fold_codes(op, fmt, codes, 1, column_split, round_up(columns, formats.lanes(fmt)), STEP[op][2])
    check_op(
        card,
        op,
        [("r", rows, row_split), ("c", columns, column_split)],
        [(x, codes)],
        y,
        expected,
        whole_stick=True,
        is_reduction=True,
        constants=constants_of(op, columns),
    )


@pytest.mark.parametrize("op,fmt", [case(op, fmt, "to-a-scalar", op, fmt) for op in STICK for fmt in (FP16, FP32)])
def test_a_vector_to_a_scalar(card, rng, op, fmt):
    x, y = tensor("X", {"c": 150}, ["c"], "c", fmt), tensor("Y", {"c": 150}, [""], None, fmt)
    codes = numbers(rng, op, fmt, (150,))
    expected = fold_codes(op, fmt, codes, 0, 1, round_up(150, formats.lanes(fmt)), STEP[op][2])
    check_op(
        card,
        op,
        [("c", 150, 1)],
        [(x, codes)],
        y,
        expected,
        whole_stick=True,
        is_reduction=True,
        constants=constants_of(op, 150),
    )


# columns (the stick, kept), reduced rows, splits of both.
OTHER_SHAPES = {
    "aligned": (128, 4, 1, 1),
    "unaligned": (100, 5, 1, 1),
    "one-row": (70, 1, 1, 1),
    "split-2-columns": (128, 5, 2, 1),
    "split-32-columns": (2048, 3, 32, 1),
    "split-2-reduced": (100, 6, 1, 2),
    "split-32-reduced": (70, 64, 1, 32),
    "split-4-by-8": (256, 16, 4, 8),
}
OTHER_CASES = [case(op + "nonstick", fmt, s, op, fmt, s) for op in STEP for fmt in (FP16, FP32) for s in OTHER_SHAPES]


@pytest.mark.parametrize("op,fmt,scenario", OTHER_CASES)
def test_over_another_loop(card, rng, op, fmt, scenario):
    columns, rows, column_split, row_split = OTHER_SHAPES[scenario]
    loops = {"c": columns, "r": rows}
    x = tensor("X", loops, ["c", "r"], "c", fmt)
    y = tensor("Y", loops, ["c"], "c", fmt)
    codes = numbers(rng, op, fmt, (columns, rows))
    check_op(
        card,
        op,
        [("c", columns, column_split), ("r", rows, row_split)],
        [(x, codes)],
        y,
        fold_codes(op, fmt, codes, 1, row_split),
        is_reduction=True,
        constants=constants_of(op, rows),
    )


THREE = [case(op + "nonstick", fmt, "middle-loop", op, fmt) for op in STEP for fmt in (FP16, FP32)]


@pytest.mark.parametrize("op,fmt", THREE)
def test_over_the_middle_of_three(card, rng, op, fmt):
    loops = {"a": 3, "c": 70, "r": 4}
    x = tensor("X", loops, ["a", "r", "c"], "c", fmt)
    y = tensor("Y", loops, ["c", "a"], "c", fmt)
    codes = numbers(rng, op, fmt, (3, 70, 4))
    check_op(
        card,
        op,
        [("a", 3, 1), ("c", 70, 1), ("r", 4, 2)],
        [(x, codes)],
        y,
        fold_codes(op, fmt, codes, 2, 2),
        is_reduction=True,
        constants=constants_of(op, 4),
    )


@pytest.mark.parametrize("op,fmt", [case(op, fmt, "nan", op, fmt) for op in STICK for fmt in (FP16, FP32)])
def test_nan_is_not_lost(card, rng, op, fmt):
    x, y = tensor("X", {"r": 3, "c": 70}, ["c", "r"], "c", fmt), tensor("Y", {"r": 3, "c": 70}, ["", "r"], None, fmt)
    codes = numbers(rng, op, fmt, (3, 70))
    codes[1, 40] = formats.encode(fmt, np.float64("nan"))
    expected = fold_codes(op, fmt, codes, 1, 1, round_up(70, formats.lanes(fmt)), STEP[op][2])
    assert formats.is_nan(fmt, expected).tolist() == [False, True, False]
    check_op(
        card,
        op,
        [("r", 3, 1), ("c", 70, 1)],
        [(x, codes)],
        y,
        expected,
        whole_stick=True,
        is_reduction=True,
        constants=constants_of(op, 70),
    )
