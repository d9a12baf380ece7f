"""Eager operators that are written in terms of others: each step of a form is an eager kernel of its own.

The forms are those that ``torch.compile`` takes apart, so that both ways compute the same. A form the card cannot run
as a whole leaves the operator to the CPU, counted (``_C.run_form``). Operators with a kernel of their own may have a
form for calls that it is refused for.
"""

import functools
import warnings

import torch
from torch._prims_common import check_significant_strides
from torch._prims_common.wrappers import _maybe_resize_out, _safe_copy_out
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten

from torch_spyre import _C, eager_indexing
from torch_spyre._inductor import compaction, customops
from torch_spyre._patches import sixteen_bits_stay

aten = torch.ops.aten


def _slice_scatter(x, src, dim=0, start=None, end=None, step=1):
    """Beside one another, where that can be: a part of a 32-bit tensor is copied by a kernel of its own, and joined by
    another."""
    if step == 1 and src.numel():
        first, last, _ = slice(start, end).indices(x.shape[dim])
        rest = x.narrow(dim, last, x.shape[dim] - last)
        return torch.cat([x.narrow(dim, 0, first), src.to(x.dtype), rest], dim)
    out = x.clone()
    aten.slice.Tensor(out, dim, start, end, step).copy_(src)
    return out


def _select_scatter(x, src, dim, index):
    index = index + x.shape[dim] if index < 0 else index
    return _slice_scatter(x, src.unsqueeze(dim), dim, index, index + 1)


def _glu(x, dim=-1):
    values, gates = x.chunk(2, dim)
    return values * torch.sigmoid(gates)


def _attention(*args, **kwargs):
    return customops.attention(*args, **kwargs) if customops.attends_on_card(*args, **kwargs) else NotImplemented


def _one_hot(*args, **kwargs):
    return customops.one_hot(*args, **kwargs) if customops.tells_classes_on_card(*args, **kwargs) else NotImplemented


def _histc(x, bins=100, min=0, max=0):  # noqa: A002
    """Between the extremes of the values, which are looked at, as on any device."""
    if min != max or not x.numel():
        return NotImplemented
    low, high = x.min().item(), x.max().item()
    return torch.histc(x, bins, *((low, high) if low < high else (low - 1, high + 1)))


def _bincount(x, weights=None, minlength=0):
    """The largest number says how long the result is: it is looked at, as on any device."""
    if weights is not None or x.ndim != 1 or x.numel() == 0 or x.is_floating_point() or int(x.min()) < 0:
        return NotImplemented
    bins = max(int(x.max()) + 1, minlength)
    return torch.histc(x.to(torch.float32), bins, -0.5, bins - 0.5).to(torch.int64)


def _pad_words(x, pad, value=0):
    """32-bit elements move as pairs of halves, and so do zeros; another number is chosen where there was no element."""
    if value == 0 or x.dtype not in (torch.float32, torch.int32, torch.int64):
        return NotImplemented
    outside = aten.constant_pad_nd(torch.zeros_like(x, dtype=torch.float16), pad, 1.0) != 0.0
    return torch.where(outside, torch.full((), value, dtype=x.dtype, device=x.device), aten.constant_pad_nd(x, pad, 0))


def _flip(x, dims):
    """Rows of 32-bit elements change places along the stick in kernels of their own."""
    for dim in dims:
        x = x.index_select(dim, x.shape[dim] - 1 - torch.arange(x.shape[dim], device=x.device))
    return x if dims else x.clone()


_FORMS = {
    aten.bincount.default: _bincount,
    aten._unique2.default: compaction.unique,
    aten.masked_scatter.default: compaction.masked_scatter,
    aten.masked_select.default: compaction.masked_select,
}

# Operators with a kernel of their own, for calls that it is refused for.
_WHERE_REFUSED = {
    aten.constant_pad_nd.default: _pad_words,
    aten.flip.default: _flip,
    aten.glu.default: _glu,
    aten.histc.default: _histc,
    aten.index.Tensor: eager_indexing.index,
    aten.select_scatter.default: _select_scatter,
    aten.slice_scatter.default: _slice_scatter,
}

# PyTorch takes these apart above autograd, and so do we; what is not for the card stays PyTorch's.
_COMPOSITE_FORMS = {
    aten.one_hot.default: _one_hot,
    aten.scaled_dot_product_attention.default: _attention,
}


def _packs_no_texts(x, mask) -> bool:
    """What ``nn.TransformerEncoder`` asks before it packs padded texts into a nested tensor: the card has none."""
    return False


_library = torch.library.Library("aten", "IMPL")  # kept alive: kernels go with it


def _with_promised_strides(op, found, args, kwargs):
    """Results as PyTorch says that they lie, for any device: a compiled program relies on it where it calls ``op``."""
    tensors = [t for t in tree_leaves((found, args, kwargs)) if isinstance(t, torch.Tensor)]
    if found is NotImplemented or all(t.is_contiguous() for t in tensors):
        return found
    try:
        promised = op(*tree_map_only(torch.Tensor, _meta, args), **tree_map_only(torch.Tensor, _meta, kwargs))
    except RuntimeError:
        return found  # the rule has no answer: the shape depends on values, or the types are only the card's

    def lies_as(value, wish):
        if not isinstance(value, torch.Tensor) or check_significant_strides(value, wish, only_cuda=False)[0]:
            return value
        return value.new_empty_strided(value.shape, wish.stride()).copy_(value)

    values, structure = tree_flatten(found)
    return tree_unflatten(map(lies_as, values, tree_leaves(promised)), structure)


def _as_promised(op, form):
    """The form of a refused call, whose results lie as those of its kernel would."""

    @functools.wraps(form)
    def found(*args, **kwargs):
        result = form(*args, **kwargs)
        return result if op._schema.is_mutable else _with_promised_strides(op, result, args, kwargs)

    return found


def _meta(x):
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")


def _kernel(op, form, otherwise=None):
    overload = "" if op._overloadname == "default" else op._overloadname

    @functools.wraps(form)
    def as_the_card_computes(*args, **kwargs):
        with sixteen_bits_stay():
            found = form(*args, **kwargs)
        if op._schema.is_mutable or otherwise:
            return found  # into tensors that were there; and compiled programs call no composite operators
        return _with_promised_strides(op, found, args, kwargs)

    return functools.partial(_C.run_form, op._schema.name, overload, as_the_card_computes, otherwise)


def _into(form, results):
    """A form that writes what another one makes: into the tensors given as ``results``, or into its first argument."""

    @functools.wraps(form)
    def write(*args, **kwargs):
        targets = [kwargs.pop(name) for name in results] or [args[0]]
        made = form(*args, **kwargs)
        if made is NotImplemented:
            return made
        made = [made] if isinstance(made, torch.Tensor) else made
        for target, value in zip(targets, made, strict=True):
            target = _maybe_resize_out(target, value.shape) if results else target
            _safe_copy_out(copy_from=value, copy_to=target)
        return targets[0] if len(targets) == 1 else tuple(targets)

    return write


def _overloads(name):
    packet = getattr(aten, name, None)
    return [getattr(packet, overload) for overload in packet.overloads()] if packet is not None else []


def _variants(op):
    """The operators that take what ``op`` takes and write its results: in place, and where ``out=`` says.

    Each with the names of the arguments it writes to; none are names of the first one.
    """

    def given(schema):
        return [(a.name, str(a.type)) for a in schema.arguments if not a.is_out]

    name = op._schema.name.removeprefix("aten::")
    for other in _overloads(name) + _overloads(name + "_"):
        results = [a.name for a in other._schema.arguments if a.is_out]
        if other is not op and given(other._schema) == given(op._schema) and (results or other._schema.is_mutable):
            yield other, results


def forms() -> dict:
    """Every operator with a form below autograd: those above, and what writes their results elsewhere."""
    return {**{other: _into(form, names) for op, form in _FORMS.items() for other, names in _variants(op)}, **_FORMS}


def replace(op, form) -> None:
    """Another form for an operator, a script's own; calls of the card run it from now on."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning only once for all operators")  # replacing is what was asked
        _library.impl(op, _kernel(op, form), "PrivateUse1", allow_override=True)


def install() -> None:
    _C.set_refused_forms({op.name(): _as_promised(op, form) for op, form in _WHERE_REFUSED.items()})
    _library.impl(aten._nested_tensor_from_mask_left_aligned.default, _packs_no_texts, "PrivateUse1")
    for op, form in forms().items():
        _library.impl(op, _kernel(op, form), "PrivateUse1")
    for op, form in _COMPOSITE_FORMS.items():
        for key in ("PrivateUse1", "AutogradPrivateUse1"):
            _library.impl(op, _kernel(op, form, op.decompose), key)
