"""From ATen operators to Inductor's loops, where the card wants other loops than a GPU.

Each function below is used only where its first tensor lives on the card; everywhere else, and everywhere outside of
a compilation for the card, PyTorch's own lowering stands.
"""

import contextlib
import functools
import math

import sympy
import torch
from torch._inductor import ir
from torch._inductor.lowering import (
    ELEMENTWISE_TYPE_PROMOTION_KIND,
    _make_reduction_inner,
    _validate_dim,
    clone,
    div_prim,
    fallback_handler,
    full,
    get_constant_value,
    is_integer_type,
    lowerings,
    make_pointwise,
    mutate_to,
    promote_constants,
    register_lowering,
    register_op_dtype_propagation_rules,
    to_dtype,
)
from torch._inductor.virtualized import V, ops

from torch_spyre._inductor import customops, registered, replaced  # noqa: F401 - the operators named below
from torch_spyre._inductor.errors import Unsupported

aten, spyre = torch.ops.aten, torch.ops.spyre

_ours: dict = {}


def _lowering(*targets):
    def keep(function):
        for target in targets:
            overloads = (
                [target]
                if isinstance(target, torch._ops.OpOverload)
                else [getattr(target, name) for name in target.overloads()]
            )
            for overload in overloads:
                _ours[overload] = function
        return function

    return keep


def _first_tensor(args):
    for arg in torch.utils._pytree.tree_leaves(args, is_leaf=lambda x: isinstance(x, ir.IRNode)):
        if isinstance(arg, ir.IRNode):
            return arg
    return None


def _for_the_card(target, function, original):
    def lower(*args, **kwargs):
        from torch_spyre._inductor import patches

        tensor = _first_tensor((args, kwargs))
        device = tensor.get_device() if tensor is not None else kwargs.get("device")
        if tensor is None and device is None:  # a device given by position
            device = next((a for a in args if isinstance(a, torch.device)), None)
        if device is None or torch.device(device).type != "spyre":
            return original(*args, **kwargs)
        if not patches.is_refused(V.graph.current_node):
            try:
                return function(*args, **kwargs)
            except Unsupported as error:
                patches.refuse(patches.operator_key(V.graph.current_node), str(error))
        return fallback_handler(target, add_to_fallback_set=False)(*args, **kwargs)

    return lower


def register_spyre_lowering(
    op,
    name=None,
    broadcast=False,
    type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT,
    override_return_dtype=None,
    convert_input_to_bool=False,
    lowering_dict=_ours,
):
    """A decorator for a lowering of a script's own; it goes before PyTorch's and before those below.

    The lowering may call ``ops.<name>``, by default the operator's name, for an operation of the card.
    """
    from torch_spyre._inductor.patches import name_device_operation

    name = name or op.__name__
    name_device_operation(name)
    register_op_dtype_propagation_rules(name, type_promotion_kind, override_return_dtype)

    def keep(function):
        register_lowering(
            op,
            broadcast=broadcast,
            type_promotion_kind=type_promotion_kind,
            convert_input_to_bool=convert_input_to_bool,
            lowering_dict=lowering_dict,
        )(function)
        registered.note(op, function)
        return function

    return keep


@contextlib.contextmanager
def installed():
    """Our lowerings over PyTorch's, for the time of one compilation."""
    overlay = {t: _for_the_card(t, f, lowerings.get(t)) for t, f in _ours.items()}
    with replaced.entries(lowerings, overlay):
        yield


# --- arithmetic ------------------------------------------------------------------------------------------------------


def _divided(a, b):
    """By a number as it is: its reciprocal, by which Inductor multiplies, is rounded, too, but for powers of two."""
    divisor = get_constant_value(b)
    if is_integer_type(a) or divisor is None or abs(math.frexp(divisor.value)[0]) == 0.5:
        return div_prim(a, b)
    return make_pointwise(ops.truediv)(a, b)


register_lowering([torch.ops.prims.div], broadcast=True, lowering_dict=_ours)(_divided)


@register_lowering(
    [aten.div.Tensor, aten.true_divide.Tensor],
    broadcast=True,
    type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT,
    lowering_dict=_ours,
)
def _divide(a, b):
    return _divided(*promote_constants((a, b), type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT))


# --- products --------------------------------------------------------------------------------------------------------


class DeviceReduction(ir.Reduction):
    """A reduction with constants of its own; the text carries them as attributes."""

    op_info: dict | None = None


_OF_NOTHING = {"dot": 0.0, "sum": 0.0, "mean": float("nan")}


def _reduction(kind: str, dtype, device, inner_fn, ranges, reduced, info=None) -> ir.TensorBox:
    if any(V.graph.sizevars.statically_known_equals(extent, 0) for extent in reduced):
        return full(ranges, _OF_NOTHING[kind], dtype=dtype, device=device)
    reduction = DeviceReduction(
        device=device,
        dtype=dtype,
        inner_fn=inner_fn,
        ranges=ranges,
        reduction_ranges=reduced,
        reduction_type=kind,
        src_dtype=dtype,
        reduction_hint=ir.ReductionHint.DEFAULT,
    )
    reduction._post_init_setattr("op_info", info)
    box = ir.TensorBox.create(reduction)
    box.realize()
    return box


def _batch_index(index, sizes):
    """The index of an operand whose axes of length one are repeated; missing axes are in front."""
    index = index[len(index) - len(sizes) :]
    return [sympy.Integer(0) if s == 1 else i for i, s in zip(index, sizes, strict=True)]


# Into how many 16-bit parts the operands of a float32 product are split.
_FLOAT32_PARTS = {"highest": 3, "high": 2, "medium": 1}


@_lowering(aten.mm.default, aten.bmm.default, spyre.batched_matmul.default)
def batched_matmul(x, y, out_dtype=None):
    x.realize(), y.realize()
    out_dtype = out_dtype or x.get_dtype()
    *x_batch, rows, depth = x.get_size()
    *y_batch, _, columns = y.get_size()
    batch = _broadcast(x_batch, y_batch)
    load_x, load_y = x.make_loader(), y.make_loader()

    def operands(index, reduced):
        *at, row, column = index
        return (
            load_x([*_batch_index(at, x_batch), row, reduced[0]]),
            load_y([*_batch_index(at, y_batch), reduced[0], column]),
        )

    if V.graph.sizevars.statically_known_equals(depth, 1):

        def single(index):
            return ops.mul(*(ops.to_dtype(t, out_dtype) for t in operands(index, [sympy.Integer(0)])))

        return _pointwise(x, [*batch, rows, columns], single, out_dtype)
    parts = {"parts": _FLOAT32_PARTS[torch.get_float32_matmul_precision()]} if x.get_dtype() == torch.float32 else None
    return _reduction("dot", out_dtype, x.get_device(), operands, [*batch, rows, columns], [depth], parts)


@_lowering(spyre.batched_matmul_wide.default)
def batched_matmul_wide(x, y):
    return batched_matmul(x, y, torch.float32)


def _broadcast(a, b):
    a, b = [1] * (len(b) - len(a)) + list(a), [1] * (len(a) - len(b)) + list(b)
    return [y if x == 1 else x for x, y in zip(a, b, strict=True)]


# --- reductions ------------------------------------------------------------------------------------------------------


@_lowering(aten.mean.default, aten.mean.dim)
def mean(x, axis=None, keepdim=False, *, dtype=None):
    """One reduction that knows its factor, in the type of its input. Over several axes: a sum, then the factor."""
    if dtype is not None:
        x = to_dtype(x, dtype)
    kwargs = _make_reduction_inner(x, axis=axis, keepdims=keepdim, dtype=None, override_return_dtype=None)
    count = 1
    for extent in kwargs["reduction_ranges"]:
        count *= V.graph.sizevars.guard_int(extent)
    device, kind, factor = x.get_device(), x.get_dtype(), 1.0 / max(count, 1)
    inner, outer, reduced = kwargs["inner_fn"], kwargs["ranges"], kwargs["reduction_ranges"]
    if count == 0:
        return full(outer, _OF_NOTHING["mean"], dtype=kind, device=device)
    if count == 1:
        return _pointwise(x, outer, lambda i: inner(i, [sympy.Integer(0)] * len(reduced)))
    if sum(1 for extent in reduced if extent != 1) == 1:
        return _reduction("mean", kind, device, inner, outer, reduced, {"scaling_factor": factor})
    load = _reduction("sum", kind, device, inner, outer, reduced).make_loader()
    return _pointwise(x, outer, lambda i: ops.mul(load(i), ops.constant(factor, kind)))


@_lowering(spyre.exx2)
def exx2(x):
    x.realize()
    *outer, width = x.get_size()
    load = x.make_loader()
    count = V.graph.sizevars.guard_int(width)
    return _reduction(
        "exx2",
        x.get_dtype(),
        x.get_device(),
        lambda i, r: load([*i[:-1], r[0]]),
        [*outer, 1],
        [width],
        {"exx2scale": 1.0 / count, "useZeroMean": 0.0},
    )


# --- pointwise -------------------------------------------------------------------------------------------------------


def _pointwise(like, size, inner_fn, dtype=None) -> ir.TensorBox:
    box = ir.Pointwise.create(
        device=like.get_device(), dtype=dtype or like.get_dtype(), inner_fn=inner_fn, ranges=list(size)
    )
    box.realize()
    return box


def _unary(name: str, x, **constants):
    load = x.make_loader()
    return _pointwise(x, x.get_size(), lambda i: getattr(ops, name)(load(i), **constants))


@_lowering(aten.gelu)
def gelu(x, approximate="none"):
    return _unary("gelu_tanh" if approximate == "tanh" else "gelu", x)


@_lowering(aten.silu)
def silu(x):
    return _unary("silu", x)


@_lowering(aten.softplus)
def softplus(x, beta=1, threshold=20):
    return _unary("softplus", x, beta=float(beta), threshold=float(threshold))


def _clamp(x, low, high):
    bounds = {"min": low, "max": high}
    return _unary("clamp", x, **{name: float(bound) for name, bound in bounds.items() if bound is not None})


def _numbers(*values) -> bool:
    return all(v is None or isinstance(v, (int, float)) for v in values)


def _bound(x, value, pick):
    from torch._inductor.lowering import maximum, minimum

    if isinstance(value, ir.IRNode):
        return (maximum if pick == "min" else minimum)(x, value)
    load, dtype = x.make_loader(), x.get_dtype()
    op = ops.maximum if pick == "min" else ops.minimum
    return _pointwise(x, x.get_size(), lambda i: op(load(i), ops.constant(value, dtype)))


@_lowering(aten.clamp)
def clamp(x, min=None, max=None):  # noqa: A002
    if not x.get_dtype().is_floating_point and any(isinstance(bound, float) for bound in (min, max)):
        x = to_dtype(x, torch.get_default_dtype())
    if x.get_dtype().is_floating_point and _numbers(min, max):
        return _clamp(x, min, max)
    x = x if min is None else _bound(x, min, "min")
    return x if max is None else _bound(x, max, "max")


@_lowering(aten.clamp_min)
def clamp_min(x, bound):
    return clamp(x, bound, None)


@_lowering(aten.clamp_max)
def clamp_max(x, bound):
    return clamp(x, None, bound)


@_lowering(spyre.checked_index)
def checked_index(index, size):
    return _unary("checked_index", index, size=float(size))


@_lowering(spyre.layernormscale)
def layernormscale(moments, eps):
    return _unary("layernormscale", moments, eps=float(eps))


@_lowering(spyre.layernormnorm)
def layernormnorm(x, moments, scale, weight, bias):
    loads = [t.make_loader() for t in (x, moments, scale, weight, bias)]

    def inner(index):
        row = [*index[:-1], sympy.Integer(0)]
        at = [index, row, row, index[-1:], index[-1:]]
        return ops.layernormnorm(*(load(i) for load, i in zip(loads, at, strict=True)))

    return _pointwise(x, x.get_size(), inner)


@_lowering(spyre.causal_mask)
def causal_mask(rows, columns, dtype, device):
    def inner(index):
        allowed = ops.ge(ops.index_expr(index[0], torch.int32), ops.index_expr(index[1], torch.int32))
        return ops.where(allowed, ops.constant(0.0, dtype), ops.constant(torch.finfo(dtype).min, dtype))

    box = ir.Pointwise.create(device=device, dtype=dtype, inner_fn=inner, ranges=[rows, columns])
    box.realize()
    return box


@_lowering(spyre.padding_mask)
def padding_mask(columns, first, dtype, device):
    def inner(index):
        kept = ops.lt(ops.index_expr(index[0], torch.int32), ops.constant(first, torch.int32))
        lowest = torch.finfo(torch.float16).min
        return ops.where(kept, ops.constant(0.0, dtype), ops.constant(lowest, dtype))

    box = ir.Pointwise.create(device=device, dtype=dtype, inner_fn=inner, ranges=[columns])
    box.realize()
    return box


# --- stores into slices of one buffer --------------------------------------------------------------------------------


@_lowering(aten.cat)
def cat(inputs, dim=0):
    inputs = [t for t in inputs if len(t.get_size()) != 1 or t.get_size()[0] != 0] or inputs[:1]
    dtype = functools.reduce(torch.promote_types, [t.get_dtype() for t in inputs])
    inputs = [to_dtype(t, dtype) for t in inputs]
    inputs = [t for t in inputs if t.get_size()[_validate_dim(t, dim, 0)] != 0] or inputs[:1]
    if len(inputs) == 1:
        return clone(inputs[0])
    return ir.TensorBox(ir.ConcatKernel.create(inputs, _validate_dim(inputs[0], dim, 0)))


@_lowering(aten.constant_pad_nd)
def constant_pad_nd(x, padding, fill_value=0):
    """Pieces of the fill value around the tensor, axis by axis; negative padding cuts."""
    from torch._inductor.lowering import slice_

    padding = [V.graph.sizevars.guard_int(count) for count in padding]
    for i in range(len(padding) // 2):
        dim = len(x.get_size()) - 1 - i
        before, after = padding[2 * i], padding[2 * i + 1]
        extent = V.graph.sizevars.guard_int(x.get_size()[dim])
        if before < 0 or after < 0:
            x = slice_(x, dim, max(0, -before), extent + min(0, after))
        pieces = []
        for count in (before, None, after):
            if count is None:
                pieces.append(x)
            elif count > 0:
                size = list(x.get_size())
                size[dim] = count
                pieces.append(full(size, fill_value, dtype=x.get_dtype(), device=x.get_device()))
        x = cat(pieces, dim) if len(pieces) > 1 else x
    return clone(x) if isinstance(x.data, ir.BaseView) or not any(p > 0 for p in padding) else x


@_lowering(aten.index_select.default)
def index_select(x, dim, index):
    rank = len(x.get_size())
    table = x if rank else lowerings[aten.view](x, [1])
    rows = index if len(index.get_size()) else lowerings[aten.view](index, [1])
    before = [None] * (_validate_dim(x, dim, 0) if rank else 0)
    found = lowerings[aten.index.Tensor](table, [*before, rows])
    return found if rank else lowerings[aten.view](found, [])


@_lowering(aten.slice_scatter)
def slice_scatter(x, src, dim=0, start=None, end=None, step=1):
    from torch._inductor.lowering import expand, slice_

    result = clone(x)
    result.realize()
    result.freeze_layout()
    target = slice_(result, dim, start, end, step)
    mutate_to(target, expand(to_dtype(src, x.get_dtype()), target.get_size()))
    return result


@_lowering(aten.select_scatter)
def select_scatter(x, src, dim, index):
    from torch._inductor.lowering import unsqueeze

    dim = _validate_dim(x, dim, 0)
    extent = V.graph.sizevars.guard_int(x.get_size()[dim])
    index = index + extent if index < 0 else index
    return slice_scatter(x, unsqueeze(src, dim), dim, index, index + 1)
