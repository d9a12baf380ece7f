"""Sums as the card makes them: one after the other in fp32, then core after core.

Where a loop is split over cores, each core folds its own slice in ascending order; the partial results are folded in
ascending slice order. Along the stick every lane folds what it holds, then lanes fold in halves: i with i + 32, then
i + 16, and so on. Every step rounds to fp32, and the caller rounds the end once more.
"""

import numpy as np


def fold(values, axis, splits, step, first, lanes=1):
    """Folds one axis. `step(acc, x)` on float32 arrays; `first` is where each core starts; `lanes`: of the stick, where
    the axis runs along it."""
    slices = np.split(np.moveaxis(np.asarray(values, np.float32), axis, 0), splits)
    total = None
    for part in slices:
        sticks = part.reshape(-1, lanes, *part.shape[1:])
        acc = np.full(sticks.shape[1:], first, np.float32)
        for x in sticks:
            acc = step(acc, x)
        while len(acc) > 1:
            half = len(acc) // 2
            acc = step(acc[:half], acc[half:])
        total = acc[0] if total is None else step(total, acc[0])
    return total


def padded(values, axis, extent, fill):
    """The values with more of `fill` behind them."""
    widths = [(0, 0)] * values.ndim
    widths[axis] = (0, extent - values.shape[axis])
    return np.pad(values, widths, constant_values=np.float32(fill))
