"""Kernels for the sweep: tensors laid out on the card, op texts, and what memory must hold before and after.

A tensor is a list of axes, outermost first, lanes last. An axis says the same thing twice: as text for the compiler
and as arithmetic for the judge.

    X(4, 100) fp16, sticks along columns:  sizes [2, 4, 64]   coordinates [floor(c/64), r, Mod(c, 64)]
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from . import formats


@dataclasses.dataclass
class Axis:
    size: int
    text: str
    at: Callable  # of a dict symbol -> index array


@dataclasses.dataclass
class Tensor:
    name: str
    fmt: str
    symbols: list  # loops that move in it, in the order of the judge's arrays
    extents: list  # of those loops, unpadded
    axes: list
    padded: dict = dataclasses.field(default_factory=dict)  # extents of loops after rounding to sticks
    arrangement: str = "STANDARD"
    place: str = ""

    @property
    def device_size(self):
        return [axis.size for axis in self.axes]

    def elements(self, extents=None):
        """Element number in memory of every logical element, or of every one of a larger box."""
        extents = self.extents if extents is None else extents
        grids = np.meshgrid(*[np.arange(n) for n in extents], indexing="ij", sparse=True) if extents else []
        at = dict(zip(self.symbols, grids, strict=True))
        number = np.zeros(extents, np.int64)
        for axis in self.axes:
            number = number * axis.size + axis.at(at)
        return number

    def padding(self):
        """Elements that the op computes although no data is there: what they hold afterwards is unspecified."""
        box = self.elements([self.padded.get(s, n) for s, n in zip(self.symbols, self.extents, strict=True)])
        return np.setdiff1d(box, self.elements())

    def blank(self, fill):
        return np.full(int(np.prod(self.device_size)), fill, formats.code_type(self.fmt))

    def pack(self, codes, fill):
        memory = self.blank(fill)
        memory[self.elements()] = codes
        return memory

    def text(self, role):
        return (
            f"{role} {self.name} {{ format={self.fmt} arrangement={self.arrangement} device_size={self.device_size} "
            f"coords=[{', '.join(axis.text for axis in self.axes)}] {self.place} }}"
        )

    def argument(self, index, role):
        strides = [-1] * len(self.axes)
        return (
            f"argument {index} {{ role={role} dtype={formats.HOST_TYPE.get(self.fmt, 'float16')} "
            f"shape={self.extents} device_size={self.device_size} stride_map={strides} "
            f"format={self.fmt} arrangement={self.arrangement} }}"
        )


@dataclasses.dataclass
class Sticks(Tensor):
    """A tensor with one stick per position, filled whole: codes have a last axis for the lanes."""

    def pack(self, codes, fill):
        memory = self.blank(fill)
        width = formats.lanes(self.fmt)
        memory.reshape(-1, width)[self.elements() // width] = codes
        return memory


def sticks(*args, **rest):
    """Like `tensor`, for whole sticks."""
    made = tensor(*args, **rest)
    return Sticks(**{field.name: getattr(made, field.name) for field in dataclasses.fields(made)})


def round_up(n, step):
    return -(-n // step) * step


def tensor(name, loops, order, stick=None, fmt=formats.FP16, *, rows_more=None, start=None, move=None, wide=1, **rest):
    """A tensor with one-dimensional sticks.

    loops: symbol -> extent of the op. order: symbols outermost first (the stick's tiles among them), "" for an axis of
    one. stick: the symbol along the lanes. rows_more, start: positions that an axis has more than the loop needs, and
    where the loop begins. move: where a position along the stick really sits (other arrangements). wide: sticks that
    must come in multiples, because another tensor of the op has longer ones.
    """
    width = formats.lanes(fmt)
    more, first = rows_more or {}, start or {}
    axes = []
    for symbol in order:
        if symbol == "":
            axes.append(Axis(1, "0", lambda at: 0))
            continue
        begin = first.get(symbol, 0)
        shift = f" + {begin}" if begin else ""
        if symbol == stick:
            tiles = round_up(loops[symbol], width * wide) // width + more.get(symbol, 0)
            axes.append(Axis(tiles, f"floor({symbol}/{width}){shift}", _tile(symbol, width, begin, move)))
        else:
            axes.append(Axis(loops[symbol] + more.get(symbol, 0), f"{symbol}{shift}", _plain(symbol, begin)))
    axes.append(
        Axis(width, f"Mod({stick}, {width})", _lane(stick, width, move)) if stick else Axis(width, "0", lambda at: 0)
    )
    symbols = [s for s in loops if s in order or s == stick]
    padded = {stick: round_up(loops[stick], width * wide)} if stick else {}
    return Tensor(name, fmt, symbols, [loops[s] for s in symbols], axes, padded, **rest)


def _plain(symbol, begin):
    return lambda at: at[symbol] + begin


def _tile(symbol, width, begin, move):
    return lambda at: (move(at[symbol]) if move else at[symbol]) // width + begin


def _lane(symbol, width, move):
    return lambda at: (move(at[symbol]) if move else at[symbol]) % width


def core_map(space, k_first=False):
    """First loop fastest with the core number; for a matmul the last one comes first."""
    names = [s for s, _, _ in space]
    splits = {s: n for s, _, n in space}
    inner, text = 1, {}
    for symbol in [names[-1], *names[:-1]] if k_first else names:
        core = f"floor(core_id/{inner})" if inner > 1 else "core_id"
        text[symbol] = f"Mod({core}, {splits[symbol]})" if splits[symbol] > 1 else "0"
        inner *= splits[symbol]
    return "{" + ", ".join(f"{s}: {text[s]}" for s in names) + "}"


def braces(entries):
    return "{" + ", ".join(f"{k}: {v!r}" for k, v in entries.items()) + "}"


def op_text(op, space, inputs, output, *, is_reduction=False, constants=None, k_first=False, more=""):
    """One op. space: (symbol, extent, split) of each loop, in order."""
    lines = [
        f"is_reduction={is_reduction}",
        "iteration_space={" + ", ".join(f"{s}: ({n}, {split})" for s, n, split in space) + "}",
        f"core_id_to_work_slice={core_map(space, k_first)}",
    ]
    if constants:
        lines.append(f"constants={braces(constants)}")
    if more:
        lines.append(more)
    lines += [t.text("in") for t in inputs] + [output.text("out")]
    return f"op {op} {{\n    " + "\n    ".join(lines) + "\n  }"


def kernel_text(arguments, ops, pool_bytes=0):
    """arguments: (tensor, role) by index."""
    lines = [f"pool_bytes={pool_bytes}"] + [t.argument(i, role) for i, (t, role) in enumerate(arguments)]
    return "kernel case {\n  " + "\n  ".join(lines + ops) + "\n}\n"
