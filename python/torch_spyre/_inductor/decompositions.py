"""Operators written in terms of others, for graphs that are compiled for the card.

The table is Inductor's own, less the operators the card has itself, plus the forms below. The forms are for any
device, or say when they are not; none looks at sizes to choose a faster way, which is the compiler's business.
"""

import functools

import torch

aten = torch.ops.aten

# Lowered as they are: the card has them, or the graph passes want to see them.
_KEPT = (
    aten.addmm,
    aten.baddbmm,
    aten.bmm,
    aten.cat,  # PyTorch's form of a tensor beside itself has other strides than the operator
    aten.clamp,
    aten.clamp_max,
    aten.clamp_min,
    aten.gelu,
    aten.mm,
    aten.silu,
    aten.softplus,
)

_ours: dict = {}

# Whole numbers up to here are exact in the card's 16-bit format.
_EXACT = 1024


def _form(*ops):
    def keep(function):
        for op in ops:
            _ours[op] = function
        return function

    return keep


@functools.cache
def _table() -> dict:
    from torch._inductor.decomposition import select_decomp_table

    import torch_spyre._inductor.customops  # noqa: F401

    table = dict(select_decomp_table())
    for packet in _KEPT:
        for overload in packet.overloads():
            table.pop(getattr(packet, overload), None)
    table.update(_ours)
    return table


def table() -> dict:
    """The decomposition table; a function of its own because cache keys hold its name."""
    return _table()


def _on_card(x) -> bool:
    return x.device.type == "spyre"


@_form(aten.native_layer_norm.default)
def native_layer_norm(x, normalized_shape, weight, bias, eps):
    last = len(normalized_shape) == 1
    if not (_on_card(x) and last):
        return _layer_norm_in_steps(x, normalized_shape, weight, bias, eps)
    moments = torch.ops.spyre.exx2(x)
    scale = torch.ops.spyre.layernormscale(moments, eps)
    weight = torch.ones(normalized_shape, dtype=x.dtype, device=x.device) if weight is None else weight
    bias = torch.zeros(normalized_shape, dtype=x.dtype, device=x.device) if bias is None else bias
    out = torch.ops.spyre.layernormnorm(x, moments, scale, weight, bias)
    # A backward graph wants these two; without one they are dead.
    mean = x.mean(-1, keepdim=True)
    rstd = torch.rsqrt((x - mean).square().mean(-1, keepdim=True) + eps)
    return out, mean, rstd


def _layer_norm_in_steps(x, normalized_shape, weight, bias, eps):
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    mean = x.mean(dims, keepdim=True)
    centred = x - mean
    rstd = torch.rsqrt(centred.square().mean(dims, keepdim=True) + eps)
    out = centred * rstd
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias), mean, rstd


@_form(aten._fused_rms_norm.default)
def fused_rms_norm(x, normalized_shape, weight, eps):
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    rstd = torch.rsqrt((x * x).mean(dims, keepdim=True) + eps)
    out = x * rstd
    return (out if weight is None else out * weight), rstd


def _dims(x, dim) -> list[int]:
    if dim is None:
        return list(range(x.dim()))
    return [dim] if isinstance(dim, int) else list(dim)


@_form(aten.var_mean.correction)
def var_mean(x, dim=None, *, correction=None, keepdim=False):
    dims = _dims(x, dim)
    mean = x.mean(dims, keepdim=True)
    count = 1
    for d in dims:
        count *= x.shape[d]
    correction = 1 if correction is None else correction
    factor = 1.0 / (count - correction) if count > correction else float("inf")
    var = (x - mean).square().sum(dims, keepdim=keepdim) * factor
    return var, (mean if keepdim else x.mean(dims))


@_form(aten.var.correction)
def var(x, dim=None, *, correction=None, keepdim=False):
    return var_mean(x, dim, correction=correction, keepdim=keepdim)[0]


@_form(aten.std.correction)
def std(x, dim=None, *, correction=None, keepdim=False):
    return torch.sqrt(var_mean(x, dim, correction=correction, keepdim=keepdim)[0])


@_form(aten.max.dim)
def max_dim(x, dim, keepdim=False):
    return torch.amax(x, dim, keepdim), torch.argmax(x, dim, keepdim)


@_form(aten.min.dim)
def min_dim(x, dim, keepdim=False):
    return torch.amin(x, dim, keepdim), torch.argmin(x, dim, keepdim)


@_form(aten.cumsum.default)
def cumsum(x, dim, *, dtype=None):
    """Running counts are a product with a triangle of ones, while 16 bits hold every count.

    Of other types the CPU's are kept: a NaN times zero would reach the sums before it, and integers have no products.
    """
    counts = x.dtype == torch.bool and dtype in (None, torch.int64)
    if not counts or not _on_card(x) or x.ndim == 0 or not 0 < x.shape[dim] <= _EXACT:
        return NotImplemented
    steps = torch.arange(x.shape[dim], dtype=torch.float16, device=x.device)
    triangle = (steps[:, None] <= steps).to(torch.float16)
    sums = torch.matmul(x.to(torch.float16).movedim(dim, -1), triangle)
    return sums.movedim(-1, dim).to(torch.int64)


@_form(aten._scaled_dot_product_fused_attention_overrideable.default)
def fused_attention(
    query, key, value, attn_bias=None, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None
):
    from torch_spyre._inductor.attention import attention

    out = attention(query, key, value, attn_bias, dropout_p, is_causal, scale, True)
    empty = torch.empty(0, dtype=torch.float32, device=query.device)
    count = torch.zeros((), dtype=torch.int64, device="cpu")
    return out, empty, None, None, query.shape[-2], key.shape[-2], count, count, empty
