"""How far rounding may carry a program's values: measured, by running it on the CPU again with results off a little.

Results the card must hit exactly are left alone: whole numbers and short fractions that every format holds, and moves,
choices and comparisons, which round nothing. A program of such operations must give the CPU's answer bit for bit.
"""

import math
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

from tests.programs.values import LIMIT, on_grid

#: Relative distance of two neighbours, in the coarser of the host's format and the card's.
STEP = {torch.float16: 2.0**-9, torch.bfloat16: 2.0**-7, torch.float32: 2.0**-18, torch.float8_e4m3fn: 2.0**-3}
_TRIALS = 6

#: Operators that choose or move values and round nothing.
_MOVES = frozenset(
    """abs amax amin arange argmax argmin bitwise_and bitwise_not bitwise_or bitwise_xor cat ceil clamp clamp_max
    clamp_min clone constant_pad_nd contiguous copy empty embedding eq fill flip floor full full_like gather
    ge gt hardtanh index index_copy index_copy_ index_fill index_fill_ index_put index_put_ index_select isfinite isinf
    isnan le lift_fresh logical_and logical_not logical_or logical_xor lt masked_fill masked_fill_ masked_select max
    maximum min minimum ne neg nonzero ones ones_like relu relu_ repeat roll round scalar_tensor scatter scatter_
    select_scatter sgn sign slice_scatter sort stack topk tril triu trunc where zero_ zeros zeros_like""".split()
)
#: Operators that are right to the last bit where the result fits the format. A number that is assigned is copied.
_ARITHMETIC = frozenset(
    """copy_ fill_ add add_ sub sub_ rsub mul mul_ sum mm bmm matmul addmm baddbmm dot mv square prod cumsum _to_copy
    index_add index_add_ scatter_add scatter_add_ pow""".split()
)
_SUMS = frozenset("copy_ fill_ add add_ sub sub_ rsub _to_copy".split())
_PRODUCTS = frozenset("mm bmm matmul addmm baddbmm dot mv".split())
#: Those after which nothing says that a value was none: the card's NaN, where the CPU has an infinity, is no number.
_FORGET = frozenset(
    """eq ne lt le gt ge isnan isinf isfinite sign sgn argmax argmin sort topk where logical_and logical_or logical_not
    logical_xor""".split()
)
#: Those that the card does in 32 bits as the CPU does.
_AS_ON_THE_CPU = _SUMS | frozenset("mul mul_ square".split())


def is_beyond(t: torch.Tensor) -> bool:
    """Whether 16-bit values lie outside of what both the card and the host hold."""
    if t.dtype not in LIMIT or not t.numel():
        return False
    return bool(t.double().abs().nan_to_num(0, posinf=torch.inf).max() > LIMIT[t.dtype])


class Rounding(TorchDispatchMode):
    """Every inexact floating result is off by up to one step; a seed of None only watches."""

    def __init__(self, seed: int | None):
        super().__init__()
        self.random = None if seed is None else torch.Generator().manual_seed(seed)
        self.beyond = False  # a 16-bit value was outside of what both formats hold
        self.undefined = False  # PyTorch, or the format, says nothing about what comes out
        self.overflows = False  # arithmetic made it so: the card has one symbol for NaN and infinity

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if self.random is not None:
            args, kwargs = self._shaken_scalars(args, kwargs or {})
        name = func._schema.name.removeprefix("aten::")
        exact = _in_doubles(func, args, kwargs or {}) if self.random is not None and name in _ARITHMETIC else None
        result = func(*args, **(kwargs or {}))
        if any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns):
            return result
        self._watch(func, name, args, kwargs or {})
        narrows = any(t.dtype == torch.float32 for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor))
        for t in tree_leaves(result):
            if isinstance(t, torch.Tensor) and t.dtype in STEP:
                self._see(name, t, exact, narrows and t.dtype != torch.float32)
        return result

    def _shaken_scalars(self, args, kwargs):
        """The card rounds a number to the format of the tensor it meets."""
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        if not any(t.dtype in LIMIT for t in tensors) and kwargs.get("dtype") not in LIMIT:
            return args, kwargs

        def shaken(value):
            if not isinstance(value, float) or value == float(on_grid(torch.tensor(value))):
                return value
            return value * (1 + 2.0**-10 * (float(torch.rand((), generator=self.random)) * 2 - 1))

        return tree_map(shaken, (args, kwargs))

    def _watch(self, func, name: str, args, kwargs) -> None:
        """What no result of the card can be compared for."""
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        numbers = [v for v in tree_leaves((args, kwargs)) if isinstance(v, float)]
        # A float32 product is one of 16-bit parts, and those of an infinity cancel; in 16 bits an infinity is a large
        # number, with which arithmetic overflows into NaN (docs/numerics.md).
        narrow = name not in _MOVES and any(t.dtype in LIMIT for t in tensors)
        if narrow or name in _PRODUCTS:
            operands = sum(bool(t.isinf().any()) for t in tensors) + sum(map(math.isinf, numbers))
            infinite = operands > (1 if name in _SUMS else 0)  # the largest number and a small one do not overflow
            self.beyond, self.overflows = self.beyond or infinite, self.overflows or infinite
        # What was infinite in 16 bits, and is NaN on the card, decides.
        infinite = any(t.dtype in LIMIT and bool(t.isinf().any()) for t in tensors)
        self.undefined = self.undefined or (self.overflows and name in _FORGET and infinite)
        # A write that reads, through another view, what it has written, or that writes an element more than once:
        # PyTorch says nothing about the order, and its own compiler writes expanded tensors otherwise.
        if func._schema.is_mutable:
            target, *others = tensors
            self.undefined = (
                self.undefined
                or _overlaps_itself(target)
                or any(_memory(t) == _memory(target) and _elements(t) != _elements(target) for t in others)
            )

    def _see(self, name: str, t: torch.Tensor, exact: torch.Tensor | None, narrows: bool) -> None:
        self.beyond = self.beyond or is_beyond(t)
        grows = name not in _MOVES and name not in _SUMS
        self.overflows = self.overflows or (grows and t.dtype in LIMIT and bool(t.isinf().any()))
        if self.random is None or (name in _MOVES and not narrows) or 0 in t.stride():
            return
        value = t.double()
        off = torch.ones(t.shape, dtype=torch.bool)
        if name in _ARITHMETIC:
            if t.dtype == torch.float32:
                rounds = name not in _AS_ON_THE_CPU
                off = (torch.round(value * 16) != value * 16) | (value.abs() > 2**20) if rounds else ~off
            else:
                off = (on_grid(value) != value) | (exact != value)
        noise = torch.rand(t.shape, generator=self.random, dtype=torch.float64) * 2 - 1
        shaken = torch.where(off & value.isfinite(), value * (1 + STEP[t.dtype] * noise), value)
        if exact is not None:  # too small for the host's format, and not for the card's, which reaches further down
            flushed = (value == 0) & (exact != 0) & (noise > 0)
            least = torch.finfo(t.dtype).smallest_normal * torch.finfo(t.dtype).eps
            shaken = torch.where(flushed, torch.copysign(torch.tensor(least, dtype=torch.float64), exact), shaken)
        if t.dtype in LIMIT:  # zero on the card, and not in bfloat16 (docs/numerics.md)
            shaken = torch.where((value != 0) & (value.abs() < 1.01 * 2.0**-31) & (noise > 0), 0.0, shaken)
        t.copy_(shaken.to(t.dtype))


def _memory(t: torch.Tensor) -> int:
    return t.untyped_storage().data_ptr()


def _elements(t: torch.Tensor) -> tuple:
    return t.shape, t.stride(), t.storage_offset()


def _overlaps_itself(t: torch.Tensor) -> bool:
    offsets = torch.zeros((), dtype=torch.int64)
    for size, stride in zip(t.shape, t.stride(), strict=True):
        offsets = offsets[..., None] + torch.arange(size) * stride
    return offsets.unique().numel() < t.numel()


def _in_doubles(func, args, kwargs) -> torch.Tensor:
    """What an operator of _ARITHMETIC gives before it is rounded; arguments that it writes are left alone."""

    def wide(t: torch.Tensor) -> torch.Tensor:
        return t.double() if t.is_floating_point() else t.clone()

    kwargs = {k: v for k, v in kwargs.items() if k != "dtype"}
    return func(*tree_map_only(torch.Tensor, wide, args), **tree_map_only(torch.Tensor, wide, kwargs)).double()


@dataclass(frozen=True)
class Slack:
    allowed: list[torch.Tensor]  # by value of `program.names`: how far each element may be off
    beyond: bool  # something left the range of the formats
    overflows: bool  # by arithmetic
    undefined: bool  # no answer is wrong


def slack(program, calls: int, expected: list[torch.Tensor]) -> Slack:
    spread = [torch.zeros(e.shape, dtype=torch.float64) for e in expected]
    with Rounding(None) as watch:
        program.run("cpu", calls=calls)
    for trial in range(_TRIALS):
        with Rounding(trial):
            found = program.run("cpu", calls=calls)
        for s, t, e in zip(spread, found, expected, strict=True):
            torch.maximum(s, (t.double() - e.double()).abs().nan_to_num(0, posinf=0), out=s)
    allowed = []
    for s, e in zip(spread, expected, strict=True):
        if not s.numel() or not bool(s.max() > 0):
            allowed.append(s)
            continue
        # Rounding of neighbours is as good a sample of an element's as its own: six trials are few.
        step = STEP.get(e.dtype, 0)
        size = e.double().abs().nan_to_num(0, posinf=0)
        allowed.append(4 * torch.maximum(s, s.mean()) + 4 * step * size + step / 2)
    beyond = watch.beyond or any(is_beyond(i.base()) for i in program.inputs)
    return Slack(allowed, beyond, watch.overflows, watch.undefined)
