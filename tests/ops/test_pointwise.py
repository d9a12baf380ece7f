"""Pointwise op functions: one element of each input gives one element of the result.

The judge widens to fp32, computes in fp32 (NumPy's are the exactly rounded IEEE operations) and rounds once. Functions
that no library rounds exactly are computed in float64 and may be off by a stated number of codes.
"""

import math

import numpy as np
import pytest
import torch

from . import formats
from .card import check_op
from .cases import any_codes, case
from .device import sticks, tensor
from .formats import FP16, FP32, INT32
from .placement import in_lx


def erf(x):
    return torch.erf(torch.from_numpy(np.ascontiguousarray(x, np.float64))).numpy()


def truth(condition):
    return np.where(condition, np.float32(1), np.float32(0))


EXACT = {
    "abs": np.abs,
    "add": np.add,
    "clip": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "equal": lambda x, y: truth(x == y),
    "floor": np.floor,
    "greaterequal": lambda x, y: truth(x >= y),
    "greaterthan": lambda x, y: truth(x > y),
    "lesserequal": lambda x, y: truth(x <= y),
    "lesserthan": lambda x, y: truth(x < y),
    "maximum": np.maximum,
    "minimum": np.minimum,
    "mul": np.multiply,
    "neg": np.negative,
    "notequal": lambda x, y: truth(x != y),
    "realdiv": np.divide,
    "reciprocal": lambda x: np.float32(1) / x,
    "relufwd": lambda x: np.maximum(x, np.float32(0)),
    "sqrt": np.sqrt,
    "sub": np.subtract,
    "where3": lambda c, a, b: np.where(c != 0, a, b),
}
# Computed in float64. The card's fp32 value is within a few fp32 units, 2^-13 of one of fp16's: the result is the
# rounded one, or its neighbour where the exact value lies beside a tie.
SMOOTH = {
    "exp": np.exp,
    "gelufwd": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "log": np.log,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "softplus": lambda x, beta, limit: np.where(
        beta * x > limit, x, np.log1p(np.exp(np.minimum(beta * x, 700))) / beta
    ),
    "tanh": np.tanh,
}
# Codes that an fp32 result may be away: an fp32 library function is within one unit, and each fp32 step after it adds
# half of one. sigmoid and silu divide by a sum.
FP32_ULPS = {"exp": 1, "rsqrt": 1, "sigmoid": 3, "silu": 4}
# Which of the two zeros a maximum returns is open.
EITHER_ZERO = {"clip", "maximum", "minimum", "relufwd"}
INTEGER = {"addi32toi32": np.add, "muli32toi32": np.multiply}
CONSTANTS = {"clip": {"clipMin": -1.5, "clipMax": 2.25}, "softplus": {"softplusBeta": 1.5, "softplusThresh": 20.0}}

ONE, TWO, THREE = 1, 2, 3
INPUTS = dict.fromkeys([*EXACT, *SMOOTH, *INTEGER], ONE) | {"where3": THREE}
INPUTS |= dict.fromkeys(["add", "sub", "mul", "realdiv", "maximum", "minimum", *INTEGER], TWO)
INPUTS |= dict.fromkeys(["equal", "notequal", "greaterequal", "greaterthan", "lesserequal", "lesserthan"], TWO)
FP16_ONLY = {"gelufwd", "log", "softplus", "tanh"}

FORMATS = {op: [INT32] if op in INTEGER else [FP16] if op in FP16_ONLY else [FP16, FP32] for op in INPUTS}


def expected_codes(op, fmt, inputs, constants):
    k = [formats.decode(fmt, formats.encode(fmt, np.float64(v))) for v in constants.values()]
    with np.errstate(all="ignore"):
        if op in INTEGER:
            return INTEGER[op](*inputs)
        values = [formats.decode(fmt, codes) for codes in inputs]
        if op in EXACT:
            return formats.encode(fmt, EXACT[op](*values, *k).astype(np.float32))
        return formats.encode(fmt, SMOOTH[op](*[v.astype(np.float64) for v in values], *[np.float64(c) for c in k]))


def tolerance(op, fmt, first):
    if op in EITHER_ZERO:
        return {"zeros_alike": True}
    if op not in SMOOTH:
        return {}
    if fmt == FP32:
        # Where exp(-x) overflows, 1 / (1 + exp(-x)) is zero instead of less than 2^-127; silu scales that by x.
        lost = 2.0**-127 * (np.nan_to_num(np.abs(formats.decode(fmt, first))) if op == "silu" else 1)
        return {"ulps": FP32_ULPS[op], "slack": lost}
    if op == "gelufwd":
        # 1 + erf loses what is below half a unit of 1 in fp32, and x scales that up.
        return {"ulps": 1, "slack": np.nan_to_num(np.abs(formats.decode(fmt, first))) * 2.0**-24}
    return {"ulps": 1}


class Full:
    """All tensors have all loops, rows outside, columns along the stick."""

    def __init__(self, rows, columns, splits=(1, 1)):
        self.loops = {"r": rows, "c": columns}
        self.space = [("r", rows, splits[0]), ("c", columns, splits[1])]

    def tensors(self, n, fmt):
        return [tensor(f"X{i}", self.loops, ["c", "r"], "c", fmt) for i in range(n)], self.out(fmt)

    def out(self, fmt):
        return tensor("Y", self.loops, ["c", "r"], "c", fmt)


class Broadcast(Full):
    """One input lacks a loop: rows (scale -1), columns (scale -2: one stick per row), or both."""

    def __init__(self, rows, columns, splits=(1, 1), lacks="r", which=-1):
        super().__init__(rows, columns, splits)
        self.lacks, self.which = lacks, which

    def tensors(self, n, fmt):
        inputs, out = super().tensors(n, fmt)
        order = {"r": ["c"], "c": ["", "r"], "rc": [""]}[self.lacks]
        stick = "c" if self.lacks == "r" else None
        inputs[self.which] = tensor("B", self.loops, order, stick, fmt)
        return inputs, out


class Loops(Full):
    """Any loops in any memory order."""

    def __init__(self, loops, order, stick, splits=None):
        self.loops, self.order, self.stick = loops, order, stick
        self.space = [(s, n, (splits or {}).get(s, 1)) for s, n in loops.items()]

    def tensors(self, n, fmt):
        names = [f"X{i}" for i in range(n)] + ["Y"]
        *inputs, out = [tensor(name, self.loops, self.order, self.stick, fmt) for name in names]
        return inputs, out


class MixedOrder(Full):
    """Inputs and output agree on the stick and on nothing else."""

    def tensors(self, n, fmt):
        orders = [["c", "r"], ["r", "c"]]
        inputs = [tensor(f"X{i}", self.loops, orders[i % 2], "c", fmt) for i in range(n)]
        return inputs, tensor("Y", self.loops, ["r", "c"], "c", fmt)


class Slices(Full):
    """Inputs begin inside larger tensors; so does the result, whose surroundings must stay."""

    def tensors(self, n, fmt):
        cut = [
            {"rows_more": {"r": 5}, "start": {"r": 3}},
            {"rows_more": {"c": 2}, "start": {"c": 1}},
            {"rows_more": {"r": 1, "c": 1}},
        ]
        inputs = [tensor(f"X{i}", self.loops, ["c", "r"], "c", fmt, **cut[i]) for i in range(n)]
        return inputs, tensor("Y", self.loops, ["c", "r"], "c", fmt, rows_more={"r": 4, "c": 1}, start={"r": 2, "c": 1})


SCENARIOS = {
    "aligned": Full(4, 128),
    "unaligned": Full(5, 100),
    "broadcast-rows": Broadcast(4, 128, lacks="r"),
    "broadcast-rows-first": Broadcast(3, 70, lacks="r", which=0),
    "broadcast-stick": Broadcast(5, 100, lacks="c"),
    "broadcast-stick-split": Broadcast(4, 256, (2, 2), lacks="c", which=0),
    "scalar": Broadcast(3, 100, lacks="rc"),
    "one-loop": Loops({"c": 200}, ["c"], "c"),
    "short": Loops({"c": 3}, ["c"], "c"),
    "three-loops": Loops({"a": 2, "r": 3, "c": 70}, ["a", "c", "r"], "c"),
    "stick-not-last": Loops({"c": 70, "r": 3}, ["c", "r"], "c"),
    "mixed-order": MixedOrder(5, 130),
    "slices": Slices(4, 128),
    "split-2-rows": Full(6, 100, (2, 1)),
    "split-32-rows": Full(32, 70, (32, 1)),
    "split-2-stick": Full(3, 128, (1, 2)),
    "split-2-stick-unaligned": Full(3, 230, (1, 2)),
    "split-32-stick": Full(2, 2048, (1, 32)),
    "split-4-by-8": Full(8, 512, (4, 8)),
    "in-lx": Full(4, 128, (2, 1)),
    "in-lx-broadcast": Broadcast(4, 100, (2, 1), lacks="c"),
}


POINTWISE = [
    case(op, fmt, scenario, op, fmt, scenario) for op in sorted(INPUTS) for fmt in FORMATS[op] for scenario in SCENARIOS
]


@pytest.mark.parametrize("op,fmt,scenario", POINTWISE)
def test_pointwise(card, rng, op, fmt, scenario):
    shape = SCENARIOS[scenario]
    inputs, out = shape.tensors(INPUTS[op], fmt)
    codes = [any_codes(rng, fmt, t.extents) for t in inputs]
    spread = [on_the_grid(t, c, out) for t, c in zip(inputs, codes, strict=True)]
    constants = CONSTANTS.get(op, {})
    check_op(
        card,
        op,
        shape.space,
        list(zip(inputs, codes, strict=True)),
        out,
        expected_codes(op, fmt, spread, constants),
        constants=constants,
        via=in_lx if scenario.startswith("in-lx") else None,
        **tolerance(op, fmt, spread[0]),
    )


def on_the_grid(t, codes, out):
    """An input's elements for each element of the output."""
    shape = [n if s in t.symbols else 1 for s, n in zip(out.symbols, out.extents, strict=True)]
    order = [t.symbols.index(s) for s in out.symbols if s in t.symbols]
    return np.broadcast_to(np.transpose(codes, order).reshape(shape), out.extents)


NO_STICK = [case(op, fmt, "no-stick", op, fmt) for op in sorted(INPUTS) for fmt in FORMATS[op]]


@pytest.mark.parametrize("op,fmt", NO_STICK)
def test_one_stick_per_row(card, rng, op, fmt):
    """Results of a reduction over the stick, whose lanes are all alike, meet each other: so are the results."""
    loops = {"r": 6}
    inputs = [sticks(f"X{i}", loops, ["", "r"], None, fmt) for i in range(INPUTS[op])]
    codes = [np.repeat(any_codes(rng, fmt, (6, 1)), formats.lanes(fmt), 1) for _ in inputs]
    constants = CONSTANTS.get(op, {})
    check_op(
        card,
        op,
        [("r", 6, 2)],
        list(zip(inputs, codes, strict=True)),
        tensor("Y", loops, ["", "r"], None, fmt),
        expected_codes(op, fmt, codes, constants),
        constants=constants,
        whole_stick=True,
        **tolerance(op, fmt, codes[0]),
    )


EVERY_CODE = [case(op, FP16, "every-code", op) for op in sorted(INPUTS) if INPUTS[op] == 1]


@pytest.mark.parametrize("op", EVERY_CODE)
def test_every_code_of_a_unary_op(card, op):
    codes = np.arange(1 << 16, dtype=np.uint16).reshape(1024, 64)
    loops = {"r": 1024, "c": 64}
    x, y = tensor("X", loops, ["c", "r"], "c"), tensor("Y", loops, ["c", "r"], "c")
    constants = CONSTANTS.get(op, {})
    expected = expected_codes(op, FP16, [codes], constants)
    check_op(
        card,
        op,
        [("r", 1024, 1), ("c", 64, 1)],
        [(x, codes)],
        y,
        expected,
        constants=constants,
        **tolerance(op, FP16, codes),
    )


@pytest.mark.parametrize("op", [case("add", FP16, "ties", "add"), case("sub", FP16, "ties", "sub")])
def test_ties_round_away_from_zero(card, rng, op):
    """x plus or minus half of its last place, with the sign that leads away from zero: the next code, never x."""
    loops = {"r": 64, "c": 64}
    names = ("X", "H", "Y")
    x, half, y = (tensor(name, loops, ["c", "r"], "c") for name in names)
    magnitude = rng.integers(20 << 9, 0x7FFE, (64, 64))
    negative = rng.integers(0, 2, (64, 64))
    codes = (magnitude | negative << 15).astype(np.uint16)
    # One unit of x is 2^(e - 31 - 9); half of it is the power of two with exponent field e - 10.
    flipped = negative if op == "add" else 1 - negative
    halves = ((((magnitude >> 9) - 10) << 9) | flipped << 15).astype(np.uint16)
    space = [("r", 64, 1), ("c", 64, 1)]
    check_op(card, op, space, [(x, codes), (half, halves)], y, codes + np.uint16(1))


@pytest.mark.parametrize("fmt", [case("exp", FP16, "masked", FP16)])
def test_exp_of_padding_is_zero(card, rng, fmt):
    """Lanes behind the data read as -10000, so a sum over the stick may follow."""
    loops = {"r": 3, "c": 100}
    x, y = tensor("X", loops, ["c", "r"], "c", fmt), tensor("Y", loops, ["c", "r"], "c", fmt)
    codes = any_codes(rng, fmt, x.extents)
    after = check_op(
        card, "exp", [("r", 3, 1), ("c", 100, 1)], [(x, codes)], y, expected_codes("exp", fmt, [codes], {}), ulps=1
    )
    assert (after[y.padding()] == 0).all()
