"""Operators written in terms of others, for graphs that are compiled for the card.

The table is Inductor's own, less the operators the card has itself, plus the forms below. The forms are for any
device, or say when they are not; none looks at sizes to choose a faster way, which is the compiler's business.
"""

import functools

import torch

from torch_spyre._inductor import (
    classes,
    convolutions,
    encoder_layer,
    experts,
    gradients,
    integers,
    pools,
    registered,
    scans,
    scatters,
    sorting,
)

aten = torch.ops.aten

# Lowered as they are, besides those kept whole (calls.py).
_KEPT = (
    aten.cat,  # PyTorch's form of a tensor beside itself has other strides than the operator
    aten.index_select,  # on the CPU it would be one that counts from the end
)

_ours: dict = {}

# Decompositions of PyTorch's that are not in Inductor's table, and whose operators Inductor does not lower.
_PYTORCHS = {aten.flip.default: lambda x, dims: torch.ops.prims.rev(x, list(dims))}

# Whole numbers up to here are exact in the card's 16-bit format.
_EXACT = 1024

# The smallest normal number of that format: an epsilon below it would be rounded, or zero.
_SMALLEST = {torch.float16: 2.0**-30, torch.bfloat16: 2.0**-30}


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
    for op in calls.operators():
        if op in table:
            table[op] = _unless_whole(op, table[op])
    for op, form in _ours.items():
        table[op] = _or_pytorchs(form, table.get(op, _PYTORCHS.get(op)))
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


_form(aten._native_multi_head_attention.default)(encoder_layer.multi_head_attention)
_form(aten._transformer_encoder_layer_fwd.default)(encoder_layer.transformer_encoder_layer)


def _on_card(x) -> bool:
    return x.device.type == "spyre"


def wide(x):
    """Norms take their statistics in float32: in 16 bits means and squares of rows cancel, overflow or vanish."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


@_form(aten.all.default, aten.all.dim, aten.all.dims)
def all_of_fp8(x, *args, **kwargs):
    """Eight bits are stored, not computed with."""
    wider = x.to(torch.float16) if x.dtype.is_floating_point and x.dtype.itemsize == 1 else None
    return NotImplemented if wider is None else torch.all(wider, *args, **kwargs)


def _at_least_held(eps, dtype):
    """An eps that the dtype would hold as zero is the smallest it holds; a negative one is the caller's business."""
    return max(eps, _SMALLEST.get(dtype, 0.0)) if eps >= 0 else eps


def _centred(rows, dims):
    return rows - rows.mean(dims, keepdim=True)


@_form(aten.native_layer_norm_backward.default)
def native_layer_norm_backward(gradient, x, normalized_shape, mean, rstd, weight, bias, wanted):
    if not _on_card(x) or x.numel() == 0:
        return NotImplemented
    outer = x.dim() - len(normalized_shape)
    dims = list(range(outer, x.dim()))
    normal = _centred(x - mean, dims) * rstd
    of_input = of_weight = of_bias = None
    if wanted[0]:
        slope = gradient if weight is None else gradient * weight
        share = (slope * normal).mean(dims, keepdim=True)
        of_input = (_centred(slope, dims) - normal * share) * rstd
    if wanted[1] and weight is not None:
        of_weight = (gradient * normal).sum(list(range(outer))) if outer else gradient * normal
    if wanted[2] and bias is not None:
        of_bias = gradient.sum(list(range(outer))) if outer else gradient.clone()
    return of_input, of_weight, of_bias


@_form(aten.add.Tensor)
def add(x, y, *, alpha=1):
    """A factor that changes from call to call is a product of its own: as an option every value is compiled for."""
    return x + y * alpha if isinstance(alpha, torch.SymFloat) else NotImplemented


@_form(aten.sub.Tensor)
def sub(x, y, *, alpha=1):
    return x - y * alpha if isinstance(alpha, torch.SymFloat) else NotImplemented


def _dims(x, dim) -> list[int]:
    if dim is None or x.dim() == 0:
        return list(range(x.dim()))
    return [dim] if isinstance(dim, int) else list(dim)


@_form(aten.var_mean.correction)
def var_mean(x, dim=None, *, correction=None, keepdim=False):
    dims, rows = _dims(x, dim), wide(x)
    count = 1
    for d in dims:
        count *= x.shape[d]
    correction = 1 if correction is None else correction
    factor = 1.0 / (count - correction) if count > correction else float("inf")
    centred = _centred(_centred(rows, dims), dims)
    var = centred.square().sum(dims, keepdim=keepdim) * factor
    return var.to(x.dtype), rows.mean(dims, keepdim=keepdim).to(x.dtype)


@_form(aten.var.correction)
def var(x, dim=None, *, correction=None, keepdim=False):
    return var_mean(x, dim, correction=correction, keepdim=keepdim)[0]


@_form(aten.std.correction)
def std(x, dim=None, *, correction=None, keepdim=False):
    return std_mean(x, dim, correction=correction, keepdim=keepdim)[0]


@_form(aten.std_mean.correction)
def std_mean(x, dim=None, *, correction=None, keepdim=False):
    var, mean = var_mean(wide(x), dim, correction=correction, keepdim=keepdim)
    return torch.sqrt(var).to(x.dtype), mean.to(x.dtype)


@_form(aten.linalg_vector_norm.default)
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):  # noqa: A002
    if not _on_card(x) or not x.dtype.is_floating_point or x.numel() == 0 or dtype not in (None, x.dtype):
        return NotImplemented
    dims = _dims(x, dim)
    if ord == 2:
        return torch.sqrt((x * x).sum(dims, keepdim=keepdim))
    if ord == 1:
        return torch.abs(x).sum(dims, keepdim=keepdim)
    if ord == float("inf"):
        return torch.abs(x).amax(dims, keepdim=keepdim)
    if ord == -float("inf"):
        return torch.abs(x).amin(dims, keepdim=keepdim)
    return NotImplemented


@_form(aten.native_group_norm.default)
def native_group_norm(x, weight, bias, n, channels, positions, groups, eps):
    if not _on_card(x) or x.numel() == 0:
        return NotImplemented
    rows = x.reshape(n, groups, channels // groups, positions)
    mean = rows.mean([2, 3], keepdim=True)
    # In the dtype of x: the card cannot turn columns of 32-bit weights. Every time a mean is taken off, what is left of
    # it is a rounding of the one before.
    centred = rows - mean
    for _ in range(2):
        centred = _centred(centred, [2, 3])
    rstd = torch.rsqrt(centred.square().mean([2, 3], keepdim=True) + _at_least_held(eps, x.dtype))
    out = (centred * rstd).reshape(x.shape)
    shape = [1, channels] + [1] * (x.ndim - 2)
    out = out if weight is None else out * weight.reshape(shape)
    out = out if bias is None else out + bias.reshape(shape)
    return out, mean.reshape(n, groups), rstd.reshape(n, groups)


def batch_norm_steps(x, weight, bias, running_mean, running_var, training, momentum, eps):
    """PyTorch's, of what x is without a first mean: the second one is small, and so is its rounding."""
    steps = torch._decomp.decompositions.native_batch_norm_helper
    if not training:
        return steps(x, weight, bias, running_mean, running_var, training, momentum, eps, True)
    dims = [0, *range(2, x.dim())]
    first = x.mean(dims, keepdim=True)
    # The running mean of the rest: PyTorch adds a share of the mean it finds.
    found = steps(x - first, weight, bias, running_mean, running_var, training, momentum, eps, True)
    out, mean, rstd, running_mean, running_var = found
    first = first.squeeze(dims)
    return (
        out,
        mean + first,
        rstd,
        running_mean if running_mean is None else running_mean + momentum * first,
        running_var,
    )


@_form(aten._native_batch_norm_legit_functional.default)
def batch_norm_functional(x, weight, bias, running_mean, running_var, training, momentum, eps):
    if not _on_card(x):
        return NotImplemented
    return batch_norm_steps(x, weight, bias, running_mean, running_var, training, momentum, eps)


@_form(aten._native_batch_norm_legit.no_stats)
def batch_norm_without_running(x, weight, bias, training, momentum, eps):
    if not _on_card(x):
        return NotImplemented
    return batch_norm_steps(x, weight, bias, None, None, training, momentum, eps)[:3]


@_form(aten._weight_norm_interface.default)
def weight_norm(v, g, dim=0):
    if not _on_card(v) or v.numel() == 0:
        return NotImplemented
    norm = torch.sqrt((v * v).sum(gradients.all_but(v, dim), keepdim=True))
    return v * (g / norm), norm


@_form(aten._weight_norm_interface_backward.default)
def weight_norm_backward(gradient, v, g, norm, dim):
    return gradients.weight_norm(gradient, v, g, norm, dim) if _on_card(v) and v.numel() else NotImplemented


@_form(aten.cumsum.default)
def cumsum(x, dim, *, dtype=None):
    if not _on_card(x) or not scans.supported(x, dim, dtype):
        return NotImplemented
    return scans.running_sums(x, dim, dtype)


@_form(aten.topk.default)
def topk(x, k, dim=-1, largest=True, sorted=True):  # noqa: A002
    if not _on_card(x) or not sorting.supported(x, k, dim):
        return NotImplemented
    return sorting.first_sorted(x, k, dim, largest)


@_form(aten.sort.stable)
def sort_stable(x, *, stable=None, dim=-1, descending=False):
    if x.ndim == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    if not _on_card(x) or not sorting.supported(x, x.shape[dim], dim):
        return NotImplemented
    return sorting.first_sorted(x, x.shape[dim], dim, descending)


@_form(aten.sort.default)
def sort(x, dim=-1, descending=False):
    return sort_stable(x, dim=dim, descending=descending)


def _digits(x) -> list:
    """Integers as halves that are equal where the integers are: the card broadcasts along a stick in 16 bits only."""
    if x.dtype not in integers.INTEGERS:
        return [x]
    digits = []
    for part in integers.digits(x):
        upper = torch.floor(part * 2.0**-8)
        digits += [upper.to(torch.float16), (part - upper * 256.0).to(torch.float16)]
    return digits


@_form(aten.isin.Tensor_Tensor)
def isin(elements, test_elements, *, assume_unique=False, invert=False):
    test_elements = test_elements.flatten()
    if test_elements.numel() == 0:
        found = torch.zeros_like(elements, dtype=torch.bool)
    elif test_elements.numel() == 1:
        found = elements == test_elements[0]
    else:
        dtype = torch.promote_types(elements.dtype, test_elements.dtype)
        pairs = zip(_digits(elements.to(dtype)), _digits(test_elements.to(dtype)), strict=True)
        equal = functools.reduce(torch.logical_and, (a.unsqueeze(-1) == b for a, b in pairs))
        found = equal.any(-1)
    return ~found if invert else found


def can_tell_classes(index, num_classes=-1) -> bool:
    """Whether halves tell all classes apart. Those beyond are rounded, but never down to one that exists."""
    return _on_card(index) and 0 < num_classes <= _EXACT


def _existing(index, extent: int):
    """An index into a dimension of this extent. Eager calls have looked at it before, and raise what PyTorch raises; in
    a compiled program the card does, and faults."""
    traced = type(index) is not torch.Tensor
    return torch.ops.spyre.checked_index(index, extent) if traced and index.numel() else index


def one_hot(index, num_classes=-1):
    index = _existing(index, num_classes)
    classes = torch.arange(num_classes, dtype=torch.float16, device=index.device)
    return (index.unsqueeze(-1).to(torch.float16) == classes).to(torch.int64)


@_form(aten.flip.default)
def flip(x, dims):
    """Rows are gathered last to first; along the only dimension there are no rows, and elements are."""
    if x.ndim == 0:
        return x.clone()
    if not _on_card(x) or x.numel() == 0:
        return NotImplemented
    for dim in dims:
        last = x.shape[dim] - 1
        places = last - torch.arange(last + 1, device=x.device)
        if x.numel() == x.shape[dim]:
            x = x.flatten().gather(0, places).view(x.shape)
        else:
            x = x.index_select(dim, places)
    return x if dims else x.clone()


@_form(aten.roll.default)
def roll(x, shifts, dims=()):
    if not dims:
        return roll(x.flatten(), shifts, [0]).view(x.shape) if x.ndim else x.clone()
    for shift, dim in zip(shifts, dims, strict=True):
        n = x.shape[dim]
        start = -shift % n if n else 0
        x = torch.cat([x.narrow(dim, start, n - start), x.narrow(dim, 0, start)], dim) if start else x.clone()
    return x


@_form(aten.gather.default)
def gather(x, dim, index, *, sparse_grad=False):
    if not _on_card(x) or not scatters.supported(x, dim, index):
        return NotImplemented
    return scatters.gather(x, dim, _existing(index, x.shape[dim]))


@_form(aten.scatter.src, aten.scatter.value)
def scatter(x, dim, index, src):
    if not _on_card(x) or not scatters.supported(x, dim, index, src):
        return NotImplemented
    return scatters.scatter(x, dim, _existing(index, x.shape[dim]), src)


def _can_scatter_add(x, dim, index, src) -> bool:
    return _on_card(x) and scatters.supported(x, dim, index, src) and scatters.can_add(x, dim, index)


@_form(aten.scatter_add.default)
def scatter_add(x, dim, index, src):
    if not _can_scatter_add(x, dim, index, src):
        return NotImplemented
    return scatters.scatter_add(x, dim, _existing(index, x.shape[dim]), src)


@_form(aten.index_add.default)
def index_add(x, dim, index, source, *, alpha=1):
    if not _on_card(x) or x.ndim == 0 or index.ndim != 1 or source.ndim != x.ndim or index.numel() > _EXACT:
        return NotImplemented
    source = source if alpha == 1 else source * alpha
    each = scatters.index_for_each(source, dim, _existing(index, x.shape[dim]))
    return scatters.scatter_add(x, dim, each, source) if _can_scatter_add(x, dim, each, source) else NotImplemented


def _one_position_each(x, indices):
    """Of x[i] with one dimension and one index of numbers: where each i counts from the start. Else nothing."""
    if not _on_card(x) or x.ndim != 1 or len(indices) != 1 or indices[0] is None or x.numel() == 0:
        return None
    index = indices[0]
    if index.dtype not in integers.INTEGERS or index.numel() == 0:
        return None
    return torch.where(index < 0, index + x.shape[0], index).flatten()


@_form(aten.index.Tensor)
def index(x, indices):
    """Along the only dimension there are no rows: elements are chosen one by one."""
    places = _one_position_each(x, indices)
    if places is None or not scatters.supported(x, 0, places):
        return NotImplemented
    return scatters.gather(x, 0, _existing(places, x.shape[0])).view(indices[0].shape)


@_form(aten.index_put.default)
def index_put(x, indices, values, accumulate=False):
    if accumulate and _on_card(x) and gradients.can_add_rows(x, indices, values):
        return gradients.rows_added(x, indices, values)
    places = _one_position_each(x, indices)
    if places is None or accumulate or values.dtype != x.dtype:
        return NotImplemented
    values = values.expand(indices[0].shape).flatten()
    if not scatters.supported(x, 0, places, values):
        return NotImplemented
    return scatters.scatter(x, 0, _existing(places, x.shape[0]), values)


@_form(aten.histc.default)
def histc(x, bins=100, min=0, max=0):  # noqa: A002
    if not _on_card(x) or min >= max or not experts.can_count(x, bins):
        return NotImplemented
    return experts.histogram(x, bins, min, max)


@_form(aten._grouped_mm.default)
def grouped_mm(x, weight, offs=None, bias=None, out_dtype=None):
    if not _on_card(x) or not experts.supported(x, weight, offs, bias, out_dtype):
        return NotImplemented
    return experts.grouped_product(x, weight, offs)


@_form(aten.convolution.default)
def convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    if not _on_card(x) or not convolutions.supported(x, weight, stride, padding, dilation, transposed, output_padding):
        return NotImplemented
    if transposed:
        rest = stride, padding, dilation, output_padding, groups
        return convolutions.transposed_convolution(x, weight, bias, *rest)
    return convolutions.convolution(x, weight, bias, stride, padding, dilation, groups)


@_form(aten.convolution_backward.default)
def convolution_backward(
    gradient, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
):
    if not _on_card(x) or not convolutions.supported(x, weight, stride, padding, dilation, transposed, output_padding):
        return NotImplemented
    gradient = gradient.contiguous()
    how = stride, padding, dilation, groups
    of_image = of_weight = of_bias = None
    if output_mask[0] and transposed:
        of_image = convolutions.convolution(gradient, weight, None, *how)
    elif output_mask[0]:
        of_image = convolutions.image_gradient(gradient, x.shape, weight, *how)
    if output_mask[1]:
        small, large = (x, gradient) if transposed else (gradient, x)
        of_weight = convolutions.weight_gradient(small, large, list(weight.shape), *how)
    if output_mask[2]:
        of_bias = gradient.sum([d for d in range(gradient.ndim) if d != 1])
    return of_image, of_weight, of_bias


@_form(aten.max_pool2d_with_indices.default)
def max_pool2d_with_indices(x, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    window = pools.Window(x, kernel_size, stride, padding, dilation, ceil_mode)
    return pools.maximum(x, window) if _on_card(x) and pools.supported(x, window) else NotImplemented


@_form(aten.max_pool2d_with_indices_backward.default)
def max_pool2d_with_indices_backward(gradient, x, kernel_size, stride, padding, dilation, ceil_mode, indices):
    window = pools.Window(x, kernel_size, stride, padding, dilation, ceil_mode)
    if not _on_card(x) or not pools.supported(x, window):
        return NotImplemented
    return pools.maximum_gradient(gradient, x, window, indices)


@_form(aten.embedding_dense_backward.default)
def embedding_dense_backward(gradient, indices, num_weights, padding_idx, scale_grad_by_freq):
    known = _on_card(gradient) and gradient.dtype in gradients.FLOATS and not scale_grad_by_freq
    if not known or not classes.can_tell(indices.numel(), num_weights):
        return NotImplemented
    return gradients.embedding(gradient, indices, num_weights, padding_idx)


@_form(aten.nll_loss_forward.default)
def nll_loss_forward(x, target, weight, reduction, ignore_index):
    """PyTorch's form replaces ignored classes before it looks them up. Here they are found nowhere."""
    if not _on_card(x) or x.ndim != 2 or not classes.can_tell(*x.shape):
        return NotImplemented
    meant = torch.ops.spyre.class_of_each(target, x.shape[1], ignore_index)
    loss = -torch.where(meant, x if weight is None else x * weight, 0.0).sum(1)
    if reduction == 0:
        return loss, x.new_zeros(())
    if weight is None:
        count = (target != ignore_index).sum().to(x.dtype)
    else:
        count = torch.where(meant, weight, 0.0).sum()
    return (loss.sum() / count if reduction == 1 else loss.sum()), count


@_form(aten.nll_loss_backward.default)
def nll_loss_backward(gradient, x, target, weight, reduction, ignore_index, total_weight):
    if not _on_card(x) or x.ndim != 2 or not classes.can_tell(x.shape[0], x.shape[1]):
        return NotImplemented
    return gradients.nll_loss(gradient, x, target, weight, reduction, ignore_index, total_weight)


@_form(aten._scaled_dot_product_fused_attention_overrideable.default)
def fused_attention(
    query, key, value, attn_bias=None, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None
):
    from torch_spyre._inductor.attention import attention

    out = attention(query, key, value, attn_bias, dropout_p, is_causal, scale, True)
    empty = torch.empty(0, dtype=torch.float32, device=query.device)
    count = torch.zeros((), dtype=torch.int64, device="cpu")
    return out, empty, None, None, query.shape[-2], key.shape[-2], count, count, empty
