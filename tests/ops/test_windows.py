"""Pooling and convolution: windows over rows and columns of images whose channels lie along the stick.

PyTorch says which elements meet (a convolution of small integers is exact in any order); sums of other numbers are
made in the card's order: channels first, then window rows, then window columns, the last one fastest.
"""

import numpy as np
import pytest
import torch

from . import formats
from .card import check_op
from .cases import case
from .device import Axis, Tensor, round_up, tensor
from .formats import FP16


def image(name, channels, height, width, at_i, at_j, batch=None):
    """[channel tiles, (batch,) rows, columns, lanes]; at_i and at_j say which row and column a loop point reads."""
    axes = [Axis(round_up(channels, 64) // 64, "floor(c/64)", lambda at: at["c"] // 64)]
    if batch:
        axes.append(Axis(batch, "n", lambda at: at["n"]))
    axes += [
        Axis(height, at_i, lambda at: at["h"]),
        Axis(width, at_j, lambda at: at["w"]),
        Axis(64, "Mod(c, 64)", lambda at: at["c"] % 64),
    ]
    symbols = [*(["n"] if batch else []), "c", "h", "w"]
    extents = [*([batch] if batch else []), channels, height, width]
    return Tensor(name, FP16, symbols, extents, axes, {"c": round_up(channels, 64)})


def reading(out, window, stride, dilation, pad):
    """The row that window position `window` of output row `out` reads, as the front end writes it."""
    first = out if stride == 1 else f"{stride}*{out}"
    second = window if dilation == 1 else f"{dilation}*{window}"
    return f"{first} + {second}" + (f" - {pad}" if pad else "")


def window_text(stride, kernel, pad, out, dilation=1):
    return (
        f"conv_params={{stride_i: {stride}, stride_j: {stride}, kernel_h: {kernel}, kernel_w: {kernel}, pad_i: {pad}, "
        f"pad_j: {pad}, dilation_i: {dilation}, dilation_j: {dilation}}}\n    node_output_ranges={list(out)}"
    )


def seen(values, kh, kw, side, stride):
    """What position (kh, kw) of every window sees, rows and columns last."""
    last = (side - 1) * stride + 1
    return values[..., kh : kh + last : stride, kw : kw + last : stride]


def ordered_sum(terms):
    total = np.float32(0)
    for term in terms:
        total = (total + term).astype(np.float32)
    return total


def numbers(rng, whole, shape):
    values = rng.integers(-3, 4, shape) if whole else rng.normal(0, 1, shape)
    return formats.encode_sen169(values.astype(np.float64))


# channels, output side, kernel, stride, batch, splits of (n, h, c)
POOLS = {
    "aligned": (64, 2, 2, 2, 2, (1, 1, 1)),
    "unaligned": (70, 2, 2, 2, 2, (1, 1, 1)),
    "overlapping": (64, 3, 3, 1, 2, (1, 1, 1)),
    "split-2-batch": (64, 2, 2, 2, 4, (2, 1, 1)),
    "split-2-rows": (64, 4, 2, 2, 2, (1, 2, 1)),
    "split-2-channels": (128, 2, 2, 2, 2, (1, 1, 2)),
    "split-32-batch": (64, 2, 2, 2, 32, (32, 1, 1)),
}


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "any"])
@pytest.mark.parametrize("scenario", [case("avgpoolfwd", FP16, s, s) for s in POOLS])
def test_average_pooling(card, rng, scenario, whole):
    channels, side, kernel, stride, batch, (sn, sh, sc) = POOLS[scenario]
    across = (side - 1) * stride + kernel
    i, j = reading("h", "kh", stride, 1, 0), reading("w", "kw", stride, 1, 0)
    x, y = image("X", channels, across, across, i, j, batch), image("Y", channels, side, side, "h", "w", batch)
    codes = numbers(rng, whole, (batch, channels, across, across))
    values = formats.decode_sen169(codes)
    total = ordered_sum(seen(values, kh, kw, side, stride) for kh in range(kernel) for kw in range(kernel))
    nmap = formats.decode_sen169(formats.encode_sen169(1 / kernel**2))
    if whole:
        exact = torch.nn.functional.avg_pool2d(torch.from_numpy(values), kernel, stride, divisor_override=1).numpy()
        np.testing.assert_array_equal(total, exact)
    space = [
        ("n", batch, sn),
        ("h", side, sh),
        ("w", side, 1),
        ("c", channels, sc),
        ("kh", kernel, 1),
        ("kw", kernel, 1),
    ]
    check_op(
        card,
        "avgpoolfwd",
        space,
        [(x, codes)],
        y,
        formats.encode_sen169(nmap * total),
        is_reduction=True,
        constants={"nmap": 1 / kernel**2},
        more=window_text(stride, kernel, 0, (batch, channels, side, side)),
    )


# channels, output side, stride, padding, batch, splits of (n, c, h)
DEPTHWISE = {
    "aligned": (64, 4, 1, 1, 2, (1, 1, 1)),
    "unaligned": (70, 3, 1, 1, 2, (1, 1, 1)),
    "no-padding": (64, 3, 1, 0, 2, (1, 1, 1)),
    "stride-2": (64, 3, 2, 1, 2, (1, 1, 1)),
    "split-2-batch": (64, 3, 1, 1, 4, (2, 1, 1)),
    "split-2-channels": (128, 3, 1, 1, 2, (1, 2, 1)),
    "split-2-rows": (64, 4, 1, 0, 2, (1, 1, 2)),
    "split-32-channels": (2048, 2, 1, 0, 1, (1, 32, 1)),
}


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "any"])
@pytest.mark.parametrize("scenario", [case("depthwiseconv2dnative", FP16, s, s) for s in DEPTHWISE])
def test_depthwise_convolution(card, rng, scenario, whole):
    channels, side, stride, pad, batch, (sn, sc, sh) = DEPTHWISE[scenario]
    kernel = 3
    across = (side - 1) * stride + kernel - 2 * pad
    i, j = reading("h", "kh", stride, 1, pad), reading("w", "kw", stride, 1, pad)
    many = batch if batch > 1 else None
    x, y = image("X", channels, across, across, i, j, many), image("Y", channels, side, side, "h", "w", many)
    w = image("W", channels, kernel, kernel, "kh", "kw")
    codes = numbers(rng, whole, x.extents)
    filters = numbers(rng, whole, (channels, kernel, kernel))
    values, weights = formats.decode_sen169(codes), formats.decode_sen169(filters)
    around = np.pad(values, [(0, 0)] * (values.ndim - 2) + [(pad, pad)] * 2)
    terms = (
        seen(around, kh, kw, side, stride) * weights[:, kh, kw, None, None]
        for kh in range(kernel)
        for kw in range(kernel)
    )
    total = ordered_sum(terms)
    if whole:
        exact = torch.nn.functional.conv2d(
            torch.from_numpy(values.reshape(batch, channels, across, across)),
            torch.from_numpy(weights[:, None]),
            stride=stride,
            padding=pad,
            groups=channels,
        )
        np.testing.assert_array_equal(total.reshape(exact.shape), exact.numpy())
    loops = [("n", batch, sn)] if many else []
    space = [*loops, ("c", channels, sc), ("h", side, sh), ("w", side, 1), ("kh", kernel, 1), ("kw", kernel, 1)]
    check_op(
        card,
        "depthwiseconv2dnative",
        space,
        [(x, codes), (w, filters)],
        y,
        formats.encode_sen169(total),
        is_reduction=True,
        more=window_text(stride, kernel, pad, (batch, channels, side, side)),
    )


# input channels, output channels, output side, kernel, stride, batch, splits of (n, h, co, ci)
CONVOLUTIONS = {
    "aligned": (64, 64, 2, 3, 1, 2, (1, 1, 1, 1)),
    "unaligned": (64, 70, 2, 3, 1, 2, (1, 1, 1, 1)),
    "two-by-two": (128, 64, 3, 2, 1, 2, (1, 1, 1, 1)),
    "stride-2": (64, 64, 2, 3, 2, 2, (1, 1, 1, 1)),
    "split-2-batch": (64, 64, 2, 3, 1, 4, (2, 1, 1, 1)),
    "split-2-rows": (64, 64, 4, 2, 1, 2, (1, 2, 1, 1)),
    "split-2-out": (64, 128, 2, 2, 1, 2, (1, 1, 2, 1)),
    "split-2-in": (128, 64, 2, 2, 1, 2, (1, 1, 1, 2)),
    "split-32": (64, 128, 2, 2, 1, 16, (16, 1, 2, 1)),
}


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "any"])
@pytest.mark.parametrize("scenario", [case("conv2d", FP16, s, s) for s in CONVOLUTIONS])
def test_convolution(card, rng, scenario, whole):
    c_in, c_out, side, kernel, stride, batch, (sn, sh, so, si) = CONVOLUTIONS[scenario]
    across = (side - 1) * stride + kernel
    loops = {"n": batch, "h": side, "w": side, "co": c_out, "ci": c_in, "kh": kernel, "kw": kernel}
    x = tensor("X", loops | {"h": across, "w": across}, ["ci", "n", "h", "w"], "ci")
    x.axes[2].text, x.axes[3].text = reading("h", "kh", stride, 1, 0), reading("w", "kw", stride, 1, 0)
    w = tensor("W", loops, ["co", "kw", "kh", "ci"], "co")
    y = tensor("Y", loops, ["co", "n", "h", "w"], "co")
    codes, filters = numbers(rng, whole, x.extents), numbers(rng, whole, w.extents)  # (n h w ci), (co ci kh kw)
    values, weights = formats.decode_sen169(codes), formats.decode_sen169(filters)
    by_channel = np.moveaxis(values, 3, 0)  # ci, n, h, w
    partial = [
        ordered_sum(
            seen(by_channel[ci], kh, kw, side, stride)[..., None] * weights[:, ci, kh, kw]
            for ci in channels
            for kh in range(kernel)
            for kw in range(kernel)
        )
        for channels in np.split(np.arange(c_in), si)
    ]
    total = ordered_sum(partial) if si > 1 else partial[0]
    if whole:
        exact = torch.nn.functional.conv2d(
            torch.from_numpy(values).permute(0, 3, 1, 2).contiguous(), torch.from_numpy(weights), stride=stride
        )
        np.testing.assert_array_equal(total, exact.permute(0, 2, 3, 1).numpy())
    split = {"n": sn, "h": sh, "co": so, "ci": si}
    check_op(
        card,
        "conv2d",
        [(s, n, split.get(s, 1)) for s, n in loops.items()],
        [(x, codes), (w, filters)],
        y,
        formats.encode_sen169(total),
        is_reduction=True,
        more=window_text(stride, kernel, 0, (batch, c_out, side, side)),
    )
