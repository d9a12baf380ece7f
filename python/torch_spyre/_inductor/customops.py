"""Operators of the namespace ``spyre::`` that the compiler alone knows; those for scripts are in glue/spyre_ops.cpp.

Each has a meaning on any device (used when the compiler refuses it, and as its definition), a shape function, and a
lowering in ``lowering.py``.
"""

import torch
from torch.library import Library, register_autograd, register_fake

_library = Library("spyre", "FRAGMENT")  # kept alive: operators go with it


def _define(schema: str, shape, meaning=None) -> None:
    name = schema.split("(")[0]
    _library.define(schema)
    register_fake(f"spyre::{name}", shape, lib=_library)
    if meaning is not None:
        _library.impl(name, meaning, "CompositeExplicitAutograd")


def _matmul_shape(x, y):
    batch = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return x.new_empty(*batch, x.shape[-2], y.shape[-1])


_define("batched_matmul(Tensor x, Tensor y) -> Tensor", _matmul_shape, torch.matmul)


def _wide_matmul_shape(x, y):
    return _matmul_shape(x, y).to(torch.float32)


def _wide_matmul(x, y):
    """A product of halves whose sums stay float32; of float32, the product."""
    if x.dtype == torch.float32 or x.device.type != "spyre":
        return torch.matmul(x.to(torch.float32), y.to(torch.float32))
    batch = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    stacks = [t.expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:]) for t in (x, y)]
    return torch.bmm(*stacks, out_dtype=torch.float32).view(*batch, x.shape[-2], y.shape[-1])


_define("batched_matmul_wide(Tensor x, Tensor y) -> Tensor", _wide_matmul_shape, _wide_matmul)


def _causal_mask(rows: int, columns: int, dtype, device):
    return torch.full((rows, columns), torch.finfo(dtype).min, dtype=dtype, device=device).triu(1)


_define(
    "causal_mask(int rows, int columns, ScalarType dtype, Device device) -> Tensor",
    lambda rows, columns, dtype, device: torch.empty(rows, columns, dtype=dtype, device=device),
    _causal_mask,
)


def _checked_index(index, size: int):
    if index.numel() and (int(index.min()) < 0 or int(index.max()) >= size):
        wrong = index[(index < 0) | (index >= size)].flatten()[0].item()
        raise IndexError(f"index {wrong} is out of bounds for a dimension with size {size}")
    return index.clone()


# The same index, of which every element is a position along a dimension of this size; a run with another one fails.
_define("checked_index(Tensor index, int size) -> Tensor", lambda index, size: torch.empty_like(index), _checked_index)


# An index_put that accumulates, under a name that Inductor does not know and hence not write in place.
_define(
    "index_put_sum(Tensor x, Tensor?[] indices, Tensor values) -> Tensor",
    lambda x, indices, values: torch.empty_like(x),
    lambda x, indices, values: torch.ops.aten.index_put(x, indices, values, True),
)


def _grouped_shape(x, weight, ends):
    return x.new_empty(*(() if weight.ndim == 3 else ends.shape), x.shape[0], weight.shape[-1])


_define("grouped_mm(Tensor x, Tensor weight, Tensor ends) -> Tensor", _grouped_shape, torch.ops.aten._grouped_mm)


def _padding_mask(columns: int, first: int, dtype, device):
    mask = torch.zeros(columns, dtype=dtype)
    mask[first:] = torch.finfo(torch.float16).min
    return mask.to(device)


_define(
    "padding_mask(int columns, int first, ScalarType dtype, Device device) -> Tensor",
    lambda columns, first, dtype, device: torch.empty(columns, dtype=dtype, device=device),
    _padding_mask,
)


def _sum_to(gradient, shape):
    """Undoes broadcasting: sums the axes along which a tensor of ``shape`` was repeated."""
    extra = gradient.dim() - len(shape)
    dims = [*range(extra), *(i + extra for i, s in enumerate(shape) if s == 1 and gradient.shape[i + extra] != 1)]
    return (gradient.sum(dims, keepdim=True) if dims else gradient).reshape(shape)


def _matmul_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _matmul_backward(ctx, gradient):
    x, y = ctx.saved_tensors
    matmul = torch.ops.spyre.batched_matmul
    return _sum_to(matmul(gradient, y.mT), x.shape), _sum_to(matmul(x.mT, gradient), y.shape)


def _wide_matmul_backward(ctx, gradient):
    return _matmul_backward(ctx, gradient.to(ctx.saved_tensors[0].dtype))


register_autograd("spyre::batched_matmul", _matmul_backward, setup_context=_matmul_setup, lib=_library)
register_autograd("spyre::batched_matmul_wide", _wide_matmul_backward, setup_context=_matmul_setup, lib=_library)
