"""Eager operators that are written in terms of others: each step of a form is an eager kernel of its own.

The forms are those that ``torch.compile`` takes apart, so that both ways compute the same. A form the card cannot run
as a whole leaves the operator to the CPU, counted (``_C.run_form``).
"""

import functools

import torch

from torch_spyre import _C
from torch_spyre._inductor import attention, decompositions

aten = torch.ops.aten

_ONE_BY_ONE_AT_MOST = 16  # as many as a model has tokens that end a text


def _slice_scatter(x, src, dim=0, start=None, end=None, step=1):
    out = x.clone()
    aten.slice.Tensor(out, dim, start, end, step).copy_(src)
    return out


def _select_scatter(x, src, dim, index):
    out = x.clone()
    out.select(dim, index).copy_(src)
    return out


def _isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Integers are compared with numbers, one by one: the digits that a compiled program compares at once lie in an
    order that calls of their own cannot broadcast."""
    few = 1 < test_elements.numel() <= _ONE_BY_ONE_AT_MOST
    if not few or elements.is_floating_point() or test_elements.is_floating_point():
        return decompositions.isin(elements, test_elements, assume_unique=assume_unique, invert=invert)
    found = functools.reduce(torch.logical_or, (elements == one for one in test_elements.flatten().tolist()))
    return ~found if invert else found


def _attention(*args, **kwargs):
    if not attention.supported(*args, **kwargs):
        return NotImplemented
    import torch_spyre._inductor.customops  # noqa: F401

    return attention.attention(*args, **kwargs)


def _positions_fit(index, extent: int) -> bool:
    if isinstance(index, torch._subclasses.FakeTensor):
        return True  # traced, not run
    host = index.cpu()
    return host.numel() == 0 or (0 <= int(host.min()) and int(host.max()) < extent)


def _inside(form):
    """A form of x, dim and index, for indices that exist; PyTorch's error for others is the CPU's."""

    @functools.wraps(form)
    def checked(x, dim, index, *args, **kwargs):
        if x.ndim == 0 or not _positions_fit(index, x.shape[dim]):
            return NotImplemented
        return form(x, dim, index, *args, **kwargs)

    return checked


def _one_hot(*args, **kwargs):
    if not decompositions.can_tell_classes(*args, **kwargs):
        return NotImplemented
    index, classes = (*args, kwargs.get("num_classes"))[:2]
    if not _positions_fit(index, classes):
        return NotImplemented
    return decompositions.one_hot(*args, **kwargs)


_FORMS = {
    aten.convolution.default: decompositions.convolution,
    aten.cumsum.default: decompositions.cumsum,
    aten.flip.default: decompositions.flip,
    aten.gather.default: _inside(decompositions.gather),
    aten.index_add.default: _inside(decompositions.index_add),
    aten.isin.Tensor_Tensor: _isin,
    aten.linalg_vector_norm.default: decompositions.vector_norm,
    aten.native_group_norm.default: decompositions.native_group_norm,
    aten.roll.default: decompositions.roll,
    aten.scatter.src: _inside(decompositions.scatter),
    aten.scatter.value: _inside(decompositions.scatter),
    aten.scatter_add.default: _inside(decompositions.scatter_add),
    aten.select_scatter.default: _select_scatter,
    aten.slice_scatter.default: _slice_scatter,
    aten.sort.default: decompositions.sort,
    aten.sort.stable: decompositions.sort_stable,
    aten.std.correction: decompositions.std,
    aten.std_mean.correction: decompositions.std_mean,
    aten.topk.default: decompositions.topk,
    aten.var.correction: decompositions.var,
    aten.var_mean.correction: decompositions.var_mean,
}

# PyTorch takes these apart above autograd, and so do we; what is not for the card stays PyTorch's.
_COMPOSITE_FORMS = {
    aten.one_hot.default: _one_hot,
    aten.scaled_dot_product_attention.default: _attention,
}

_library = torch.library.Library("aten", "IMPL")  # kept alive: kernels go with it


def _kernel(op, form, otherwise=None):
    overload = "" if op._overloadname == "default" else op._overloadname
    return functools.partial(_C.run_form, op._schema.name, overload, form, otherwise)


def install() -> None:
    for op, form in _FORMS.items():
        _library.impl(op, _kernel(op, form), "PrivateUse1")
    for op, form in _COMPOSITE_FORMS.items():
        for key in ("PrivateUse1", "AutogradPrivateUse1"):
            _library.impl(op, _kernel(op, form, op.decompose), key)
