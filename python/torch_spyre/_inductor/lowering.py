"""From ATen operators to Inductor's loops, where the card wants other loops than a GPU.

Each function below is used only where its first tensor lives on the card; everywhere else, and everywhere outside of
a compilation for the card, PyTorch's own lowering stands.
"""

import contextlib
import functools
import math

import torch
from torch._inductor import ir
from torch._inductor.lowering import (
    ELEMENTWISE_TYPE_PROMOTION_KIND,
    _validate_dim,
    clone,
    div_prim,
    fallback_handler,
    fallbacks,
    full,
    get_constant_value,
    is_integer_type,
    lowerings,
    make_pointwise,
    mutate_to,
    register_lowering,
    register_op_dtype_propagation_rules,
    to_dtype,
)
from torch._inductor.virtualized import V, ops

from torch_spyre._inductor import calls, registered, replaced
from torch_spyre._inductor.errors import Unsupported

aten = torch.ops.aten

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
        if (device is None or torch.device(device).type != "spyre") and original is not None:
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
    """Our lowerings over PyTorch's, for the time of one compilation; operators with a form and without a lowering here
    are kept whole."""
    whole = {op: calls.lowering(op, _of_single_elements(op)) for op in calls.operators()}
    overlay = {t: _for_the_card(t, f, lowerings.get(t)) for t, f in (whole | _ours).items()}
    with replaced.entries(lowerings, overlay):
        yield


def _of_single_elements(op):
    """PyTorch's lowering of an operator that computes each element by itself: alike on every device."""
    return lowerings.get(op) if torch.Tag.pointwise in op.tags and op not in fallbacks else None


# --- arithmetic ------------------------------------------------------------------------------------------------------


def _divided(a, b):
    """By a number as it is: its reciprocal, by which Inductor multiplies, is rounded, too, but for powers of two."""
    divisor = get_constant_value(b)
    if is_integer_type(a) or divisor is None or abs(math.frexp(divisor.value)[0]) == 0.5:
        return div_prim(a, b)
    return make_pointwise(ops.truediv)(a, b)


register_lowering([torch.ops.prims.div], broadcast=True, lowering_dict=_ours)(_divided)


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
