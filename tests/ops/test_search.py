"""The largest values and where they are, values kept by index, and the scale of a token: exact."""

import numpy as np
import pytest

from . import formats
from .card import check_op
from .cases import case, ordinary_codes
from .device import round_up, tensor
from .folding import padded
from .formats import FP16, FP32

BOTH = (FP16, FP32)
# ranks, columns (the stick), searched rows, splits of ranks and columns.
SHAPES = {
    "aligned": (4, 128, 10, 1, 1),
    "unaligned": (3, 100, 7, 1, 1),
    "all-of-them": (4, 64, 4, 1, 1),
    "split-2-ranks": (8, 64, 20, 2, 1),
    "split-32-ranks": (32, 64, 40, 32, 1),
    "split-2-stick": (4, 128, 10, 1, 2),
    "split-32-stick": (2, 2048, 5, 1, 32),
    "split-4-by-8": (16, 512, 20, 4, 8),
}


def ranking(values):
    """Positions along the last axis, largest first; equal values keep their order; NaN ranks above every number."""
    key = np.where(np.isnan(values), np.inf, values)
    first = np.argsort(~np.isnan(values), axis=-1, kind="stable")
    by_nan = np.take_along_axis(key, first, -1)
    return np.take_along_axis(first, np.argsort(-by_nan, axis=-1, kind="stable"), -1)


def searched(rng, fmt, columns, rows):
    """Few distinct values, so that many are equal, and a NaN here and there."""
    codes = formats.encode(fmt, rng.integers(-6, 7, (columns, rows)) / 4).astype(formats.code_type(fmt))
    codes[rng.random(codes.shape) < 0.03] = formats.encode(fmt, np.float64("nan"))
    return codes


def expected_topk(op, fmt, codes, ranks):
    order = ranking(formats.decode(fmt, codes))[:, :ranks]
    if op == "topkindex":
        return formats.encode(fmt, order.astype(np.float64))
    return formats.encode(fmt, np.take_along_axis(formats.decode(fmt, codes), order, -1))


TOPK = [case(op, fmt, s, op, fmt, s) for op in ("topkvalue", "topkindex") for fmt in BOTH for s in SHAPES]


@pytest.mark.parametrize("op,fmt,scenario", TOPK)
def test_topk(card, rng, op, fmt, scenario):
    ranks, columns, rows, *splits = SHAPES[scenario]
    loops = {"k": ranks, "c": columns, "r": rows}
    x = tensor("X", loops, ["c", "r"], "c", fmt)
    y = tensor("Y", loops, ["c", "k"], "c", fmt)
    codes = searched(rng, fmt, columns, rows)
    check_op(
        card,
        op,
        [("k", ranks, splits[0]), ("c", columns, splits[1]), ("r", rows, 1)],
        [(x, codes)],
        y,
        expected_topk(op, fmt, codes, ranks).T,
        is_reduction=True,
    )


@pytest.mark.parametrize(
    "op,fmt", [case(op, fmt, "k-is-1", op, fmt) for op in ("topkvalue", "topkindex") for fmt in BOTH]
)
def test_the_largest_alone_has_no_rank_loop(card, rng, op, fmt):
    loops = {"c": 100, "r": 9}
    x, y = tensor("X", loops, ["c", "r"], "c", fmt), tensor("Y", loops, ["c", ""], "c", fmt)
    codes = searched(rng, fmt, 100, 9)
    space = [("c", 100, 1), ("r", 9, 1)]
    check_op(card, op, space, [(x, codes)], y, expected_topk(op, fmt, codes, 1)[:, 0], is_reduction=True)


KEEP = {
    "aligned": (10, 128, 4, 1, 1),
    "unaligned": (7, 100, 3, 1, 1),
    "split-2-rows": (10, 70, 4, 2, 1),
    "split-32-rows": (32, 64, 4, 32, 1),
    "split-2-stick": (6, 128, 4, 1, 2),
    "split-32-stick": (5, 2048, 2, 1, 32),
}


@pytest.mark.parametrize("scenario", [case("keepbyindex", FP16, s, s) for s in KEEP])
def test_keepbyindex(card, rng, scenario):
    rows, columns, listed, *splits = KEEP[scenario]
    loops = {"r": rows, "c": columns, "k": listed}
    x, y = tensor("X", loops, ["c", "r"], "c"), tensor("Y", loops, ["c", "r"], "c")
    indices = tensor("I", loops, ["c", "k"], "c")
    codes = ordinary_codes(rng, FP16, (rows, columns))
    picks = rng.integers(0, rows, (columns, listed))
    kept = (picks[None, :, :] == np.arange(rows)[:, None, None]).any(-1)
    check_op(
        card,
        "keepbyindex",
        [("r", rows, splits[0]), ("c", columns, splits[1]), ("k", listed, 1)],
        [(x, codes), (indices, formats.encode(FP16, picks))],
        y,
        np.where(kept, codes, 0),
        is_reduction=True,
    )


SCALES = {
    "aligned": (4, 128, 1, 1),
    "unaligned": (5, 100, 1, 1),
    "split-2-rows": (6, 100, 2, 1),
    "split-32-rows": (32, 70, 32, 1),
    "split-2-stick": (3, 200, 1, 2),
    "split-32-stick": (2, 2048, 1, 32),
}


@pytest.mark.parametrize("scenario", [case("quantscalepertokenfp8", FP16, s, s) for s in SCALES])
def test_scale_of_each_token(card, rng, scenario):
    rows, columns, *splits = SCALES[scenario]
    loops = {"r": rows, "c": columns}
    x, y = tensor("X", loops, ["c", "r"], "c"), tensor("Y", loops, ["", "r"], None)
    codes = ordinary_codes(rng, FP16, (rows, columns), 100.0)
    codes[0] = 0  # a token of zeros gets the smallest scale
    constants = {"clipMin": 2.0**-23, "clipMax": 65504.0, "mulConst": 1 / 448}
    low, high, factor = (formats.decode_sen169(formats.encode_sen169(v)) for v in constants.values())
    values = padded(formats.decode_sen169(codes), 1, round_up(columns, 64), 0)
    result = np.minimum(np.maximum(np.abs(values).max(1) * factor, low), high)
    check_op(
        card,
        "quantscalepertokenfp8",
        [("r", rows, splits[0]), ("c", columns, splits[1])],
        [(x, codes)],
        y,
        formats.encode_sen169(result),
        whole_stick=True,
        is_reduction=True,
        constants=constants,
    )
