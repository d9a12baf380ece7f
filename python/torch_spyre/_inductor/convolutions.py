"""Convolutions as one product: what a filter sees at a place lies side by side, and so do its weights.

Channels come last: the pixels that one tap of a filter sees are then a slice of the image, whose rows are whole. The
gradient of an image is a convolution, too: of the result's gradient with zeros between its pixels, by the same filters
read backwards. That is also what a transposed convolution means.
"""

import functools

import torch

_SEEN_AT_MOST = 2**27  # elements, each as often as a filter sees it
_FLOATS = (torch.float16, torch.bfloat16, torch.float32)


def supported(x, weight, stride, padding, dilation, transposed: bool, output_padding) -> bool:
    """Over one dimension or two."""
    floats = x.dtype == weight.dtype and x.dtype in _FLOATS
    if not floats or x.ndim not in (3, 4) or min(padding) < 0 or x.numel() == 0 or weight.numel() == 0:
        return False
    seen = x.shape[0] * x.shape[1] * weight[0, 0].numel()
    sizes = x.shape[2:], weight.shape[2:], stride, padding, dilation
    for extent in _extents_before(*sizes, output_padding) if transposed else extents(*sizes):
        seen *= extent
    return 0 < seen <= _SEEN_AT_MOST


def extents(image, window, stride, padding, dilation) -> list[int]:
    """How many places a window has along each dimension: 3 pixels wide, in 8 of them, 6."""
    sizes = zip(image, window, stride, padding, dilation, strict=True)
    return [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes]


def _extents_before(places, window, stride, padding, dilation, more) -> list[int]:
    """The other way: how long the image was that has so many places, with ``more`` pixels that no window reached."""
    sizes = zip(places, window, stride, padding, dilation, more, strict=True)
    return [(m - 1) * s - 2 * p + d * (k - 1) + 1 + extra for m, k, s, p, d, extra in sizes]


def convolution(x, weight, bias, stride, padding, dilation, groups: int):
    """The meaning of ``aten::convolution`` where ``supported``."""
    if x.ndim == 3:
        x, weight, stride, padding, dilation = _with_rows(x, weight, stride, padding, dilation)
        return convolution(x, weight, bias, stride, padding, dilation, groups).squeeze(2)
    alone = _alone(x, weight, groups)
    if groups > 1 and not alone:
        parts = zip(x.chunk(groups, 1), weight.chunk(groups), strict=True)
        one = functools.partial(convolution, stride=stride, padding=padding, dilation=dilation, groups=1)
        return _with_bias(torch.cat([one(image, part, None) for image, part in parts], 1), bias)
    taps = _taps(_channels_last(x), weight.shape[2:], stride, [(p, p) for p in padding], dilation)
    return _filtered(taps, weight, bias, alone)


def transposed_convolution(x, weight, bias, stride, padding, dilation, output_padding, groups: int):
    """The meaning of ``aten::convolution`` with ``transposed``; a weight is [channels of x, of the result, ...]."""
    if x.ndim == 3:
        x, weight, stride, padding, dilation = _with_rows(x, weight, stride, padding, dilation)
        more = [0, *output_padding]
        return transposed_convolution(x, weight, bias, stride, padding, dilation, more, groups).squeeze(2)
    alone = _alone(x, weight, groups)
    if groups > 1 and not alone:
        parts = zip(x.chunk(groups, 1), weight.chunk(groups), strict=True)
        rest = stride, padding, dilation, output_padding, 1
        return _with_bias(torch.cat([transposed_convolution(i, w, None, *rest) for i, w in parts], 1), bias)
    reach = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    around = [(r - p, r - p + more) for r, p, more in zip(reach, padding, output_padding, strict=True)]
    taps = _taps(_spread(_channels_last(x), stride), weight.shape[2:], [1, 1], around, dilation)
    return _filtered(taps[::-1], weight if alone else weight.transpose(0, 1), bias, alone)


def image_gradient(gradient, shape, weight, stride, padding, dilation, groups: int):
    """Of the image, of this shape, that a convolution saw."""
    none = [0] * len(stride)
    seen = _extents_before(gradient.shape[2:], weight.shape[2:], stride, padding, dilation, none)
    unseen = [n - m for n, m in zip(shape[2:], seen, strict=True)]
    return transposed_convolution(gradient, weight, None, stride, padding, dilation, unseen, groups)


def weight_gradient(gradient, x, shape, stride, padding, dilation, groups: int):
    """Of the filters, of this shape: for each pair of channels and each tap a sum over all places."""
    if x.ndim == 3:
        gradient, x, stride, padding, dilation = _with_rows(gradient, x, stride, padding, dilation)
        shape = [*shape[:2], 1, *shape[2:]]
        return weight_gradient(gradient, x, shape, stride, padding, dilation, groups).squeeze(2)
    alone = groups > 1 and groups == x.shape[1] == gradient.shape[1]
    if groups > 1 and not alone:
        parts = zip(gradient.chunk(groups, 1), x.chunk(groups, 1), strict=True)
        rest = [shape[0] // groups, *shape[1:]], stride, padding, dilation, 1
        return torch.cat([weight_gradient(g, image, *rest) for g, image in parts])
    taps = _taps(_channels_last(x), shape[2:], stride, [(p, p) for p in padding], dilation)
    gradient = _channels_last(gradient)
    if alone:
        return torch.stack([(tap * gradient).sum((0, 1, 2)) for tap in taps], -1).view(shape)
    seen = torch.cat(taps, -1).flatten(0, 2)
    by_tap = torch.mm(seen.t(), gradient.flatten(0, 2)).view(*shape[2:], shape[1], shape[0])
    return by_tap.permute(3, 2, 0, 1).contiguous()


def taps_of(x, window, stride, dilation) -> list:
    """By place in the window the pixels that are seen there: [images, height, width, channels] of the result."""
    height, width = extents(x.shape[1:3], window, stride, [0, 0], dilation)

    def along(dim, place, extent):
        start = place * dilation[dim]
        return slice(start, start + (extent - 1) * stride[dim] + 1, stride[dim])

    places = [(i, j) for i in range(window[0]) for j in range(window[1])]
    return [x[:, along(0, i, height), along(1, j, width)].contiguous() for i, j in places]


def sum_of_places(parts, shape, stride, padding, places):
    """By place in a window the values [images, height, width, channels] that its pixels get: added up to the image."""
    total = None
    for part, place in zip(parts, places, strict=True):
        sizes = zip(place, padding, shape[2:], part.shape[1:3], stride, strict=True)
        around = [(at - p, n - (m - 1) * s - 1 - at + p) for at, p, n, m, s in sizes]
        image = _padded(_spread(part, stride), around)
        total = image if total is None else total + image
    return _channels_first(total)


def _with_rows(x, y, stride, padding, dilation):
    """Of one dimension, as of two of which the first is one row."""
    return x.unsqueeze(2), y.unsqueeze(2), [1, *stride], [0, *padding], [1, *dilation]


def _alone(x, weight, groups: int) -> bool:
    """Whether every channel is filtered by itself, once."""
    return groups > 1 and groups == x.shape[1] == weight.shape[0] and weight.shape[1] == 1


def _channels_last(x):
    return x.permute(0, 2, 3, 1).contiguous()


def _channels_first(x):
    return x.permute(0, 3, 1, 2).contiguous()


def _with_bias(x, bias):
    return x if bias is None else x + bias.view(-1, 1, 1)


def _filtered(taps, weight, bias, alone: bool):
    """What filters [results, channels, height, width] make of what their taps see."""
    count, height, width, channels = taps[0].shape
    by_tap = weight.permute(2, 3, 1, 0)
    if alone:
        out = (torch.stack(taps, -2) * by_tap.reshape(len(taps), channels)).sum(-2)
    else:
        seen = torch.cat(taps, -1).reshape(count, height * width, len(taps) * channels)
        out = torch.matmul(seen, by_tap.reshape(len(taps) * channels, -1)).reshape(count, height, width, -1)
    return _channels_first(out if bias is None else out + bias)


def _taps(x, window, stride, around, dilation) -> list:
    return taps_of(_padded(x, around), window, stride, dilation)


def _padded(x, around):
    """Zeros around an image with its channels last, rows and columns; of negative numbers of them a part of it."""
    (top, bottom), (left, right) = around
    return torch.nn.functional.pad(x, (0, 0, left, right, top, bottom)) if any(map(any, around)) else x


def _spread(x, stride):
    """Zeros between the pixels: [1, 2, 3] with stride 2 is [1, 0, 2, 0, 3]."""
    for dim, step in zip((1, 2), stride, strict=True):
        if step > 1 and x.shape[dim] > 1:
            extent = (x.shape[dim] - 1) * step + 1
            gaps = [x, *[torch.zeros_like(x)] * (step - 1)]
            x = torch.stack(gaps, dim + 1).flatten(dim, dim + 1).narrow(dim, 0, extent).contiguous()
    return x
