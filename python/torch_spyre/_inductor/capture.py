"""From Inductor's loop nodes to the compiler's input text. Nothing is decided here: the text says what Inductor says.

Each buffer's own ``inner_fn`` is traced, never the scheduler's body: the scheduler merges and reorders loops by rules
that know nothing of sticks. The text is defined in ``spyre/graph``:

    graph fused_add {
      input arg0_1 : float16[4, 100] stride=[100, 1] layout=([2, 4, 64], [64, 100, 1], SEN169_FP16, STANDARD)
      buffer buf0 : float16[4, 100] stride=[100, 1]
      buffer buf1 : float16[4, 100] stride=[100, 1]
      node buf0 (p0: 4, p1: 100) aten="aten.add.Tensor" at="model.py:12" {
        v0 = load arg0_1[p1 + 100*p0]
        v1 = add v0 v0
        store buf0[p1 + 100*p0] v1
      }
      call buf1 aten._softmax.default(buf0, 1, false) -> (buf1) at="model.py:13"
      return buf1
    }
"""

import itertools
import math
import operator
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import sympy
import torch
from torch._inductor import ir
from torch._inductor.ops_handler import DefaultHandler
from torch._inductor.virtualized import V

from torch_spyre._inductor import calls, extents
from torch_spyre._inductor.calls import dtype_name
from torch_spyre._inductor.errors import SpyreUnsupportedError
from torch_spyre._inductor.extents import capacity
from torch_spyre._inductor.index_text import write_index

COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "isinf", "isnan", "signbit"})
LOGICAL = frozenset({"logical_and", "logical_or", "logical_not", "logical_xor"})


def layout_text(layout) -> str:
    names = (str(layout.device_dtype).split(".")[-1], str(layout.element_arrangement).split(".")[-1])
    return f"({list(layout.device_size)}, {list(layout.stride_map)}, {names[0]}, {names[1]})"


@dataclass(frozen=True)
class Place:
    """Where a named buffer of Inductor really lies: elements from ``offset`` on of the buffer ``base``. An offset with
    open sizes in it counts elements as Inductor does, not those of the capacity."""

    base: str
    offset: int | sympy.Expr = 0


def place_of(name: str, input_offset: Callable[[str], int]) -> Place:
    """Follows aliases: slices of a concatenation, mutated targets, inputs that are views."""
    if name in V.graph.graph_inputs:
        return Place(name, input_offset(name))
    layout = V.graph.get_buffer(name).get_output_spec()
    if isinstance(layout, ir.MutationLayoutSHOULDREMOVE):
        return place_of(layout.get_buffer().get_name(), input_offset)
    if isinstance(layout, ir.NonOwningLayout):
        view = layout.view
        base = place_of(view.get_name(), input_offset)
        return Place(base.base, extents.simplified(base.offset + view.get_layout().offset))
    return Place(name)


class LaunchScalars:
    """Numbers of the program known only when it runs: one-element inputs, filled by the wrapper at each launch.

    ``x * s`` for an ``s`` that changes from call to call reads ``scalar0[0]``; the wrapper passes the number ``s``.
    """

    def __init__(self):
        self._names: dict[tuple[str, torch.dtype], str] = {}

    def name(self, source: str, dtype: torch.dtype) -> str:
        """The input that holds what ``source`` says, an expression of wrapper code, as ``dtype``."""
        return self._names.setdefault((source, dtype), f"scalar{len(self._names)}")

    def inputs(self) -> dict[str, tuple[str, torch.dtype]]:
        return {name: key for key, name in self._names.items()}


class BodyRecorder(DefaultHandler):
    """An ops handler that writes each operation as a line. Values are their names."""

    def __init__(
        self,
        place: Callable[[str], Place],
        dtype_of: Callable[[str], torch.dtype],
        wraps: bool = True,
        scalars: LaunchScalars | None = None,
        open_sizes: extents.Extents | None = None,
    ):
        self.place, self.dtype_of = place, dtype_of
        self.open_sizes = open_sizes or extents.Extents()
        self.wraps = wraps  # indices may count from the end
        self.scalars = scalars or LaunchScalars()
        self.open_loops: dict[sympy.Symbol, sympy.Expr] = {}  # how far those run that end elsewhere next time
        self._scalar_sources: dict[str, str] = {}
        self.lines: list[str] = []
        self.types: dict[str, torch.dtype] = {}
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.indirect: dict[sympy.Symbol, str] = {}
        self._names: dict[str, str] = {}

    def _value(self, text: str, dtype: torch.dtype) -> str:
        if text not in self._names:
            name = self._names[text] = f"v{len(self.types)}"
            self.types[name] = dtype
            self.lines.append(f"{name} = {text}")
        return self._names[text]

    def _element(self, name: str, index) -> str:
        place = self.place(name)
        element = sympy.expand(V.graph.sizevars.simplify(index)) + place.offset
        if any(self._is_launch_symbol(symbol) for symbol in element.free_symbols):
            element = self._at_capacity(place.base, element)
        return f"{place.base}[{write_index(self._inside(place.base, element), self.indirect)}]"

    def _inside(self, base: str, element: sympy.Expr) -> sympy.Expr:
        """Loops run over whole sticks. What is shorter than that is walked by positions, which end with the loop."""
        spec = _spec(base)
        for size, stride in zip(map(capacity, spec.get_size()), map(capacity, spec.get_stride()), strict=True):
            for loop, length in self.open_loops.items():
                if element.coeff(loop) == stride and 1 < size < capacity(length):
                    value = self._value(f"index {loop} : int64", torch.int64)
                    element += stride * (self._position(value, size) - loop)
        return element

    def _at_capacity(self, base: str, element: sympy.Expr) -> sympy.Expr:
        """The element of a buffer with room for the largest call. Where its position is known at launch only, it is
        looked up like any other position that memory holds."""
        loops = {symbol for symbol in element.free_symbols if not self._is_launch_symbol(symbol)}
        moving, rest = extents.at_capacity(element, loops)
        if not extents.is_open(rest):
            return moving + rest
        spec = _spec(base)
        size, stride = spec.get_size(), spec.get_stride()
        for dim, steps in extents.positions(rest, size, stride):
            step = capacity(stride[dim])
            if extents.is_open(steps):
                along = sympy.Integer(0)  # loops that walk the same dimension
                for term in sympy.Add.make_args(moving):
                    factor, atom = term.as_coeff_Mul()
                    if factor == step and atom.is_Symbol:
                        along += atom
                moving -= step * along
                value = self.index_expr(along + steps, torch.int64)
                steps = self._position(value, capacity(size[dim]))
            moving += step * steps
        return moving

    def _launch_scalar(self, source: str, dtype: torch.dtype) -> str:
        held = torch.float32 if dtype == torch.float64 else dtype
        value = self._value(f"load {self.scalars.name(source, held)}[0]", held)
        self._scalar_sources[value] = source
        return value

    def load(self, name, index):
        if _is_number_on_host(name):
            return self._launch_scalar(name, self.dtype_of(name))
        self.reads.append(self.place(name).base)
        return self._value(f"load {self._element(name, index)}", self.dtype_of(name))

    def store(self, name, index, value, mode=None):
        if mode is not None:
            raise SpyreUnsupportedError(
                f"a store that combines with what is there ({mode}); only overwriting is allowed"
            )
        if any(s in self.indirect for s in index.free_symbols) and extents.may_be_nothing(self.open_loops.values()):
            raise SpyreUnsupportedError("rows written where positions say, of which there may be none")
        self.writes.append(self.place(name).base)
        self.lines.append(f"store {self._element(name, index)} {self._operand(value, [])}")

    def store_reduction(self, name, index, value):
        self.store(name, index, value)

    def constant(self, value, dtype):
        if isinstance(value, sympy.Basic) and not value.is_number:
            return self._launch_scalar(wrapper_text(value), dtype)
        if dtype == torch.bool:
            value = int(bool(value))
        elif dtype.is_floating_point:
            value = float(value)
        elif math.isfinite(value):
            value = int(value)
        return self._value(f"constant {value!r} : {dtype_name(dtype)}", dtype)

    def index_expr(self, expr, dtype):
        expr = sympy.expand(V.graph.sizevars.simplify(expr))
        if any(self._is_launch_symbol(symbol) for symbol in expr.free_symbols):
            return self._with_launch_symbols(expr, dtype)
        return self._value(f"index {write_index(expr, self.indirect)} : {dtype_name(dtype)}", dtype)

    def _is_launch_symbol(self, symbol) -> bool:
        return symbol not in self.indirect and not re.fullmatch(r"[pr]\d+", str(symbol))

    def _with_launch_symbols(self, expr, dtype) -> str:
        """The sum of its terms, each a product of a number known at launch and of positions in loops."""
        total, at_launch = None, sympy.Integer(0)
        for term in sympy.Add.make_args(expr):
            factors = sympy.Mul.make_args(term)
            known = [f for f in factors if all(self._is_launch_symbol(s) for s in f.free_symbols)]
            loops = [f for f in factors if f not in known]
            if any(self._is_launch_symbol(s) for f in loops for s in f.free_symbols):
                raise SpyreUnsupportedError(
                    f"the position {expr}, in which loops and numbers of the call are entangled"
                )
            if not loops:
                at_launch += term
                continue
            part = self.index_expr(sympy.Mul(*loops), dtype)
            if known:
                part = self.mul(part, self._launch_scalar(wrapper_text(sympy.Mul(*known)), dtype))
            total = part if total is None else self.add(total, part)
        if at_launch == 0:
            return total
        value = self._launch_scalar(wrapper_text(at_launch), dtype)
        return value if total is None else self.add(total, value)

    def to_dtype(self, x, dtype, src_dtype=None, use_compute_types=True):
        x = self._operand(x, [])
        if self.types[x] == dtype:
            return x
        if x in self._scalar_sources:  # rounded once, from the number itself
            return self._launch_scalar(self._scalar_sources[x], dtype)
        return self._value(f"to_dtype {x} : {dtype_name(dtype)}", dtype)

    def indirect_indexing(self, x, size, check=True, wrap_neg=True):
        if isinstance(x, sympy.Basic):
            return x
        size = extents.simplified(size)
        if wrap_neg and self.wraps:
            x = self.where(self.lt(x, 0), self.add(x, size), x)
        if extents.is_open(size):  # memory goes on behind the last element of this call, positions do not
            x = self.where(self.lt(x, size), x, self.constant(capacity(size), self.types[x]))
        return self._position(x, capacity(size))

    def _position(self, value: str, size: int) -> sympy.Symbol:
        value = self._value(f"checked_index {value} {{size: {size}}}", self.types[value])
        symbol = sympy.Symbol(f"indirect_{value}", integer=True)
        self.indirect[symbol] = value
        return symbol

    def frexp(self, x):
        raise SpyreUnsupportedError("the mantissa and the exponent of a number; the card has no operation for them")

    def check_bounds(self, expr, size, lower, upper):
        pass

    def masked(self, mask, body, other):
        raise SpyreUnsupportedError("a masked load; the card has no addresses that may be read only sometimes")

    def reduction(self, dtype, src_dtype, reduction_type, value):
        values = value if isinstance(value, (tuple, list)) else (value,)
        if any(isinstance(v, (tuple, list)) for v in values):
            raise SpyreUnsupportedError(f"a reduction of tuples ({reduction_type})")
        operands = " ".join(self._operand(v, values) for v in values)
        return self._value(f"reduce.{reduction_type} {operands}", dtype)

    def _operand(self, arg, others: Sequence) -> str:
        if isinstance(arg, str):
            return arg
        if isinstance(arg, sympy.Basic):
            return self.index_expr(arg, torch.int64)
        kinds = [self.types[o] for o in others if isinstance(o, str)]
        default = torch.bool if isinstance(arg, bool) else torch.int64 if isinstance(arg, int) else torch.float32
        return self.constant(arg, kinds[0] if kinds else default)

    def fma(self, x, y, z):
        return self.add(self.mul(x, y), z)

    def _default(self, name, args, kwargs):
        attributes = {k: float(v) for k, v in kwargs.items() if isinstance(v, (int, float))}
        if len(attributes) != len(kwargs):
            raise SpyreUnsupportedError(f"the operation {name} with the options {sorted(kwargs)}")
        operands = [self._operand(a, args) for a in args]
        kinds = [self.types[o] for o in operands]
        if name.startswith("bitwise_") and set(kinds) == {torch.bool}:
            name = name.replace("bitwise_", "logical_")
        name = "fmod" if name == "mod" else name  # Inductor's name for that of integers
        if name in COMPARISONS or name in LOGICAL:
            dtype = torch.bool
        else:
            values = kinds[1:] if name == "where" else kinds
            dtype = values[0]
            for kind in values[1:]:
                dtype = torch.promote_types(dtype, kind)
        options = " {" + ", ".join(f"{k}: {v!r}" for k, v in attributes.items()) + "}" if attributes else ""
        return self._value(" ".join([name, *operands]) + options, dtype)


def wrapper_text(expr) -> str:
    """An expression of symbols as Python, where the wrapper has their values."""
    return V.graph.wrapper_code.codegen_python_sizevar(expr)


def _is_number_on_host(name: str) -> bool:
    """A tensor without dimensions that is not on the card: PyTorch lets it stand beside tensors that are."""
    source = V.graph.graph_inputs[name] if name in V.graph.graph_inputs else V.graph.get_buffer(name)
    return source.get_device().type == "cpu" and len(source.get_size()) == 0


@dataclass
class Region:
    """A run of device nodes as one graph for the compiler."""

    text: str
    inputs: list[str]
    outputs: list[str]  # new buffers that are needed outside; mutated inputs are not among them
    local: list[str] = field(default_factory=list)  # buffers that never leave the region
    scalars: dict[str, tuple[str, torch.dtype]] = field(default_factory=dict)  # inputs with the numbers they hold
    open_sizes: dict[str, sympy.Expr] = field(
        default_factory=dict
    )  # by their text: those that change from call to call


def trace_body(buffer: ir.ComputedBuffer, recorder: BodyRecorder) -> tuple[list, list]:
    """Writes the body into the recorder; returns the extents of the output and of the reduced loops."""
    data = buffer.data
    if not isinstance(data, (ir.Pointwise, ir.Reduction)):
        raise SpyreUnsupportedError(f"a loop of the kind {type(data).__name__}", buffer.get_name())
    outer = [extents.simplified(s) for s in data.get_pointwise_size()]
    reduced = [extents.simplified(s) for s in data.get_reduction_size()]
    groups = [_symbols("p", outer)]
    if isinstance(data, ir.Reduction):
        groups.append(_symbols("r", reduced))
    lengths = zip(itertools.chain(*groups), outer + reduced, strict=True)
    recorder.open_loops = {loop: length for loop, length in lengths if extents.is_open(length)}
    try:
        with V.set_ops_handler(recorder):
            buffer.get_store_function()(*groups)
    except SpyreUnsupportedError as error:
        raise SpyreUnsupportedError(f"{_origin(buffer)}: {error}", buffer.get_name()) from None
    return outer, reduced


def _symbols(prefix: str, lengths: list) -> list[sympy.Expr]:
    return [
        sympy.Integer(0) if length == 1 else sympy.Symbol(f"{prefix}{i}", integer=True, nonnegative=True)
        for i, length in enumerate(lengths)
    ]


def fx_node(buffer: ir.Buffer):
    """The FX node a buffer was made for. A view may be what made Inductor realize it, never what computes it; and what
    takes one of several results is not what makes them."""
    if (call := calls.call_of(buffer)) is not None:
        return call.node
    node = buffer.get_origin_node()
    if node is None:
        origins = [n for n in buffer.get_origins() if n.op == "call_function"]
        node = next((n for n in origins if not _is_view(n)), origins[0] if origins else None)
    while node is not None and node.target is operator.getitem:
        node = node.args[0]
    return node


def _is_view(node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)


def _counts_from_the_start(buffer: ir.Buffer) -> bool:
    """Whether the operator the program called refuses negative indices: then there are none to wrap."""
    node = fx_node(buffer)
    original = node.meta.get("original_aten") if node is not None else None
    return getattr(original, "overloadpacket", None) in (
        torch.ops.aten.embedding,
        torch.ops.aten.gather,
        torch.ops.aten.index_copy,
        torch.ops.aten.index_copy_,
        torch.ops.aten.index_select,
    )


def _origin(buffer: ir.Buffer) -> str:
    node = fx_node(buffer)
    return str(node.target) if node is not None else buffer.get_name()


def _source_line(node) -> str | None:
    """``file.py:12`` of the user's line, from the trace Dynamo left."""
    found = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    return f"{os.path.basename(found[-1][0])}:{found[-1][1]}" if found else None


_MODULES_AT_MOST = 8


def _module_path(node) -> str:
    """``model.layers.0.mlp``: the innermost module of the user's model that a node comes from."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = stack[-1][0] if stack else ""
    return ".".join(re.findall(r"\w+", re.sub(r"^L\['\w+'\]|_modules", "", path)))


def modules_of(nodes) -> str:
    """The modules that these nodes come from, in order; where they are many, the modules around them."""
    found = (fx_node(node.node) for node in nodes)
    paths = list(dict.fromkeys(filter(None, (_module_path(node) for node in found if node is not None))))
    while len(paths) > _MODULES_AT_MOST:
        depth = max(path.count(".") for path in paths)
        if depth == 0:
            return ", ".join(paths[:_MODULES_AT_MOST]) + ", ..."
        paths = list(dict.fromkeys(path.rsplit(".", 1)[0] if path.count(".") == depth else path for path in paths))
    return ", ".join(paths)


def _loop_text(prefix: str, lengths: list, open_sizes: extents.Extents) -> str:
    return ", ".join(f"{prefix}{i}: {open_sizes.length(length)}" for i, length in enumerate(lengths))


def node_text(buffer: ir.ComputedBuffer, recorder: BodyRecorder) -> list[str]:
    outer, reduced = trace_body(buffer, recorder)
    loops = _loop_text("p", outer, recorder.open_sizes)
    loops += f"; {_loop_text('r', reduced, recorder.open_sizes)}" if reduced else ""
    head = f"node {buffer.get_name()} ({loops})"
    node = fx_node(buffer)
    if node is not None:
        head += f' aten="{node.target}"' + _origin_text(node, len(outer), len(reduced))
    return [f"  {head} {{", *(f"    {line}" for line in recorder.lines), "  }"]


def _origin_text(node, outer: int, reduced: int) -> str:
    from torch_spyre._inductor import hints

    line = _source_line(node)
    splits = hints.splits_of(node, outer, reduced)
    text = f' at="{line}"' if line else ""
    return text + (" hint={" + ", ".join(f"{loop}: {n}" for loop, n in splits.items()) + "}" if splits else "")


def _view_text(tensor: ir.IRNode, place: Callable[[str], Place]) -> str:
    """Elements of a declared buffer, by what differs from its own size, stride and offset."""
    layout, there = tensor.get_layout(), place(tensor.get_name())
    first = layout.make_indexer()([sympy.Integer(0)] * len(tensor.get_size()))
    base = _spec(there.base)
    size, stride, own_size, own_stride = (
        [capacity(n) for n in numbers]
        for numbers in (tensor.get_size(), layout.stride, base.get_size(), base.get_stride())
    )
    offset, own_offset = there.offset + extents.fixed(first), place(there.base).offset
    text = there.base
    text += f" : {size}" if (size, stride, offset) != (own_size, own_stride, own_offset) else ""
    text += f" stride={stride}" if stride != own_stride else ""
    return text + (f" offset={offset}" if offset != own_offset else "")


def call_text(call: calls.Call, place: Callable[[str], Place]) -> str:
    def view(tensor) -> str:
        return _view_text(tensor, place)

    first = call.made()[0]
    line = calls.call_text(first.get_name(), call.operator, call.arguments, call.results, view, view)
    return f"  {line}{_origin_text(call.node, len(first.get_size()), 0)}"


def _spec(name: str) -> ir.IRNode:
    return V.graph.graph_inputs[name] if name in V.graph.graph_inputs else V.graph.get_buffer(name)


def _declaration(
    kind: str, name: str, open_sizes: extents.Extents, layout=None, offset: int = 0, storage: int = 0
) -> str:
    spec = _spec(name)
    extents.check_rows(spec.get_size(), spec.get_stride())
    size, stride = open_sizes.lengths(spec.get_size()), [capacity(s) for s in spec.get_stride()]
    text = f"  {kind} {name} : {dtype_name(spec.get_dtype())}{size} stride={stride}"
    text += f" offset={offset}" if offset else ""
    text += f" storage={storage}" if storage else ""
    return text + (f" layout={layout_text(layout)}" if layout is not None else "")


def _scalar_declaration(name: str, dtype: torch.dtype, extent: str | None) -> str:
    from torch_spyre._inductor import kernels

    text = f"  input {name} : {dtype_name(dtype)}[] stride=[]" + (f" value_of={extent}" if extent else "")
    return f"{text} layout={layout_text(kernels.eager_layout((), (), dtype))}"


def capture_region(
    name: str,
    buffers: Sequence[ir.ComputedBuffer],
    needed: set[str],
    existing: set[str],
    layout_of: Callable[[str], object],
    input_offset: Callable[[str], int],
    storage_of: Callable[[str], int],
) -> Region:
    """The text of one region.

    ``needed``: base buffers read after the region. ``existing``: base buffers that exist before it, apart from graph
    inputs. ``layout_of``: the device layout of an existing tensor.
    """

    def place(buffer_name: str) -> Place:
        return place_of(buffer_name, input_offset)

    def dtype_of(buffer_name: str) -> torch.dtype:
        return V.graph.get_dtype(buffer_name)

    nodes: list[str] = []
    read: dict[str, None] = {}
    written: dict[str, None] = {}
    scalars, open_sizes = LaunchScalars(), extents.Extents()
    whole: list[calls.Call] = []
    for buffer in buffers:
        if (call := calls.call_of(buffer)) is not None:
            if call in whole:  # its line is written with its first result
                continue
            whole.append(call)
            nodes.append(call_text(call, place))
            reads = [place(operand.get_name()).base for operand in call.operands()]
            writes = [place(result.get_name()).base for result in call.made()]
        else:
            recorder = BodyRecorder(place, dtype_of, not _counts_from_the_start(buffer), scalars, open_sizes)
            nodes += node_text(buffer, recorder)
            reads, writes = recorder.reads, recorder.writes
        read.update(dict.fromkeys(r for r in reads if r not in written))
        written.update(dict.fromkeys(writes))
    made = [w for w in written if w not in existing and w not in V.graph.graph_inputs]
    inputs = list(dict.fromkeys(b for b in (*read, *written) if b not in made))
    outputs = [m for m in made if m in needed]
    mutated = [w for w in written if w not in made]
    declared = [_declaration("input", n, open_sizes, layout_of(n), place(n).offset, storage_of(n)) for n in inputs]
    declared += [_declaration("buffer", n, open_sizes) for n in made]
    holders = {scalars.name(wrapper_text(size), torch.float32): name for size, name in open_sizes.names.items()}
    lines = [f"graph {name} {{", *open_sizes.declarations()]
    lines += [_scalar_declaration(n, dtype, holders.get(n)) for n, (_, dtype) in scalars.inputs().items()]
    lines += declared + nodes
    lines += [f"  return {', '.join([*outputs, *mutated])}", "}"]
    return Region(
        text="\n".join(lines) + "\n",
        inputs=inputs,
        outputs=outputs,
        local=[m for m in made if m not in needed],
        scalars=scalars.inputs(),
        open_sizes={str(size): size for size in open_sizes.names},
    )
