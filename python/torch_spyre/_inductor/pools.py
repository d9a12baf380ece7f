"""The largest pixel of every window, where it was, and what its gradient adds to it.

Windows are taken apart as those of convolutions are: by place in the window an image of the pixels seen there, channels
last. The largest of them goes along from image to image, with the place it came from in 16 bits, where whole numbers up
to 1024 are exact; positions in the input are counted in 32.
"""

import torch

from torch_spyre._inductor import convolutions

_EXACT = 1024
_PIXELS_AT_MOST = 2**24  # positions that float32 holds
_FLOATS = (torch.float16, torch.bfloat16, torch.float32)


class Window:
    """How a window of two dimensions goes over images [..., height, width]."""

    def __init__(self, x, size, stride, padding, dilation, ceil_mode: bool):
        self.size, self.padding, self.dilation = _pair(size), _pair(padding), _pair(dilation)
        self.stride = _pair(stride) if stride else self.size
        self.image = list(x.shape[-2:])
        sizes = zip(self.image, self.size, self.stride, self.padding, self.dilation, strict=True)
        self.extents = [_extent(*one, ceil_mode) for one in sizes]

    def around(self) -> list[tuple[int, int]]:
        """How many pixels there are before and behind the image, rows and columns, that some window sees."""
        sizes = zip(self.extents, self.size, self.stride, self.padding, self.dilation, self.image, strict=True)
        return [(p, (m - 1) * s + d * (k - 1) + 1 - n - p) for m, k, s, p, d, n in sizes]

    def places(self) -> list[tuple[int, int]]:
        return [(i * self.dilation[0], j * self.dilation[1]) for i in range(self.size[0]) for j in range(self.size[1])]


def _pair(values) -> list[int]:
    values = [values] if isinstance(values, int) else list(values)
    return values * 2 if len(values) == 1 else values


def _extent(n: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    room = n + 2 * p - d * (k - 1) - 1
    extent = (room + s - 1 if ceil_mode else room) // s + 1
    return extent - 1 if ceil_mode and (extent - 1) * s >= n + p else extent  # none begins behind the image


def supported(x, window: Window) -> bool:
    """Whether rows and columns, of the image and of a window, can be counted."""
    last_row, last_column = window.places()[-1]
    counted = max(*window.image, *window.extents, last_row, last_column) <= _EXACT
    pixels = window.image[0] * window.image[1]
    return x.dtype in _FLOATS and x.ndim in (3, 4) and x.numel() > 0 and counted and pixels <= _PIXELS_AT_MOST


def maximum(x, window: Window):
    """The meaning of ``aten::max_pool2d_with_indices``."""
    if x.ndim == 3:
        values, positions = maximum(x.unsqueeze(0), window)
        return values.squeeze(0), positions.squeeze(0)
    x = x.permute(0, 2, 3, 1).contiguous()
    (top, bottom), (left, right) = window.around()
    # What no number is smaller than stands around the image.
    x = torch.nn.functional.pad(x, (0, 0, left, right, top, bottom), value=torch.finfo(x.dtype).min)
    first, *others = convolutions.taps_of(x, window.size, window.stride, window.dilation)
    best, row, column = first, torch.zeros_like(first), torch.zeros_like(first)
    for (i, j), seen in zip(window.places()[1:], others, strict=True):
        larger = seen > best
        row, column = torch.where(larger, float(i), row), torch.where(larger, float(j), column)
        best = torch.maximum(best, seen)
    return _channels_first(best), _positions(_channels_first(row), _channels_first(column), window)


def _channels_first(x):
    return x.permute(0, 3, 1, 2).contiguous()


def _window_starts(window: Window, device):
    """By window the row and the column of the input where it begins, [height, width] each."""
    height, width = window.extents
    like = torch.zeros(height, width, dtype=torch.float16, device=device)
    rows = like + torch.arange(height, dtype=torch.float16, device=device).unsqueeze(-1)
    columns = like + torch.arange(width, dtype=torch.float16, device=device)
    starts = zip((rows, columns), window.stride, window.padding, strict=True)
    return [at.to(torch.float32) * float(step) - float(before) for at, step, before in starts]


def _positions(row, column, window: Window):
    """Where in the input a place in a window is, for each window, counted row by row."""
    top, left = _window_starts(window, row.device)
    in_row = column.to(torch.float32) + left
    return ((row.to(torch.float32) + top) * float(window.image[1]) + in_row).to(torch.int64)


def maximum_gradient(gradient, x, window: Window, indices):
    """Of the image: what comes from every window whose largest pixel it was."""
    if x.ndim == 3:
        return maximum_gradient(gradient.unsqueeze(0), x.unsqueeze(0), window, indices.unsqueeze(0)).squeeze(0)
    top, left = _window_starts(window, x.device)
    first = (top * float(window.image[1]) + left).to(torch.int64)
    parts = []
    for i, j in window.places():
        meant = indices == first + (i * window.image[1] + j)
        parts.append(torch.where(meant, gradient, 0.0).permute(0, 2, 3, 1).contiguous())
    return convolutions.sum_of_places(parts, x.shape, window.stride, window.padding, window.places())
