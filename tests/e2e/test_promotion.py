"""The types that operators compute in are PyTorch's: every pair of operands, of every category, against result_type."""

import itertools

import pytest
import torch
from torch_spyre import _C

TYPES = "float16 bfloat16 float32 bool int8 int16 int32 int64 uint8 float8_e4m3fn float8_e5m2fnuz".split()
NUMBERS = {"bool": True, "int": 2, "float": 2.5}


def operands():
    for name in TYPES:
        dtype = getattr(torch, name)
        yield ("dimensioned", name), torch.empty(2, dtype=dtype)
        yield ("zero_dimensional", name), torch.empty((), dtype=dtype)
    for kind, value in NUMBERS.items():
        yield ("number", kind), value


def pytorchs(a, b):
    try:
        return str(torch.result_type(a, b)).removeprefix("torch.")
    except RuntimeError:
        return None


@pytest.mark.parametrize("default", ["float32", "float16"])
def test_pairs_promote_as_pytorch_says(default):
    before, compared = torch.get_default_dtype(), 0
    torch.set_default_dtype(getattr(torch, default))
    try:
        for (a, x), (b, y) in itertools.product(operands(), repeat=2):
            assert _C.promoted_type([a, b], default) == pytorchs(x, y), (a, b)
            compared += 1
    finally:
        torch.set_default_dtype(before)
    assert compared == 25 * 25
