"""Operators of the namespace ``spyre::`` that the compiler alone knows; those for scripts are in glue/spyre_ops.cpp.

Each has a meaning on any device (used when the compiler refuses it, and as its definition), a shape function, and a
form in ``spyre/forms``.
"""

import torch
import torch.nn.functional as F
from torch.library import Library, register_autograd, register_fake

_library = Library("spyre", "FRAGMENT")  # kept alive: operators go with it


def _define(schema: str, shape, meaning=None) -> None:
    name = schema.split("(")[0]
    _library.define(schema)
    register_fake(f"spyre::{name}", shape, lib=_library)
    if meaning is not None:
        _library.impl(name, meaning, "CompositeExplicitAutograd")


# Where all of x is written anew: under this name Inductor does not write in place, as it does with ATen's.
_define(
    "index_put(Tensor x, Tensor?[] indices, Tensor values, bool accumulate) -> Tensor",
    lambda x, indices, values, accumulate: torch.empty_like(x),
    torch.ops.aten.index_put,
)


def _grouped_shape(x, weight, ends):
    return x.new_empty(*(() if weight.ndim == 3 else ends.shape), x.shape[0], weight.shape[-1])


_define("grouped_mm(Tensor x, Tensor weight, Tensor ends) -> Tensor", _grouped_shape, torch.ops.aten._grouped_mm)


def _attention_shape(query, key, value, mask, is_causal, scale):
    torch._check(key.shape[-2] == value.shape[-2], lambda: f"keys {key.shape} and values {value.shape}")
    if mask is not None:  # so that open sizes known to be equal are one
        rows_and_keys = (query.shape[-2], key.shape[-2])[-mask.ndim :]
        for size, wanted in zip(mask.shape[-2:], rows_and_keys, strict=True):
            torch._check(
                size == 1 or size == wanted, lambda: f"a mask {mask.shape} of queries {query.shape}, keys {key.shape}"
            )
    return query.new_empty(*query.shape[:-1], value.shape[-1])


def _attention(query, key, value, mask, is_causal, scale):
    out = F.scaled_dot_product_attention(query, key, value, mask, 0.0, is_causal, scale=scale, enable_gqa=True)
    return out.contiguous()


def _attention_gradients(gradient, *args):
    """PyTorch's own: kernels run below autograd, which is switched on again."""
    below = torch._C._dispatch_tls_local_exclude_set()
    for key in (torch._C.DispatchKey.AutogradCPU, torch._C.DispatchKey.ADInplaceOrView):
        below = below.remove(key)
    given = [t.detach().requires_grad_() if t is not None and t.is_floating_point() else t for t in args[:4]]
    with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), below), torch.enable_grad():
        wanted = [t for t in given if t is not None and t.requires_grad]
        return [g.contiguous() for g in torch.autograd.grad(_attention(*given, *args[4:]), wanted, gradient)]


_GIVEN = "Tensor query, Tensor key, Tensor value, Tensor? mask, bool is_causal, float? scale"
_define(f"attention({_GIVEN}) -> Tensor", _attention_shape, _attention)
_define(
    f"attention_backward(Tensor gradient, {_GIVEN}) -> (Tensor, Tensor, Tensor)",
    lambda gradient, query, key, value, *_: tuple(t.new_empty(t.shape) for t in (query, key, value)),
    lambda *args: tuple(_attention_gradients(*args)[:3]),
)
_define(
    f"attention_mask_backward(Tensor gradient, {_GIVEN}) -> Tensor",
    lambda gradient, query, key, value, mask, *_: mask.new_empty(mask.shape),
    lambda *args: _attention_gradients(*args)[3],
)


def _differentiable_gradients(ctx, gradient):
    """Gradients that are themselves differentiated (``create_graph=True``): of PyTorch's own steps, taken again."""
    # Views: key and value may be one tensor, whose two gradients are asked for apart.
    given = [None if t is None else t.view_as(t) for t in ctx.saved_tensors]
    if given[3] is not None and given[3].dtype == torch.bool:  # the steps below add masks to scores, as they are
        given[3] = torch.zeros_like(given[3], dtype=given[0].dtype).masked_fill(~given[3], -torch.inf)
    is_causal, scale = ctx.options
    wanted = [i for i in range(len(given)) if ctx.needs_input_grad[i]]
    out, _ = torch.ops.aten._scaled_dot_product_attention_math(*given, 0.0, is_causal, scale=scale, enable_gqa=True)
    found = torch.autograd.grad(out, [given[i] for i in wanted], gradient, create_graph=True)
    gradients = dict(zip(wanted, found, strict=True))
    return *(gradients.get(i) for i in range(len(given))), None, None


def _attention_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:4])
    ctx.options = inputs[4:]


def _attention_backward(ctx, gradient):
    if torch.is_grad_enabled():
        return _differentiable_gradients(ctx, gradient)
    args = (gradient, *ctx.saved_tensors, *ctx.options)
    of_mask = torch.ops.spyre.attention_mask_backward(*args) if ctx.needs_input_grad[3] else None
    return *torch.ops.spyre.attention_backward(*args), of_mask, None, None


register_autograd("spyre::attention", _attention_backward, setup_context=_attention_setup, lib=_library)


_define(
    "one_hot(Tensor index, int classes) -> Tensor",
    lambda index, classes: index.new_empty(*index.shape, classes, dtype=torch.int64),
    F.one_hot,
)
