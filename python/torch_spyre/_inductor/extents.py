"""Sizes that change from call to call: *extents*, which the graph text names and the wrapper knows at launch.

A kernel for an open size ``s0`` is made for its capacity: the largest value that its range allows, as whole sticks.
Every size and stride of the text is that of the capacity, and every tensor that a kernel makes has room for it:

    s0 <= 1023, float16[1, s0, 512]     ->     extent e0 <= 1024, float16[1, e0, 512] stride=[524288, 512, 1]

Where a range has no end, ``config.dynamic_capacity`` gives it one, as a guard: a larger call is compiled anew.
"""

import itertools
import math
import operator
from dataclasses import dataclass, field

import sympy
import torch
from torch._inductor import ir
from torch._inductor.virtualized import V
from torch.fx.experimental.symbolic_shapes import resolve_unbacked_bindings
from torch.utils._sympy.functions import Max, Min

from torch_spyre import _C
from torch_spyre._inductor import config, real_inputs
from torch_spyre._inductor.errors import NeedsFixedSizes, SpyreUnsupportedError
from torch_spyre._inductor.kernels import STICK

_MODERATE = 1 << 24  # elements
_NO_END = torch.iinfo(torch.int32).max
_LARGEST, _SMALLEST = (sympy.Max, Max), (sympy.Min, Min)


def is_open(expr) -> bool:
    return isinstance(expr, sympy.Expr) and bool(expr.free_symbols)


def expr_of(size):
    """As Inductor writes it."""
    return size.node.expr if isinstance(size, torch.SymInt) else size


def fixed(expr) -> int:
    """The value of a size or stride; a symbolic one is guarded to the value of this compilation."""
    return int(expr) if isinstance(expr, (int, sympy.Integer)) else V.graph.sizevars.guard_int(expr)


def simplified(expr):
    """As a number where the guards of this compilation make it one. Of the largest or smallest of several numbers, the
    one that it is in this call, by a guard."""
    expr = V.graph.sizevars.simplify(sympy.sympify(expr))
    while choices := expr.atoms(*_LARGEST, *_SMALLEST):
        choice = min(choices, key=str)  # which have none inside are as good as any: the loop goes on
        expr = V.graph.sizevars.simplify(expr.xreplace({choice: _chosen(choice)}))
    return int(expr) if expr.is_Integer else expr


def _chosen(choice: sympy.Expr) -> sympy.Expr:
    largest = isinstance(choice, _LARGEST)
    hint = V.graph.sizevars.optimization_hint
    found = (max if largest else min)(choice.args, key=hint)
    for other in choice.args:
        of_nothing = largest and other == 1 and any(map(is_counted, sympy.sympify(found).free_symbols))
        if other is not found and not of_nothing:  # how far apart elements lie, of which there may be none
            V.graph.sizevars.check_leq(*((other, found) if largest else (found, other)))
    return found


def _largest(symbol: sympy.Symbol) -> int:
    """The end of its range; one without an end gets it here, for good."""
    upper = V.graph.sizevars.shape_env.bound_sympy(symbol).upper
    if isinstance(upper, (int, sympy.Integer)) and int(upper) < _NO_END:
        return int(upper)
    if is_counted(symbol):
        return _most_counted(symbol)
    hint = V.graph.sizevars.optimization_hint(symbol)
    room = _room_of_inputs(symbol)
    if room is None:
        room = config.dynamic_capacity if _is_affordable(symbol) else STICK
        while room <= hint:
            room *= 2
    largest = max(room - 1, hint)  # so that one more still fits: a cache and the next token
    V.graph.sizevars.check_leq(symbol, sympy.Integer(largest))
    return largest


def is_counted(symbol: sympy.Symbol) -> bool:
    """Whether it is a number that an operator finds out, as how many elements are not zero."""
    return V.graph.sizevars.shape_env.is_unbacked_symint(symbol)


def may_be_nothing(sizes) -> bool:
    """Whether there may be no elements at all. What is scattered behind an extent is its first element once more, so
    that there has to be one."""
    symbols = set().union(*(sympy.sympify(expr_of(size)).free_symbols for size in sizes))
    return any(map(is_counted, symbols))


def _mask(index: torch.fx.Node) -> list[torch.fx.Node]:
    masks = (i for i in index.args[1] if i is not None and i.meta["val"].dtype in (torch.bool, torch.uint8))
    return [next(masks)]


#: Operators that count elements, and of which tensors: there are at most as many as they have, seen beside one another.
_COUNTING = {
    torch.ops.aten.nonzero: lambda node: [node.args[0]],
    torch.ops.aten.masked_select: lambda node: [node.args[0], node.args[1]],
    torch.ops.aten.index: _mask,
    torch.ops.aten._unique2: lambda node: [node.args[0]],
    torch.ops.aten.unique_consecutive: lambda node: [node.args[0]],
}


def _most_counted(symbol: sympy.Symbol) -> int:
    shape_env = V.graph.sizevars.shape_env
    for node in V.graph.graph.nodes:
        if symbol not in resolve_unbacked_bindings(shape_env, node.meta.get("unbacked_bindings", {})):
            continue
        counted = _COUNTING.get(getattr(node.target, "overloadpacket", None))
        if counted is None:
            break
        shapes = [[capacity(expr_of(n)) for n in of.meta["val"].shape] for of in counted(node)]
        return math.prod(torch.broadcast_shapes(*shapes))
    raise SpyreUnsupportedError(
        f"a size that is found out while the program runs ({symbol}), and could be any; allowed are those of "
        f"{', '.join(sorted(str(op) for op in _COUNTING))}. Leave torch._dynamo.config.capture_scalar_outputs off: "
        "PyTorch then compiles what comes before and what comes after"
    )


def _inputs():
    """Graph inputs that are tensors of the card, each with the caller's tensor where it is known."""
    for position, name in enumerate(V.graph.graph_input_names):
        spec = V.graph.graph_inputs.get(name)
        if isinstance(spec, ir.TensorBox) and spec.get_device().type == "spyre":
            yield spec, real_inputs.real_input(position, spec)


def _room_of_inputs(symbol: sympy.Symbol) -> int | None:
    """How large an open size may become for the tensors of this call that have room for more than they hold."""
    rooms = [
        room
        for spec, tensor in _inputs()
        for dim, size in enumerate(spec.get_size())
        if tensor is not None and size == symbol and (room := room_along(tensor, dim))
    ]
    return min(rooms, default=None)


def _is_affordable(symbol: sympy.Symbol) -> bool:
    """Whether tensors stay of a moderate size with the usual room along each of their open sizes: of a tensor of which
    every size was left open, most of them will never change."""
    for spec, _ in _inputs():
        size = [simplified(s) for s in spec.get_size()]
        if any(is_open(s) and symbol in s.free_symbols for s in size):
            if math.prod(config.dynamic_capacity if is_open(s) else s for s in size) > _MODERATE:
                return False
    return True


def room_along(tensor: torch.Tensor, dim: int) -> int | None:
    """How many elements its memory has along a dimension, for a tensor that has room for more than it holds."""
    step = tensor.stride(dim)
    outer = [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if s > step and n > 1]
    room = min(outer, default=_C.storage_elements(tensor)) // max(step, 1)
    return room if room > tensor.shape[dim] and room % STICK == 0 else None


def _room(factor: sympy.Expr) -> int:
    """The capacity of one open size: a sum of symbols and numbers."""
    if any(not isinstance(term, (sympy.Symbol, sympy.Integer)) for term in sympy.Add.make_args(factor)):
        raise NeedsFixedSizes(f"a size of {factor}")
    largest = factor.subs({symbol: _largest(symbol) for symbol in factor.free_symbols})
    return -(-int(largest) // STICK) * STICK


def capacity(expr) -> int:
    """A size or stride with room for the largest call: products of open sizes and numbers."""
    expr = simplified(expr)
    if isinstance(expr, int):
        return expr
    total = 1
    for factor in sympy.Mul.make_args(sympy.factor(expr)):
        base, power = factor.as_base_exp()
        total *= (int(base) if base.is_Integer else _room(base)) ** int(power)
    return total


@dataclass
class Extents:
    """Those of one text, by what they are computed from."""

    names: dict[sympy.Expr, str] = field(default_factory=dict)

    def length(self, size) -> str:
        """A size as text: a number, or the name of an extent."""
        size = simplified(size)
        if isinstance(size, int):
            return str(size)
        _room(size)  # refused: a product of sizes
        return self.names.setdefault(size, f"e{len(self.names)}")

    def lengths(self, sizes) -> str:
        return f"[{', '.join(map(self.length, sizes))}]"

    def declarations(self) -> list[str]:
        return [f"  extent {name} <= {_room(size)} of='{size}'" for size, name in self.names.items()]


def is_open_part(view: ir.ReinterpretView) -> bool:
    """Whether a view begins or ends inside its buffer where that changes from call to call, or repeats elements as
    often. Calls walk an open dimension of a buffer as far as it goes: they are given a copy of such a view."""
    layout, whole = view.get_layout(), V.graph.try_get_buffer(view.get_name())
    steps = [(capacity(s), simplified(n)) for s, n in zip(whole.get_stride(), whole.get_size(), strict=True)]
    steps.sort(key=lambda step: step[0])

    def is_whole(size, stride: int) -> bool:  # a dimension of the buffer, or several that lie behind one another
        outer = [step for step in steps if step[0] >= stride and step[1] != 1]
        merged = itertools.accumulate((length for _, length in outer), operator.mul)
        return bool(outer) and outer[0][0] == stride and size in merged

    lengths = [(simplified(n), capacity(s)) for n, s in zip(layout.size, layout.stride, strict=True)]
    return is_open(simplified(layout.offset)) or not all(is_whole(*step) for step in lengths if is_open(step[0]))


def check_rows(size, stride) -> None:
    """A view of rows that lie closer to one another than an open size may become cannot have room for it."""
    steps = [(capacity(s), n) for s, n in zip(stride, size, strict=True) if simplified(n) != 1]
    for step, length in steps:
        outer = min((s for s, _ in steps if s > step), default=None)
        if is_open(simplified(length)) and outer is not None and outer < step * capacity(length):
            raise NeedsFixedSizes(f"rows of {length} elements that lie {outer} apart")


def positions(offset: sympy.Expr, size, stride) -> list[tuple[int, sympy.Expr]]:
    """Along which dimensions an offset with open sizes in it lies, and how far.

    256*s0 - 256   in (s0, 256) with strides (256, 1)   ->   [(0, s0 - 1)]
    """
    hint = V.graph.sizevars.optimization_hint
    long = [d for d in range(len(size)) if simplified(size[d]) != 1 and simplified(stride[d]) != 0]
    symbols = sorted(offset.free_symbols, key=str)
    found = []
    for d in sorted(long, key=lambda d: hint(stride[d]), reverse=True):
        step = sympy.sympify(stride[d])
        steps, rest = sympy.div(offset, step, *symbols)
        steps = sum(sympy.floor(c) * m for m, c in _terms(steps, symbols)) if not step.free_symbols else steps
        rest = sympy.expand(offset - steps * step)
        while hint(rest) < 0:
            steps, rest = steps - 1, sympy.expand(rest + step)
        if hint(steps) >= max(hint(size[d]), 1):
            raise NeedsFixedSizes(f"element {offset} of a tensor of sizes {list(size)} and strides {list(stride)}")
        if steps != 0:
            found.append((d, steps))
        offset = rest
    if offset != 0:
        raise NeedsFixedSizes(f"an offset of {offset} elements")
    return found


def _terms(expr: sympy.Expr, symbols):
    polynomial = sympy.Poly(expr, *symbols)
    for powers, coefficient in polynomial.terms():
        yield sympy.prod(s**p for s, p in zip(symbols, powers, strict=True)), coefficient


def at_capacity(index: sympy.Expr, loops: set) -> tuple[sympy.Expr, sympy.Expr]:
    """An index in elements of the capacity, and the part of it that no loop moves, as it is.

    ``loops``: the symbols that are not open sizes.
    """
    moving: dict[sympy.Expr, sympy.Expr] = {}
    rest = sympy.Integer(0)
    for term in sympy.Add.make_args(sympy.expand(index)):
        atoms, factors = [], []
        for factor in sympy.Mul.make_args(term):
            (atoms if factor.free_symbols & loops else factors).append(factor)
        if not atoms:
            rest += term
            continue
        atom = sympy.Mul(*atoms)
        if atom.free_symbols - loops:
            raise NeedsFixedSizes(f"the position {atom}, in which loops and sizes are entangled")
        moving[atom] = moving.get(atom, sympy.Integer(0)) + sympy.Mul(*factors)
    total = sum((capacity(coefficient) * atom for atom, coefficient in moving.items()), sympy.Integer(0))
    return total, rest
