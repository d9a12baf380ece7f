"""Three computations beside the card's: the reference, the reference rounded like the card, each operator by itself.

    card        embedding -> norm -> mm -> silu -> ...     what runs
    reference   embedding -> norm -> mm -> silu -> ...     from the model's inputs, in wide floats: errors add up
    rounded     embedding ~> norm ~> mm ~> silu ~> ...     every result rounded to the format: what rounding alone does
    own                    (card) norm                     one operator from the card's own operands: its own error

Integers and truth values are always the card's, so that all three take the same paths: an operator that chooses
wrongly is found by its own error, and what the reference would have chosen is counted.
"""

import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

from torch_spyre._compare import formats
from torch_spyre._compare.values import Values, read

_OURS = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(os.path.dirname(__file__)) + os.sep)
_TRIALS = 2


class CompareError(RuntimeError):
    """A model that cannot be compared. The message says why, and what to do."""


def random_operator(name: str, where: str) -> CompareError:
    return CompareError(
        f"found the random operator {name} in {where}, allowed: operators that give the same result twice\n"
        "  try  model.eval(), which switches dropout off; other random numbers as an input of the model"
    )


@dataclass
class OperatorRow:
    operator: str
    module: str
    kernel: str
    source: str
    shape: list[int]
    dtype: str
    own: formats.Off | None = None  # None: nothing to judge, or nobody who could
    accumulated: float = 0.0
    rounding: float = 0.0
    note: str = ""


@dataclass
class ModuleRow:
    """A module, or a kernel of a compiled model."""

    path: str
    kind: str
    shape: list[int]
    dtype: str
    accumulated: float
    rounding: float
    first: int  # its operators in the report
    last: int
    own: float | None = None  # of a kernel, from the card's own inputs
    own_rounding: float = 0.0

    def _bound(self, rounding: float) -> float:
        return formats.ROUNDINGS * (rounding + formats.step_of(getattr(torch, self.dtype)) / 2)

    @property
    def bound(self) -> float:
        """Of the accumulated error."""
        return self._bound(self.rounding)

    @property
    def own_bound(self) -> float:
        return self._bound(self.own_rounding)

    @property
    def is_out(self) -> bool:
        """An error that is infinite (NaN where the reference has a number) is none that rounding excuses."""
        return (
            math.isinf(self.accumulated)
            or not self.accumulated <= self.bound
            or (self.own is not None and not self.own <= self.own_bound)
        )


@dataclass
class WeightRow:
    name: str
    elements: int
    differ: int
    off: formats.Off


def named(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def source_line() -> str:
    """``file.py:12``: the innermost line of the model, not of PyTorch."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_OURS) and not name.startswith("<"):
            return f"{os.path.basename(name)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


class Judge:
    def __init__(self, compute: torch.dtype | None, weights: dict[int, torch.Tensor]):
        """``compute``: the floats of the reference; None: those of the model. ``weights``: the reference's, where they
        are others than the card's, by the storage of the card's."""
        self.compute, self.weights = compute, weights
        self.reference = Values(self.wide, self._fetch)
        # Where the reference rounds, too, it is to the host's types: this one rounds to the card's alone.
        self._unrounded = self if compute is not None else Judge(torch.float32, weights)
        self.rounded = Values(self._unrounded.wide, lambda t: formats.rounded(self._unrounded._fetch(t), t.dtype))
        self.operators: list[OperatorRow] = []
        self.modules: list[ModuleRow] = []
        self.notes: dict[str, int] = {}
        self.held_at_most = 0
        self._module_stack: list[tuple[str, int]] = []

    def wide(self, dtype: torch.dtype) -> torch.dtype:
        if self.compute is None or not dtype.is_floating_point:
            return dtype
        return dtype if dtype.itemsize > self.compute.itemsize else self.compute

    def held(self, tensor: torch.Tensor) -> torch.Tensor:
        """What the card holds, as the reference's floats."""
        return read(tensor).to(self.wide(tensor.dtype))

    def _fetch(self, tensor: torch.Tensor) -> torch.Tensor:
        weight = self.weights.get(tensor.untyped_storage()._cdata)
        if weight is None:
            return self.held(tensor)
        there = weight.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        return there.to(self.wide(tensor.dtype))

    def go_on_from(self, tensor: torch.Tensor) -> None:
        """The reference has no value of its own for this tensor: it takes the card's."""
        self.reference.set(tensor, self.held(tensor))
        self.rounded.set(tensor, self._unrounded.held(tensor))

    def note(self, text: str) -> None:
        self.notes[text] = self.notes.get(text, 0) + 1

    # --- modules -----------------------------------------------------------------------------------------------------

    @property
    def module(self) -> str:
        return self._module_stack[-1][0] if self._module_stack else ""

    def enter(self, path: str) -> None:
        self._module_stack.append((path, len(self.operators)))

    def leave(self, path: str, kind: str, output) -> None:
        _, first = self._module_stack.pop()
        tensors = [t for t in tree_leaves(output) if isinstance(t, torch.Tensor) and t.is_floating_point()]
        if tensors:
            self.add_module(path, kind, tensors, first)

    def add_module(self, path: str, kind: str, tensors: list[torch.Tensor], first: int) -> None:
        """The worst of its results."""
        with _disable_current_modes():
            errors = [(*self.errors(t), t) for t in tensors]
        accumulated, rounding, worst = max(errors, key=lambda e: e[0])
        row = ModuleRow(path, kind, list(worst.shape), named(worst.dtype), accumulated, rounding, first,
                        len(self.operators))  # fmt: skip
        self.modules.append(row)

    def errors(self, tensor: torch.Tensor) -> tuple[float, float]:
        """Of a tensor: how far it is off, and how far rounding alone carries it."""
        expected = self.reference.get(tensor)
        accumulated = formats.relative_error(self.held(tensor), expected, tensor.dtype)
        return accumulated, formats.relative_error(self.rounded.get(tensor), expected, tensor.dtype)

    # --- operators ---------------------------------------------------------------------------------------------------

    def judge(
        self,
        row: OperatorRow,
        found: list[torch.Tensor],
        held: list[torch.Tensor],
        own: list[torch.Tensor],
        again: Callable[[int], list[torch.Tensor]],
        positions: Callable[[int], bool] = lambda i: False,
        errors: tuple[float, float] | None = None,
    ) -> None:
        """The results ``found`` on the card, which hold ``held``, by what the reference makes of the same operands.
        ``again`` computes that with operands that are a unit off; ``positions`` excuses a choice among equals."""
        worst = []
        others = None
        for i, (tensor, value, expected) in enumerate(zip(found, held, own, strict=True)):
            by_host = self.compute is None
            limit = formats.units_of(expected, tensor.dtype, by_host)
            off = formats.most_off(value, expected, limit, tensor.dtype)
            # What stays well within the units of its result needs no further look.
            if off is not None and not off.error <= off.bound / 2 and tensor.is_floating_point():
                others = others or [again(trial) for trial in range(_TRIALS)]
                limit = formats.allowed(expected, [other[i] for other in others], tensor.dtype, by_host)
                off = formats.most_off(value, expected, limit, tensor.dtype)
            if off is not None and off.is_out and not tensor.is_floating_point() and positions(i):
                continue
            if off is not None:
                worst.append((off, value, tensor))
        if worst:
            off, value, tensor = max(worst, key=lambda w: (w[0].is_out, w[0].error / (w[0].bound or 1)))
            row.own = off
            row.shape, row.dtype = list(tensor.shape), named(tensor.dtype)
            if off.is_out:
                row.note = row.note or _about(off, value, tensor)
        if errors is None:
            errors = max((self.errors(t) for t in found if t.is_floating_point()), default=(0.0, 0.0))
        row.accumulated, row.rounding = errors
        self.operators.append(row)
        self.held_at_most = max(self.held_at_most, self.reference.bytes() + self.rounded.bytes())


def _about(off: formats.Off, value: torch.Tensor, tensor: torch.Tensor) -> str:
    if tensor.dtype in formats.NARROW and off.card != off.card and abs(off.reference) > formats.LARGEST:
        return f"overflow: the card's 16-bit format ends at {formats.LARGEST:.4g}, and NaN stands for what is beyond"
    if off.card != off.card:
        return f"NaN in {int(value.isnan().sum())} of {value.numel()} elements"
    return ""


class Shaken:
    """Operands that are a unit off, each element one more or one less. The second trial turns the signs of every other
    operand, so that both a sum and a difference feel it."""

    def __init__(self, trial: int, by_host: bool):
        self._trial, self._by_host, self._count = trial, by_host, 0
        self._random = torch.Generator().manual_seed(0)

    def __call__(self, value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        if not value.is_floating_point():
            return value.clone()
        turned = -1 if self._trial and self._count % 2 else 1
        self._count += 1
        signs = turned * (torch.randint(0, 2, value.shape, generator=self._random) * 2 - 1)
        return value * (1 + formats.step_of(dtype, self._by_host) * signs.to(value.dtype))
