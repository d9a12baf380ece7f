"""Convolutions as one product: what a filter sees at a place lies side by side, and so do its weights.

Channels come last: the pixels that one tap of a filter sees are then a slice of the image, whose rows are whole.
"""

import torch

_SEEN_AT_MOST = 2**27  # elements, each as often as a filter sees it


def supported(x, weight, stride, padding, dilation, transposed: bool, groups: int) -> bool:
    """Over one dimension or two, of all channels together or of each by itself."""
    floats = x.dtype == weight.dtype and x.dtype in (torch.float16, torch.bfloat16, torch.float32)
    together, alone = groups == 1, groups == x.shape[1] == weight.shape[0]
    if not floats or transposed or x.ndim not in (3, 4) or not (together or alone) or min(padding) < 0:
        return False
    seen = x.shape[0] * x.shape[1] * weight[0, 0].numel()
    for extent in extents(x.shape[2:], weight.shape[2:], stride, padding, dilation):
        seen *= extent
    return 0 < seen <= _SEEN_AT_MOST


def extents(image, window, stride, padding, dilation) -> list[int]:
    """How many places a window has along each dimension: 3 pixels wide, in 8 of them, 6."""
    sizes = zip(image, window, stride, padding, dilation, strict=True)
    return [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes]


def convolution(x, weight, bias, stride, padding, dilation, groups: int):
    """The meaning of ``aten::convolution`` where ``supported``."""
    if x.ndim == 3:
        one = convolution(
            x.unsqueeze(2), weight.unsqueeze(2), bias, [1, *stride], [0, *padding], [1, *dilation], groups
        )
        return one.squeeze(2)
    taps = _taps(x, weight.shape[2:], stride, padding, dilation)
    count, height, width, channels = taps[0].shape
    if groups == 1:
        seen = torch.cat(taps, -1).reshape(count, height * width, len(taps) * channels)
        filters = weight.permute(2, 3, 1, 0).reshape(len(taps) * channels, -1)
        out = torch.matmul(seen, filters).reshape(count, height, width, -1)
    else:
        filters = weight.permute(2, 3, 1, 0).reshape(len(taps), channels)
        out = (torch.stack(taps, -2) * filters).sum(-2)
    out = out if bias is None else out + bias
    return out.permute(0, 3, 1, 2).contiguous()


def _taps(x, window, stride, padding, dilation) -> list:
    """By place in the window the pixels that are seen there: [images, height, width, channels] of the result."""
    height, width = extents(x.shape[2:], window, stride, padding, dilation)
    if any(padding):
        x = torch.nn.functional.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    x = x.permute(0, 2, 3, 1).contiguous()

    def along(dim, place, extent):
        start = place * dilation[dim]
        return slice(start, start + (extent - 1) * stride[dim] + 1, stride[dim])

    return [
        x[:, along(0, i, height), along(1, j, width)].contiguous() for i in range(window[0]) for j in range(window[1])
    ]
