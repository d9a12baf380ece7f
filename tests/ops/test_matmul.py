"""Matrix products in fp16 and fp8, exact: products of two 16- or 8-bit numbers fit fp32, and sums are made in order.

K is padded to whole sticks with zeros, as the graph must; padding of N holds NaN and must not spread.
"""

import dataclasses

import numpy as np
import pytest

from . import formats
from .card import check_op
from .cases import case, ordinary_codes
from .device import Axis, Tensor, round_up, tensor
from .folding import fold, padded
from .formats import FP8, FP16


def product(x, w, splits, k_padded):
    """x (..., M, K) times w (..., K, N): the sum over k in order, slice after slice."""
    x, w = padded(x, -1, k_padded, 0), padded(w, -2, k_padded, 0)
    terms = x[..., :, :, None] * w[..., None, :, :]  # exact in fp32
    return fold(terms, -2, splits, np.add, 0.0)


def zero_k_padding(t, codes, k, k_padded):
    """Memory of an operand: NaN where nothing is, zero in the padding of K."""
    widths = [(0, k_padded - n if s == k else 0) for s, n in zip(t.symbols, t.extents, strict=True)]
    extents = [n + w[1] for n, w in zip(t.extents, widths, strict=True)]
    return dataclasses.replace(t, extents=extents), np.pad(codes, widths)


# M, N, K, splits of the three.
SHAPES = {
    "aligned": (8, 128, 128, 1, 1, 1),
    "unaligned": (5, 100, 70, 1, 1, 1),
    "one-row": (1, 100, 130, 1, 1, 1),
    "one-k": (3, 64, 1, 1, 1, 1),
    "many-rows": (70, 65, 64, 1, 1, 1),
    "split-2-m": (6, 70, 100, 2, 1, 1),
    "split-32-m": (32, 64, 64, 32, 1, 1),
    "split-2-n": (3, 128, 70, 1, 2, 1),
    "split-32-n": (2, 2048, 64, 1, 32, 1),
    "split-2-k": (4, 70, 128, 1, 1, 2),
    "split-2-k-unaligned": (4, 70, 200, 1, 1, 2),
    "split-32-k": (2, 64, 2048, 1, 1, 32),
    "split-2-by-4-by-4": (4, 256, 256, 2, 4, 4),
}


@pytest.mark.parametrize("shape", [case("batchmatmul", FP16, name, s) for name, s in SHAPES.items()])
def test_matmul(card, rng, shape):
    m, n, k, *splits = shape
    kp = round_up(k, 64)
    wide = {"m": m, "n": n, "k": kp}
    loops = {"m": m, "n": n, "k": k}
    x, w = tensor("X", loops, ["k", "m"], "k"), tensor("W", wide, ["n", "k"], "n")
    y = tensor("Y", loops, ["n", "m"], "n")
    a, b = ordinary_codes(rng, FP16, (m, k)), ordinary_codes(rng, FP16, (n, k))
    expected = product(formats.decode(FP16, a), formats.decode(FP16, b).T, splits[2], kp)
    gx, ga = zero_k_padding(x, a, "k", kp)
    check_op(
        card,
        "batchmatmul",
        [("m", m, splits[0]), ("n", n, splits[1]), ("k", k, splits[2])],
        [(gx, ga), (w, np.pad(b, [(0, 0), (0, kp - k)]))],
        y,
        formats.encode(FP16, expected),
        is_reduction=True,
        k_first=True,
    )


# batch, and who has it.
BATCHES = {
    "batch": (3, "xw", 1),
    "batch-split": (4, "xw", 2),
    "batch-broadcast-left": (3, "w", 1),
    "batch-broadcast-right": (3, "x", 1),
    "batch-32": (32, "xw", 32),
}


@pytest.mark.parametrize("batch,has,split", [case("batchmatmul", FP16, name, *b) for name, b in BATCHES.items()])
def test_batched_matmul(card, rng, batch, has, split):
    m, n, k = 3, 70, 64
    loops = {"b": batch, "m": m, "n": n, "k": k}
    x = tensor("X", loops, ["b", "k", "m"] if "x" in has else ["k", "m"], "k")
    w = tensor("W", loops, ["b", "n", "k"] if "w" in has else ["n", "k"], "n")
    y = tensor("Y", loops, ["b", "n", "m"], "n")
    a, b = ordinary_codes(rng, FP16, x.extents), ordinary_codes(rng, FP16, w.extents)
    left, right = formats.decode(FP16, a), np.swapaxes(formats.decode(FP16, b), -1, -2)
    left = np.broadcast_to(left, (batch, m, k))
    right = np.broadcast_to(right, (batch, k, n))
    check_op(
        card,
        "batchmatmul",
        [("b", batch, split), ("m", m, 1), ("n", n, 1), ("k", k, 1)],
        [(x, a), (w, b)],
        y,
        formats.encode(FP16, product(left, right, 1, k)),
        is_reduction=True,
        k_first=True,
    )


@pytest.mark.parametrize("k", [case("batchmatmul", FP16, "one-column", 70)])
def test_matrix_times_vector(card, rng, k):
    """N = 1 has no loop: W and the result hold one column, one stick per row."""
    m, kp = 5, round_up(k, 64)
    loops = {"m": m, "k": k}
    x = tensor("X", loops, ["k", "m"], "k")
    w = tensor("W", {"m": m, "k": kp}, ["", "k"], None)
    y = one_column(tensor("Y", loops, ["", "m"], None))
    a, b = ordinary_codes(rng, FP16, (m, k)), ordinary_codes(rng, FP16, (k,))
    expected = product(formats.decode(FP16, a), formats.decode(FP16, b)[:, None], 1, kp)[:, 0]
    gx, ga = zero_k_padding(x, a, "k", kp)
    check_op(
        card,
        "batchmatmul",
        [("m", m, 1), ("k", k, 1)],
        [(gx, ga), (w, np.pad(b, (0, kp - k)))],
        y,
        formats.encode(FP16, expected),
        is_reduction=True,
        k_first=True,
    )


def one_column(t):
    """Results of one column fill lane 0; the rest of the stick is padding of N."""
    rest = t.elements()[..., None] + np.arange(1, formats.lanes(t.fmt))
    t.padding = lambda: rest.ravel()
    return t


def fp8_weights(name, n, k):
    """Sticks of two k by 64 n: lane = 2 * (n mod 64) + k mod 2. Both loops are rounded up to a stick's 128."""
    axes = [
        Axis(round_up(n, 128) // 64, "floor(n/64)", lambda at: at["n"] // 64),
        Axis(round_up(k, 2) // 2, "floor(k/2)", lambda at: at["k"] // 2),
        Axis(128, "Mod(k, 2) + 2*Mod(n, 64)", lambda at: at["k"] % 2 + 2 * (at["n"] % 64)),
    ]
    return Tensor(name, FP8, ["n", "k"], [n, k], axes, {"n": round_up(n, 128)}, arrangement="QFP8WT")


def interleaved(column):
    """QFP8CH: column 64h + 8g + e of a pair of fp16 sticks sits in lane 16g + 8h + e."""
    stick, c = column // 128 * 128, column % 128
    return stick + c % 64 // 8 * 16 + c // 64 * 8 + c % 8


FP8_SHAPES = {
    "aligned": (8, 128, 128, 1, 1, 1),
    "unaligned": (5, 100, 70, 1, 1, 1),
    "one-row": (1, 64, 256, 1, 1, 1),
    "split-2-m": (6, 70, 128, 2, 1, 1),
    "split-32-m": (32, 64, 128, 32, 1, 1),
    "split-2-n": (3, 128, 128, 1, 2, 1),
    "split-32-n": (2, 2048, 128, 1, 32, 1),
    "split-2-k": (4, 70, 256, 1, 1, 2),
    "split-32-k": (2, 64, 4096, 1, 1, 32),
}


@pytest.mark.parametrize("shape", [case("batchmatmulfp8", FP8, name, s) for name, s in FP8_SHAPES.items()])
def test_fp8_matmul(card, rng, shape):
    m, n, k, *splits = shape
    kp = round_up(k, 128)
    loops = {"m": m, "n": n, "k": k}
    x = tensor("X", loops, ["k", "m"], "k", FP8, move=interleaved, arrangement="QFP8CH")
    w = fp8_weights("W", n, kp)
    y = tensor("Y", loops, ["n", "m"], "n", wide=2)
    a, b = ordinary_codes(rng, FP8, (m, k), 2.0), ordinary_codes(rng, FP8, (n, k), 2.0)
    expected = product(formats.decode(FP8, a), formats.decode(FP8, b).T, splits[2], kp)
    gx, ga = zero_k_padding(x, a, "k", kp)
    check_op(
        card,
        "batchmatmulfp8",
        [("m", m, splits[0]), ("n", n, splits[1]), ("k", k, splits[2])],
        [(gx, ga), (w, np.pad(b, [(0, 0), (0, kp - k)]))],
        y,
        formats.encode(FP16, expected),
        is_reduction=True,
        k_first=True,
    )
