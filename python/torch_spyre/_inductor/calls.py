"""Operators kept whole: one IR node per result, one ``call`` line in the text.

What such an operator means is said by its form in C++ (``spyre/forms``), for eager and compiled programs alike; here
it only travels through Inductor. To the scheduler each result is a pointwise loop that reads its operands somewhere,
which is all that dependencies need.
"""

import functools
import sys
from dataclasses import dataclass, field

import sympy
import torch
from torch._inductor import ir
from torch._inductor.virtualized import NullHandler, V, ops
from torch.fx.experimental.symbolic_shapes import optimization_hint
from torch.utils._pytree import tree_leaves, tree_map_only

from torch_spyre._inductor.errors import Unsupported
from torch_spyre._inductor.extents import capacity, expr_of, is_open, is_open_part, may_be_nothing
from torch_spyre._inductor.kernels import STICK

# Into how many 16-bit parts the operands of a float32 product are split.
_FLOAT32_PARTS = {"highest": 3, "high": 2, "medium": 1}


# Operators with forms that eager calls use, and compiled programs do not.
_OTHERWISE = (
    "aten.arange",  # reads nothing: Inductor computes it again at every reader
    "aten.clone",  # Inductor chooses strides by what reads it
    "aten.index_copy",  # Inductor writes it in place, into a cache say
)


@functools.cache
def operators() -> tuple[torch._ops.OpOverload, ...]:
    """Those that compiled programs keep whole."""
    import torch_spyre._inductor.customops  # noqa: F401 - some of them
    from torch_spyre import _C

    return tuple(_operator(name) for name in _C.form_names() if not name.startswith(_OTHERWISE))


def _operator(name: str) -> torch._ops.OpOverload:
    namespace, packet, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload)


class _NotWhole(Exception):
    """An argument that text cannot say: a number known only at launch, a view that has no strides."""


@dataclass(eq=False)
class Call:
    operator: torch._ops.OpOverload
    node: torch.fx.Node
    arguments: list  # in the order of the schema; tensors are realized buffers and views of strides
    results: list["Result | None"] = field(default_factory=list)

    def operands(self) -> list[ir.IRNode]:
        return [a for a in tree_leaves(self.arguments, is_leaf=_is_tensor) if isinstance(a, ir.IRNode)]

    def made(self) -> list["Result"]:
        return [r for r in self.results if r is not None]


class WholeOperator(ir.Pointwise):
    """The loop of one result, as the scheduler sees it."""

    call: Call | None = None
    stride: list[int] | None = None  # PyTorch's rule


class _Reads:
    """In place of a loop body, which nobody needs: the scheduler asks it what is read, no more."""

    has_partial_accumulate = False

    def __init__(self, store):
        self._store = store

    def __call__(self, *indices):
        return self._store(*indices)

    def has_op(self, name: str) -> bool:
        return False


class Result(ir.ComputedBuffer):
    """Inductor would look for an order of strides in the loads, which say nothing here, and trace loops."""

    def get_fill_order(self):
        flexible = isinstance(self.layout, ir.FlexibleLayout) and self.get_size()
        return ir.get_fill_order(self.data.stride) if flexible else None

    def simplify_and_reorder(self, extra_indexing_constraints=None, recompute_sizes_body_func=None):
        return (tuple(self.get_size()), ()), _Reads(lambda index, _: self.get_store_function()(index))


def call_of(buffer: ir.Buffer) -> Call | None:
    data = getattr(buffer, "data", None)
    return data.call if isinstance(data, WholeOperator) else None


# --- lowering --------------------------------------------------------------------------------------------------------


def lowering(operator: torch._ops.OpOverload, otherwise=None):
    """Keeps a call whole where text can say it and its form takes it. Elsewhere: ``otherwise``, or the CPU."""

    def lower(*args, **kwargs):
        node = V.graph.current_node
        try:
            given = _given(operator, args, kwargs)
            _check_rows(operator, given)
            reason = _refusal(operator, given, node.meta["val"])
            if reason is None:
                arguments = tree_map_only(ir.IRNode, lambda t: _operand(t, otherwise), given, is_leaf=_is_tensor)
                return _results(Call(operator, node, arguments))
        except _NotWhole as unsaid:
            reason = str(unsaid)
        if otherwise is None:
            raise Unsupported(reason)
        return otherwise(*args, **kwargs)

    return lower


def takes(operator: torch._ops.OpOverload, args, kwargs) -> bool:
    """Whether a call with these tensors, which have shapes and no values, would be kept whole."""
    try:
        given = _given(operator, args, kwargs)
        tensor = next(t for t in tree_leaves(given) if isinstance(t, torch.Tensor))
        with torch.utils._python_dispatch._disable_current_modes(), tensor.fake_mode:
            results = operator(*args, **kwargs)
        return _refusal(operator, given, results) is None
    except _NotWhole:
        return False


def _given(operator, args, kwargs) -> list:
    """The arguments as the schema lists them and text can say them, what was left out with its default."""
    found = list(args)
    for argument in operator._schema.arguments[len(args) :]:
        found.append(kwargs.get(argument.name, argument.default_value))
    if operator is torch.ops.aten.cat.default:
        found[0] = [t for t in found[0] if 0 not in _size(t)]  # of what has no elements nothing is copied
        if any(is_open(t.get_size()[found[1]]) for t in found[0] if isinstance(t, ir.IRNode)):
            raise _NotWhole("parts that begin where it is known at launch only")
    return [_value(a) for a in found]


def _check_rows(operator, given) -> None:
    """Rows that a call writes where positions say."""
    if operator.name().startswith(("aten::index_put", "aten::index_copy", "aten::scatter")):
        tensors = [t for t in tree_leaves(given, is_leaf=_is_tensor) if isinstance(t, ir.IRNode)]
        if any(may_be_nothing(t.get_size()) for t in tensors):
            raise Unsupported("rows written where positions say, of which there may be none")


def _is_tensor(value) -> bool:
    return isinstance(value, (ir.IRNode, torch.Tensor))


def _size(tensor) -> list[int]:
    if isinstance(V.graph, NullHandler):  # before there is a graph: of this call
        return [optimization_hint(s, fallback=STICK) for s in tensor.shape]
    return [capacity(expr_of(s)) for s in (tensor.shape if isinstance(tensor, torch.Tensor) else tensor.get_size())]


def _value(value):
    """An argument that text can say."""
    if isinstance(value, (list, tuple)):
        return [_value(v) for v in value]
    if _is_tensor(value):
        device = value.device if isinstance(value, torch.Tensor) else value.get_device()
        if device is None or device.type != "spyre":
            raise _NotWhole("a number of the host beside tensors of the card")
        if 0 in _size(value):
            raise _NotWhole("a tensor without elements")
        return value
    if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
        return None  # known from the results
    if isinstance(value, sympy.Integer):
        return int(value)
    exact = not isinstance(value, int) or abs(value) <= 2**53 or value == sys.maxsize  # no bound: x[3:] ends there
    if value is None or (isinstance(value, (bool, int, float, str, torch.dtype)) and exact):
        return value
    raise _NotWhole(f"the argument {value}, known only at launch")


def _refusal(operator, given: list, results) -> str | None:
    """Why its form does not take a call; none: it does."""
    if any(isinstance(r, torch.Tensor) and r.device.type != "spyre" for r in _several(results)):
        raise _NotWhole("a result on the host")
    declared: list[str] = []

    def declare(kind: str, tensor) -> str:
        dtype = tensor.dtype if isinstance(tensor, torch.Tensor) else tensor.get_dtype()
        declared.append(f"{kind} t{len(declared)} : {dtype_name(dtype)}{_size(tensor)}")
        return f"t{len(declared) - 1}"

    line = call_text(
        "call", operator, given, _several(results), lambda t: declare("input", t), lambda t: declare("buffer", t)
    )
    return _refusal_of_text("\n".join(["graph call {", *declared, line, "}"]))


@functools.lru_cache(maxsize=4096)
def _refusal_of_text(text: str) -> str | None:
    from torch_spyre import _C

    return _C.refusal_of_call(text)


def _several(results) -> list:
    return [results] if isinstance(results, torch.Tensor) else list(results)


def _operand(value: ir.IRNode, otherwise) -> ir.IRNode:
    """The buffer or the view of strides behind a tensor; what is neither is copied, if there is no other way."""
    value.realize()
    inner = value.data
    if isinstance(inner, ir.StorageBox):
        return inner
    if isinstance(inner, ir.BaseView) and ir.is_storage_and_layout(inner.unwrap_view()):
        try:
            view = ir.ExternKernel.convert_to_reinterpret_view(inner)
            return ir.ExternKernel.copy_input(inner) if is_open_part(view) else view
        except NotImplementedError:
            pass
    if otherwise is not None:
        raise _NotWhole("a view that has no strides")
    return ir.ExternKernel.copy_input(inner)


def _results(call: Call):
    values = call.node.meta["val"]
    names = list(dict.fromkeys(operand.get_name() for operand in call.operands()))
    if not names:
        raise _NotWhole("a call without tensors")  # Inductor computes what reads nothing again at every reader

    def somewhere(index):
        value = ops.load(names[0], sympy.Integer(0))
        for name in names[1:]:
            value = ops.add(value, ops.load(name, sympy.Integer(0)))
        return value

    def box(value: torch.Tensor | None) -> ir.TensorBox | None:
        if value is None:  # a gradient that nobody needs
            call.results.append(None)
            return None
        size = [expr_of(s) for s in value.shape]
        loop = WholeOperator(device=value.device, dtype=value.dtype, inner_fn=somewhere, ranges=size)
        loop._post_init_setattr("call", call)
        loop._post_init_setattr("stride", [capacity(expr_of(s)) for s in value.stride()])
        layout = ir.FlexibleLayout(device=value.device, dtype=value.dtype, size=size)
        buffer = Result(name=None, layout=layout, data=loop)
        call.results.append(buffer)
        buffer.name = V.graph.register_buffer(buffer)
        V.graph.register_operation(buffer)
        return ir.TensorBox(ir.StorageBox(buffer))

    boxes = tuple(map(box, _several(values)))
    return boxes[0] if isinstance(values, torch.Tensor) else boxes


# --- text ------------------------------------------------------------------------------------------------------------


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def call_text(name: str, operator, arguments: list, results: list, read, written) -> str:
    """One line; ``read`` and ``written`` write tensors, those among the arguments and the results."""

    def argument(value) -> str:
        if _is_tensor(value):
            return read(value)
        if isinstance(value, list):
            tensors = any(v is None or _is_tensor(v) for v in value)
            inside = ", ".join(map(argument, value))
            return f"{{{inside}}}" if tensors else f"[{inside}]"
        if isinstance(value, torch.dtype):
            return f"dtype({dtype_name(value)})"
        return str(value).lower() if value is None or isinstance(value, bool) else repr(value)

    # In this order, which is that of the tensors.
    inside = ", ".join(map(argument, arguments))
    outside = ", ".join("none" if result is None else written(result) for result in results)
    text = f"call {name} {operator}({inside}) -> ({outside})"
    if (kind := torch.get_default_dtype()) != torch.float32:
        text += f" default_float={dtype_name(kind)}"
    if (parts := _FLOAT32_PARTS[torch.get_float32_matmul_precision()]) != 3:
        text += f" float32_parts={parts}"
    return text
