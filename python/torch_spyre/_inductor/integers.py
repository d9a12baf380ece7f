"""Integers as numbers that float32 holds: the card adds and multiplies integers, and does everything else in floats."""

import torch

INTEGERS = (torch.int32, torch.int64)
DIGIT = 2**16
EXACT_SUMS = 2**7  # as many digits have a sum that float32 holds


def digits(x) -> list:
    """[low, high], low + DIGIT * high: 70000 is [4464, 1]. That high may be rounded up is all the same, low is then
    negative."""
    high = torch.floor(x.to(torch.float32) * (1.0 / DIGIT))
    return [(x - high.to(x.dtype) * DIGIT).to(torch.float32), high]


def number(low, high, dtype=torch.int64):
    return low.to(dtype) + high.to(dtype) * DIGIT
