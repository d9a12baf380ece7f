"""From operators to Inductor's nodes: those with a form are kept whole (calls.py), a script may register its own.

Both are used only where an operator's first tensor lives on the card; everywhere else, and everywhere outside of a
compilation for the card, PyTorch's own lowering stands.
"""

import contextlib

import torch
from torch._inductor import ir
from torch._inductor.lowering import (
    ELEMENTWISE_TYPE_PROMOTION_KIND,
    fallback_handler,
    fallbacks,
    lowerings,
    register_lowering,
    register_op_dtype_propagation_rules,
)
from torch._inductor.virtualized import V

from torch_spyre._inductor import calls, registered, replaced
from torch_spyre._inductor.errors import Unsupported

_ALIKE = (torch.ops.aten.embedding.default, torch.ops.prims.div.default)

_ours: dict = {}


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
    """A decorator for a lowering of a script's own; it goes before PyTorch's and before operators kept whole.

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


def _concatenation(original):
    """Each part is copied where it belongs; PyTorch's lowering would rather read all parts everywhere, masked."""

    def copied(part):
        return ir.Pointwise.create(
            device=part.get_device(), dtype=part.get_dtype(), inner_fn=part.make_loader(), ranges=part.get_size()
        )

    def lower(tensors, dim=0):
        parts = [tensor for tensor in tensors if tensor.get_size() != [0]]
        if len({part.get_dtype() for part in parts}) > 1 or {p.get_device().type for p in parts} != {"spyre"}:
            return original(tensors, dim)
        for part in parts:
            part.realize()
        return ir.TensorBox(ir.ConcatKernel.create(list(map(copied, parts)), dim % len(parts[0].get_size())))

    return lower


def _of_single_elements(op):
    """PyTorch's lowering of an operator that computes or moves each element by itself: alike on every device."""
    if op is torch.ops.aten.cat.default:
        return _concatenation(lowerings.get(op))
    alike = torch.Tag.pointwise in op.tags or op in _ALIKE
    return lowerings.get(op) if alike and op not in fallbacks else None
