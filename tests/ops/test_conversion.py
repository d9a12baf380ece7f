"""Conversions between formats: every value rounded once, and every element in its new place inside the sticks.

The places are the published ones: groups of 4 alternate between 16- and 32-bit sticks, groups of 8 between 8- and
16-bit sticks. `move` functions say where position c of a row sits.
"""

import numpy as np
import pytest

from . import formats
from .card import check_op
from .cases import any_codes, case
from .device import Axis, Tensor, round_up, tensor
from .formats import FP8, FP16, FP32, INT32
from .test_matmul import interleaved


def dl16_to_fp32(c):
    """c = 64p + 8g + 4s + e sits in stick 2p + s, lane 4g + e."""
    return c // 64 * 64 + c // 4 % 2 * 32 + c % 64 // 8 * 4 + c % 4


def fp32_to_dl16(c):
    """c = 64t + 32h + 4g + e sits in stick t, lane 8g + 4h + e."""
    return c // 64 * 64 + c % 32 // 4 * 8 + c % 64 // 32 * 4 + c % 4


STANDARD = (None, "STANDARD")
# op, what it reads, what it writes: format, place inside the sticks, name of the arrangement.
FORMS = {
    "dl16tofp32": (FP16, STANDARD, FP32, (dl16_to_fp32, "DL16_TO_FP32")),
    "fp32todl16": (FP32, STANDARD, FP16, (fp32_to_dl16, "FP32_TO_DL16")),
    "fp32todl16-back": (FP32, (dl16_to_fp32, "DL16_TO_FP32"), FP16, STANDARD),
    "fp8todl16": (FP8, (interleaved, "QFP8CH"), FP16, STANDARD),
    "qfp8ch": (FP16, STANDARD, FP8, (interleaved, "QFP8CH")),
    "fp32toint32": (FP32, STANDARD, INT32, STANDARD),
    "int32tofp32": (INT32, STANDARD, FP32, STANDARD),
}

# rows, columns, splits. A core holds whole sticks of both formats, up to 128 columns.
SHAPES = {
    "aligned": (4, 128, 1, 1),
    "unaligned": (5, 100, 1, 1),
    "short": (3, 5, 1, 1),
    "long": (2, 300, 1, 1),
    "split-2-rows": (6, 100, 2, 1),
    "split-32-rows": (32, 70, 32, 1),
    "split-2-stick": (3, 256, 1, 2),
    "split-32-stick": (2, 4096, 1, 32),
    "split-4-by-8": (4, 1024, 4, 8),
}


def sources(rng, form, shape):
    """Any value there is: codes of all kinds, and for quantisation many inside the fp8 range."""
    source, _, target, _ = FORMS[form]
    if source == INT32:
        return rng.integers(0, 1 << 32, shape, np.uint64).astype(np.uint32)
    if target == INT32:
        return np.where(
            rng.random(shape) < 0.5, any_codes(rng, FP32, shape), formats.encode_fp32(rng.normal(0, 1e5, shape))
        )
    if source == FP8:
        return rng.integers(0, 256, shape).astype(np.uint8)
    if target == FP16:
        return np.where(rng.random(shape) < 0.3, halfway(rng, shape), any_codes(rng, source, shape))
    return any_codes(rng, source, shape)


def halfway(rng, shape):
    """fp32 numbers exactly between two of fp16: both neighbours are as near, and the larger magnitude is right."""
    lower = rng.integers(1, 0x7FFE, shape)
    sign = rng.choice([-1.0, 1.0], shape)
    middle = (formats.decode_sen169(lower).astype(np.float64) + formats.decode_sen169(lower + 1)) / 2
    return formats.encode_fp32(sign * np.nan_to_num(middle))


def both_tensors(form, loops, order):
    source, (from_move, from_name), target, (to_move, to_name) = FORMS[form]
    widest = max(formats.lanes(source), formats.lanes(target))

    def make(name, fmt, move, arrangement):
        wide = widest // formats.lanes(fmt)
        return tensor(name, loops, order, "c", fmt, move=move, arrangement=arrangement, wide=wide)

    return make("X", source, from_move, from_name), make("Y", target, to_move, to_name)


def converted(form, codes):
    source, _, target, _ = FORMS[form]
    return formats.encode(target, formats.decode(source, codes))


SWEEP = [
    case(f.removesuffix("-back"), FORMS[f][0], s + f[len(f.removesuffix("-back")) :], f, s)
    for f in FORMS
    for s in SHAPES
]


@pytest.mark.parametrize("form,scenario", SWEEP)
def test_conversion(card, rng, form, scenario):
    rows, columns, *splits = SHAPES[scenario]
    x, y = both_tensors(form, {"r": rows, "c": columns}, ["c", "r"])
    codes = sources(rng, form, (rows, columns))
    space = [("r", rows, splits[0]), ("c", columns, splits[1])]
    check_op(card, form.removesuffix("-back"), space, [(x, codes)], y, converted(form, codes))


@pytest.mark.parametrize("form", [case(f.removesuffix("-back"), FORMS[f][0], "one-loop" + f[-5:], f) for f in FORMS])
def test_conversion_of_a_vector(card, rng, form):
    """Without rows: the artifact has a row dimension all the same."""
    x, y = both_tensors(form, {"c": 200}, ["c"])
    codes = sources(rng, form, (200,))
    check_op(card, form.removesuffix("-back"), [("c", 200, 1)], [(x, codes)], y, converted(form, codes))


@pytest.mark.parametrize("form", [case(f, FORMS[f][0], "every-code", f) for f in ("dl16tofp32", "qfp8ch", "fp8todl16")])
def test_conversion_of_every_code(card, form):
    source = FORMS[form][0]
    codes = np.arange(1 << formats.BITS[source], dtype=formats.code_type(source)).reshape(-1, 128)
    x, y = both_tensors(form, {"r": codes.shape[0], "c": 128}, ["c", "r"])
    check_op(card, form, [("r", codes.shape[0], 1), ("c", 128, 1)], [(x, codes)], y, converted(form, codes))


def pair_sticks(name, k, n, lane_text, lane):
    """fp8 sticks that hold 64 columns of two rows; both loops are rounded up to the 128 elements of a stick."""
    axes = [
        Axis(round_up(n, 128) // 64, "floor(n/64)", lambda at: at["n"] // 64),
        Axis(round_up(k, 2) // 2, "floor(k/2)", lambda at: at["k"] // 2),
        Axis(128, lane_text, lane),
    ]
    padded = {"n": round_up(n, 128), "k": round_up(k, 128)}
    return Tensor(name, FP8, ["k", "n"], [k, n], axes, padded, arrangement="QFP8WT")


WEIGHTS = {
    "aligned": (128, 128, 1, 1),
    "unaligned": (128, 100, 1, 1),
    "split-2-rows": (128, 70, 2, 1),
    "split-32-rows": (256, 64, 32, 1),
    "split-2-stick": (128, 128, 1, 2),
    "split-32-stick": (128, 2048, 1, 32),
}
PAIRS = {
    # The two rows alternate with every element, or follow each other.
    "qfp8wt": ("Mod(k, 2) + 2*Mod(n, 64)", lambda at: at["k"] % 2 + 2 * (at["n"] % 64)),
    "qfp8mb": ("Mod(n, 64) + 64*Mod(k, 2)", lambda at: at["n"] % 64 + 64 * (at["k"] % 2)),
}


@pytest.mark.parametrize("op,scenario", [case(op, FP16, s, op, s) for op in PAIRS for s in WEIGHTS])
def test_quantisation_of_pairs_of_rows(card, rng, op, scenario):
    k, n, *splits = WEIGHTS[scenario]
    x = tensor("X", {"k": k, "n": n}, ["n", "k"], "n", wide=2)
    y = pair_sticks("Y", k, n, *PAIRS[op])
    codes = any_codes(rng, FP16, (k, n))
    space = [("k", k, splits[0]), ("n", n, splits[1])]
    check_op(card, op, space, [(x, codes)], y, formats.quantise_e4m3(formats.decode_sen169(codes)))
