"""How parametrised cases are named and marked, and numbers to run them on."""

import numpy as np
import pytest

from . import formats

SHORT = {formats.FP16: "fp16", formats.FP32: "fp32", formats.FP8: "fp8", formats.INT32: "int32"}


def case(function, fmt, scenario, *values):
    """One case of an op function in a format."""
    name = f"{function}-{SHORT.get(fmt, fmt)}-{scenario}"
    return pytest.param(*values, id=name, marks=pytest.mark.op(function, fmt))


def any_codes(rng, fmt, shape):
    """Half ordinary numbers, half codes of any kind: NaN, infinities, subnormals, both zeros, both ends."""
    ordinary = formats.encode(fmt, rng.normal(0, 4, shape))
    wild = rng.integers(0, 1 << formats.BITS[fmt], shape, np.uint64).astype(formats.code_type(fmt))
    # Not only the wild: operands that are equal, zero, one.
    plain = formats.encode(fmt, rng.integers(-2, 3, shape).astype(np.float64))
    choice = rng.integers(0, 4, shape)
    return np.where(choice < 2, ordinary, np.where(choice == 2, wild, plain)).astype(formats.code_type(fmt))


def ordinary_codes(rng, fmt, shape, spread=1.0):
    return formats.encode(fmt, rng.normal(0, spread, shape)).astype(formats.code_type(fmt))
