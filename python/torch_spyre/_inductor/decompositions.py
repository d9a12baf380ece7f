"""Operators written in terms of others, for graphs that are compiled for the card.

The table is Inductor's own, less the operators the card has itself, plus the forms below. The forms are for any
device, or say when they are not; none looks at sizes to choose a faster way, which is the compiler's business.
"""

import functools

import torch
from torch.fx.experimental.symbolic_shapes import guard_or_false

from torch_spyre import _C
from torch_spyre._inductor import registered

aten = torch.ops.aten

# Lowered as they are, besides those kept whole (calls.py).
_KEPT = (
    aten.cat,  # PyTorch's form of a tensor beside itself has other strides than the operator
    aten.index_select,  # on the CPU it would be one that counts from the end
)

_ours: dict = {}

# Decompositions of PyTorch's that are not in Inductor's table, and whose operators Inductor does not lower.
_PYTORCHS = {aten.flip.default: lambda x, dims: torch.ops.prims.rev(x, list(dims))}


def _form(*ops):
    def keep(function):
        for op in ops:
            _ours[op] = function
        return function

    return keep


def register_spyre_decomposition(ops):
    """A decorator for a decomposition of a script's own: operators that are written in others on the card.

    It replaces PyTorch's and those below, in compiled programs and, for ATen's operators, in eager calls.
    """

    def keep(function):
        from torch_spyre import eager_forms

        for op in ops if isinstance(ops, (list, tuple)) else [ops]:
            overloads = [op] if isinstance(op, torch._ops.OpOverload) else [getattr(op, o) for o in op.overloads()]
            for overload in overloads:
                _ours[overload] = function
                if overload.namespace == "aten":
                    eager_forms.replace(overload, function)
        registered.note(ops, function)
        _table.cache_clear()
        return function

    return keep


@functools.cache
def _table() -> dict:
    from torch._inductor.decomposition import select_decomp_table

    import torch_spyre._inductor.customops  # noqa: F401
    from torch_spyre._inductor import calls

    table = dict(select_decomp_table())
    for packet in _KEPT:
        for overload in packet.overloads():
            table.pop(getattr(packet, overload), None)
    table = _PYTORCHS | table
    for op in calls.operators():
        if op in table:
            table[op] = _unless_whole(op, table[op])
    for op, form in _ours.items():
        table[op] = _or_pytorchs(form, table.get(op))
    return table


def _unless_whole(op, pytorchs):
    """Operators whose form takes the call stay, on the card; beside it, and else, they are what they always were."""
    from torch_spyre._inductor import calls

    @functools.wraps(pytorchs)
    def apart(*args, **kwargs):
        tensors = (a for a in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(a, torch.Tensor))
        whole = any(map(_on_card, tensors)) and calls.takes(op, args, kwargs)
        return NotImplemented if whole else pytorchs(*args, **kwargs)

    return apart


def _or_pytorchs(form, pytorchs):
    """PyTorch's decomposition where ours declines. Without one the operator stays, for Inductor's own lowering."""
    if pytorchs is None:
        return form

    @functools.wraps(form)
    def either(*args, **kwargs):
        result = form(*args, **kwargs)
        return pytorchs(*args, **kwargs) if result is NotImplemented else result

    return either


def table() -> dict:
    """The decomposition table; a function of its own because cache keys hold its name."""
    found = _table()
    # The name that transformers has for the grouped product, in programs where PyTorch's own is not for compilers.
    if hasattr(torch.ops.transformers, "grouped_mm_fallback"):
        found.setdefault(torch.ops.transformers.grouped_mm_fallback.default, grouped_mm)
    return found


def _on_card(x) -> bool:
    return x.device.type == "spyre"


@_form(aten.eye.default, aten.eye.m)
def eye(n, m=None, *, dtype=None, device=None, **_):
    """PyTorch counts in 8 bits where they are enough, which the card does not compute."""
    rows, columns = (torch.arange(size, device=device) for size in (n, n if m is None else m))
    return (rows[:, None] == columns).to(dtype or torch.get_default_dtype())


@_form(aten.add.Tensor)
def add(x, y, *, alpha=1):
    """A factor that changes from call to call is a product of its own: as an option every value is compiled for."""
    return x + y * alpha if isinstance(alpha, torch.SymFloat) else NotImplemented


@_form(aten.sub.Tensor)
def sub(x, y, *, alpha=1):
    return x - y * alpha if isinstance(alpha, torch.SymFloat) else NotImplemented


@_form(aten.index_put.default)
def index_put(x, indices, values, accumulate=False):
    """Sums, and elements of a single row: no rows that could be written where they are."""
    given = {d: i for d, i in enumerate(indices) if i is not None}
    of_row = len(given) == 1 and all(
        i.dtype != torch.bool and guard_or_false(x.numel() == x.shape[d]) for d, i in given.items()
    )
    empty = any(guard_or_false(t.numel() == 0) for t in (x, *given.values()))
    if not _on_card(x) or empty or not (accumulate or of_row):
        return NotImplemented
    return torch.ops.spyre.index_put(x, indices, values, accumulate)


# Above autograd the next two are met in glue/composites.cpp; regions that repeat are traced below it.


@_form(aten.scaled_dot_product_attention.default)
def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    whole = _C.is_whole_attention(query, key, value, dropout_p)
    return torch.ops.spyre.attention(query, key, value, attn_mask, is_causal, scale) if whole else NotImplemented


@_form(aten.one_hot.default)
def one_hot(index, num_classes=-1):
    return torch.ops.spyre.one_hot(index, num_classes) if _C.is_whole_one_hot(index, num_classes) else NotImplemented


@_form(aten._grouped_mm.default)
def grouped_mm(x, weight, offs=None, bias=None, out_dtype=None):
    """Under a name of ours: PyTorch's own rule for its shape takes bfloat16 alone."""
    known = x.ndim == 2 and weight.ndim in (2, 3) and offs is not None and bias is None and out_dtype in (None, x.dtype)
    return torch.ops.spyre.grouped_mm(x, weight, offs) if _on_card(x) and known else NotImplemented
