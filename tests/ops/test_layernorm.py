"""The three steps of a layer normalisation, each on its own, exact in the stated order of fp32 operations.

Moments: lane 0 of a row's stick holds the mean, lane 1 the mean square, the other lanes 0.
"""

import numpy as np
import pytest

from . import formats
from .card import check_op
from .cases import case, ordinary_codes
from .device import round_up, sticks, tensor
from .folding import fold, padded
from .formats import FP16, FP32

BOTH = (FP16, FP32)
SHAPES = {
    "aligned": (4, 128, 1, 1),
    "unaligned": (5, 100, 1, 1),
    "split-2-rows": (6, 100, 2, 1),
    "split-32-rows": (32, 70, 32, 1),
    "split-2-stick": (3, 128, 1, 2),
    "split-2-stick-unaligned": (3, 230, 1, 2),
    "split-32-stick": (2, 2048, 1, 32),
}


def constant(fmt, value):
    return formats.decode(fmt, formats.encode(fmt, np.float64(value)))


def moments(fmt, mean, square):
    """Codes of the sticks that hold them."""
    filled = np.zeros((*mean.shape, formats.lanes(fmt)), formats.code_type(fmt))
    filled[..., 0], filled[..., 1] = formats.encode(fmt, mean), formats.encode(fmt, square)
    return filled


@pytest.mark.parametrize("zero_mean", [0, 1])
@pytest.mark.parametrize("fmt,scenario", [case("exx2", fmt, s, fmt, s) for fmt in BOTH for s in SHAPES])
def test_exx2(card, rng, fmt, scenario, zero_mean):
    rows, columns, *splits = SHAPES[scenario]
    loops = {"r": rows, "c": columns}
    x = tensor("X", loops, ["c", "r"], "c", fmt)
    y = tensor("Y", loops, ["", "r"], None, fmt, arrangement="EXX2")
    codes = ordinary_codes(rng, fmt, (rows, columns))
    values = padded(formats.decode(fmt, codes), 1, round_up(columns, formats.lanes(fmt)), 0)
    scale = constant(fmt, 1 / columns)
    mean = scale * fold(values, 1, splits[1], np.add, 0, formats.lanes(fmt)) * (1 - np.float32(zero_mean))
    square = scale * fold(values * values, 1, splits[1], np.add, 0, formats.lanes(fmt))
    check_op(
        card,
        "exx2",
        [("r", rows, splits[0]), ("c", columns, splits[1])],
        [(x, codes)],
        y,
        moments(fmt, mean, square),
        whole_stick=True,
        zeros_alike=True,
        is_reduction=True,
        constants={"exx2scale": 1 / columns, "useZeroMean": zero_mean},
    )


ROWS = {"rows": (6, 1), "one-row": (1, 1), "split-2": (6, 2), "split-32": (64, 32)}


@pytest.mark.parametrize("fmt,scenario", [case("layernormscale", fmt, s, fmt, s) for fmt in BOTH for s in ROWS])
def test_layernormscale(card, rng, fmt, scenario):
    rows, split = ROWS[scenario]
    loops = {"r": rows}
    x = sticks("X", loops, ["", "r"], None, fmt, arrangement="EXX2")
    y = tensor("Y", loops, ["", "r"], None, fmt)
    mean = rng.normal(0, 1, rows)
    stats = moments(fmt, mean, mean * mean + rng.uniform(0.1, 4, rows))
    m1, m2 = formats.decode(fmt, stats[:, 0]), formats.decode(fmt, stats[:, 1])
    result = np.float32(1) / np.sqrt(m2 - m1 * m1 + constant(fmt, 0.001))
    check_op(
        card,
        "layernormscale",
        [("r", rows, split)],
        [(x, stats)],
        y,
        formats.encode(fmt, result),
        whole_stick=True,
        constants={"eps": 0.001},
    )


@pytest.mark.parametrize("fmt,scenario", [case("layernormnorm", fmt, s, fmt, s) for fmt in BOTH for s in SHAPES])
def test_layernormnorm(card, rng, fmt, scenario):
    rows, columns, *splits = SHAPES[scenario]
    loops = {"r": rows, "c": columns}
    x, y = tensor("X", loops, ["c", "r"], "c", fmt), tensor("Y", loops, ["c", "r"], "c", fmt)
    stats = sticks("S", loops, ["", "r"], None, fmt, arrangement="EXX2")
    norm = tensor("R", loops, ["", "r"], None, fmt)
    weight, bias = tensor("W", loops, ["c"], "c", fmt), tensor("B", loops, ["c"], "c", fmt)
    codes = {t.name: ordinary_codes(rng, fmt, t.extents) for t in (x, norm, weight, bias)}
    rows_stats = moments(fmt, rng.normal(0, 1, rows), rng.uniform(1, 2, rows))
    value = {name: formats.decode(fmt, c) for name, c in codes.items()}
    mean = formats.decode(fmt, rows_stats[:, 0])
    result = (value["X"] - mean[:, None]) * value["R"][:, None] * value["W"] + value["B"]
    check_op(
        card,
        "layernormnorm",
        [("r", rows, splits[0]), ("c", columns, splits[1])],
        [(x, codes["X"]), (stats, rows_stats)] + [(t, codes[t.name]) for t in (norm, weight, bias)],
        y,
        formats.encode(fmt, result),
    )
