"""Layouts nobody would think of: random loops, memory orders, broadcasts, gaps and splits, with a fixed seed.

A failure prints its kernel; the number in the case's name is all that is needed to make it again.
"""

import numpy as np
import pytest

from . import formats
from .card import check_op
from .cases import any_codes, case, ordinary_codes
from .conftest import SEED
from .device import round_up, tensor
from .formats import FP16, FP32
from .test_matmul import product, zero_k_padding
from .test_pointwise import EITHER_ZERO, EXACT, INPUTS, expected_codes, on_the_grid
from .test_reduction import STEP, STICK, constants_of, fold_codes, numbers

BOTH = (FP16, FP32)


def draw_loops(rng, names, stick, most_points=20000):
    """Short loops, and one longer one that the sticks run along."""
    while True:
        loops = {s: int(rng.integers(1, 7)) for s in names}
        loops[stick] = int(rng.choice([1, 5, 32, 63, 64, 65, 100, 128, 192, 256, 320]))
        if np.prod(list(loops.values())) <= most_points:
            return loops


def draw_splits(rng, loops, steps):
    """Slices that divide each loop into whole steps (a stick, or one), at most 32 in all."""
    splits = dict.fromkeys(loops, 1)
    for symbol in rng.permutation(list(loops)):
        whole = round_up(loops[symbol], steps.get(symbol, 1)) // steps.get(symbol, 1)
        fits = [n for n in range(1, 33) if whole % n == 0 and n * np.prod(list(splits.values())) <= 32]
        splits[symbol] = int(rng.choice(fits))
    return splits


def draw_tensor(rng, name, loops, has, stick, fmt, gaps=True):
    """Axes in any order, some longer than their loop."""
    order = [s for s in has if s != stick] + ([stick] if stick in has else [""])
    order = [str(s) for s in rng.permutation(order)]
    more = {s: int(rng.integers(0, 3)) for s in has} if gaps and rng.random() < 0.4 else {}
    start = {s: int(rng.integers(0, n + 1)) for s, n in more.items()}
    return tensor(name, loops, order, stick if stick in has else None, fmt, rows_more=more, start=start)


def seeded(kind, number):
    return np.random.default_rng([SEED, *kind.encode(), number])


def pointwise_cases(count):
    for i in range(count):
        rng = seeded("pointwise", i)
        op, fmt = str(rng.choice(sorted(EXACT))), str(rng.choice(BOTH))
        if op not in ("clip",):
            yield case(op, fmt, f"random-{i}", op, fmt, i)


@pytest.mark.parametrize("op,fmt,number", pointwise_cases(150))
def test_random_pointwise(card, op, fmt, number):
    rng = seeded("pointwise data", number)
    names = [str(s) for s in rng.permutation(list("abcd"))][: rng.integers(1, 5)]
    stick = str(rng.choice(names))
    loops = draw_loops(rng, names, stick)
    splits = draw_splits(rng, loops, {stick: formats.lanes(fmt)})
    inputs = []
    for i in range(INPUTS[op]):
        has = [s for s in names if rng.random() < 0.75]
        inputs.append(draw_tensor(rng, f"X{i}", loops, has, stick, fmt))
    out = draw_tensor(rng, "Y", loops, names, stick, fmt)
    codes = [any_codes(rng, fmt, t.extents) for t in inputs]
    spread = [on_the_grid(t, c, out) for t, c in zip(inputs, codes, strict=True)]
    check_op(
        card,
        op,
        [(s, n, splits[s]) for s, n in loops.items()],
        list(zip(inputs, codes, strict=True)),
        out,
        expected_codes(op, fmt, spread, {}),
        zeros_alike=op in EITHER_ZERO,
    )


def reduction_cases(count):
    for i in range(count):
        rng = seeded("reduction", i)
        op, fmt = str(rng.choice(sorted(STEP))), str(rng.choice(BOTH))
        over_stick = op in STICK and rng.random() < 0.5
        yield case(op if over_stick else op + "nonstick", fmt, f"random-{i}", op, fmt, over_stick, i)


@pytest.mark.parametrize("op,fmt,over_stick,number", reduction_cases(100))
def test_random_reduction(card, op, fmt, over_stick, number):
    rng = seeded("reduction data", number)
    names = [str(s) for s in rng.permutation(list("abc"))][: rng.integers(1 if over_stick else 2, 4)]
    stick = names[-1] if over_stick else names[0]  # the reduced loop comes last
    reduced = names[-1]
    loops = draw_loops(rng, names, stick)
    loops[reduced] = max(2, loops[reduced])
    splits = draw_splits(rng, loops, {stick: formats.lanes(fmt)})
    kept = names[:-1]
    x = draw_tensor(rng, "X", loops, names, stick, fmt)
    y = draw_tensor(rng, "Y", loops, kept, stick, fmt)
    codes = numbers(rng, op, fmt, x.extents)
    padded = round_up(loops[reduced], formats.lanes(fmt))
    mask = (padded, STEP[op][2]) if over_stick else ()
    check_op(
        card,
        op,
        [(s, n, splits[s]) for s, n in loops.items()],
        [(x, codes)],
        y,
        fold_codes(op, fmt, codes, len(names) - 1, splits[reduced], *mask),
        whole_stick=over_stick,
        is_reduction=True,
        constants=constants_of(op, loops[reduced]),
    )


@pytest.mark.parametrize("number", [case("batchmatmul", FP16, f"random-{i}", i) for i in range(60)])
def test_random_matmul(card, number):
    rng = seeded("matmul data", number)
    batch = ["b", "d"][: rng.integers(0, 3)]
    loops = {s: int(rng.integers(1, 4)) for s in batch}
    loops |= {
        "m": int(rng.integers(1, 9)),
        "n": int(rng.choice([1, 64, 65, 128])),
        "k": int(rng.choice([3, 64, 100, 128])),
    }
    steps = {"n": 64, "k": 64}
    splits = draw_splits(rng, loops, steps)
    kp = round_up(loops["k"], 64)
    wide = loops | {"k": kp}
    only_left = [s for s in batch if rng.random() < 0.2][:1]  # at most two loops of X and the result alone
    x = draw_tensor(rng, "X", loops, [*batch, "m", "k"], "k", FP16, gaps=False)
    w = draw_tensor(rng, "W", wide, [*[s for s in batch if s not in only_left], "n", "k"], "n", FP16, gaps=False)
    y = draw_tensor(rng, "Y", loops, [*batch, "m", "n"], "n", FP16)
    a = ordinary_codes(rng, FP16, x.extents)
    b = ordinary_codes(rng, FP16, [loops[s] for s in w.symbols])
    left = formats.decode(FP16, a)
    right = np.swapaxes(formats.decode(FP16, b), -1, -2)
    for axis, s in enumerate(batch):
        if s in only_left:
            right = np.expand_dims(right, axis)
    right = np.broadcast_to(right, [*[loops[s] for s in batch], loops["k"], loops["n"]])
    gx, ga = zero_k_padding(x, a, "k", kp)
    check_op(
        card,
        "batchmatmul",
        [(s, n, splits[s]) for s, n in loops.items()],
        [(gx, ga), (w, np.pad(b, [(0, 0)] * (b.ndim - 1) + [(0, kp - loops["k"])]))],
        y,
        formats.encode(FP16, product(left, right, splits["k"], kp)),
        is_reduction=True,
        k_first=True,
    )


@pytest.mark.parametrize("number", [case("ReStickifyOpHBM", FP16, f"random-{i}", i) for i in range(40)])
def test_random_restickify(card, number):
    rng = seeded("restickify data", number)
    names = [str(s) for s in rng.permutation(list("abc"))][: rng.integers(2, 4)]
    loops = {s: int(rng.integers(1, 5)) for s in names}
    old, new = (str(s) for s in rng.permutation(names)[:2])
    loops |= {old: int(rng.choice([3, 64, 100, 128])), new: int(rng.choice([2, 64, 70, 128]))}
    # A padded loop is not split.
    free = {s: n for s, n in loops.items() if s not in (old, new) or n % 64 == 0}
    splits = dict.fromkeys(loops, 1) | draw_splits(rng, free, {old: 64, new: 64})
    x = draw_tensor(rng, "X", loops, names, old, FP16, gaps=False)
    y = draw_tensor(rng, "Y", loops, names, new, FP16, gaps=False)
    codes = any_codes(rng, FP16, x.extents)
    check_op(card, "ReStickifyOpHBM", [(s, n, splits[s]) for s, n in loops.items()], [(x, codes)], y, codes)
