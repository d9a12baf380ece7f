"""The card's number formats in NumPy, written from their published definitions and from nothing else.

A *code* is the unsigned integer that memory holds. `encode` rounds float64 or float32 once to a format, `decode` is
exact. The rule where a format cannot hold a result: see each function.
"""

import numpy as np
import torch

FP16, FP32, FP8, INT32 = "SEN169_FP16", "IEEE_FP32", "SEN143_FP8", "IEEE_INT32"

BITS = {
    FP16: 16,
    FP32: 32,
    FP8: 8,
    "SEN152_FP8": 8,
    "SENINT8": 8,
    "SENINT16": 16,
    INT32: 32,
    "SENUINT32": 32,
    "IEEE_FP16": 16,
    "BFLOAT16": 16,
    "BOOL": 8,
}
HOST_TYPE = {FP16: "float16", FP32: "float32", FP8: "float8_e4m3fn", INT32: "int32", "SENUINT32": "int32"}

SEN169_NAN = 0x7FFF


def lanes(fmt):
    """Elements in one stick of 128 bytes."""
    return 1024 // BITS[fmt]


def code_type(fmt):
    return {8: np.uint8, 16: np.uint16, 32: np.uint32}[BITS[fmt]]


def widened(values):
    """float64; a signalling NaN may become a quiet one."""
    with np.errstate(invalid="ignore"):
        return np.asarray(values, np.float64)


def decode_sen169(codes):
    """(-1)^s * 2^(e - 31) * (1 + f / 512); e = f = 0 is zero; 0x7FFF stands for NaN and for infinity."""
    codes = np.asarray(codes, np.int64)
    exponent, fraction = (codes >> 9) & 63, codes & 511
    magnitude = np.ldexp(1.0 + fraction / 512.0, exponent - 31)
    magnitude = np.where((codes & 0x7FFF) == 0, 0.0, magnitude)
    magnitude = np.where((codes & 0x7FFF) == SEN169_NAN, np.nan, magnitude)
    return np.copysign(magnitude, np.where(codes >> 15, -1.0, 1.0)).astype(np.float32)


def encode_sen169(values):
    """To nearest, ties away from zero. What rounds past the largest code, and infinity, is 0x7FFF of that sign; NaN is
    0x7FFF without sign. What rounds to 2^-31 or less is zero of that sign: that code is taken."""
    values = widened(values)
    finite = np.isfinite(values)
    fraction, exponent = np.frexp(np.where(finite, np.abs(values), 1.0))  # |x| = fraction * 2^exponent, in [1/2, 1)
    significand = np.floor(fraction * 1024.0 + 0.5).astype(np.int64)  # 512 .. 1024, exact in float64
    code = ((exponent.astype(np.int64) - 1 + 31) << 9) + significand - 512  # a carry moves into the exponent
    code = np.where((significand == 0) | (code < 0), 0, np.minimum(code, SEN169_NAN))
    code = np.where(finite, code, SEN169_NAN)
    return (code | np.where(np.signbit(values) & ~np.isnan(values), 0x8000, 0)).astype(np.uint16)


def encode_fp32(values):
    """To nearest even, as IEEE 754; NaN is the quiet one without sign."""
    with np.errstate(over="ignore"):
        values = np.asarray(values).astype(np.float32)
    return np.where(np.isnan(values), np.uint32(0x7FC00000), values.view(np.uint32))


def decode_e4m3(codes):
    return torch.from_numpy(np.ascontiguousarray(codes, np.uint8)).view(torch.float8_e4m3fn).float().numpy()


def quantise_e4m3(values):
    """OCP e4m3, to nearest even; a number beyond 448 saturates; NaN and infinity become NaN (0x7F, with the sign of an
    infinity)."""
    values = np.asarray(values, np.float32)
    inside = torch.from_numpy(np.ascontiguousarray(np.clip(np.nan_to_num(values), -448, 448)))
    codes = inside.to(torch.float8_e4m3fn).view(torch.uint8).numpy()
    sign = np.where(np.isinf(values) & (values < 0), 0x80, 0)
    return np.where(np.isfinite(values), codes, 0x7F | sign).astype(np.uint8)


def encode_int32(values):
    """Towards zero; out of range saturates; NaN is 0."""
    whole = np.trunc(np.nan_to_num(widened(values), nan=0.0, posinf=2.0**40, neginf=-(2.0**40)))
    return np.clip(whole, -(2.0**31), 2.0**31 - 1).astype(np.int64).astype(np.uint32)


def decode(fmt, codes):
    """Values as float32, what the card computes with."""
    codes = np.asarray(codes)
    if fmt == FP16:
        return decode_sen169(codes)
    if fmt == FP32:
        return codes.astype(np.uint32).view(np.float32)
    if fmt == FP8:
        return decode_e4m3(codes)
    if fmt == INT32:
        return codes.astype(np.uint32).view(np.int32).astype(np.float32)
    raise KeyError(fmt)


def encode(fmt, values):
    return {FP16: encode_sen169, FP32: encode_fp32, FP8: quantise_e4m3, INT32: encode_int32}[fmt](values)


def ordered(fmt, codes):
    """Codes as integers in the order of their values, so that neighbours differ by one; both zeros are 0."""
    codes = np.asarray(codes, np.int64)
    sign_bit = 1 << (BITS[fmt] - 1)
    magnitude = codes & (sign_bit - 1)
    return np.where(codes & sign_bit, -magnitude, magnitude)


def is_nan(fmt, codes):
    return np.isnan(decode(fmt, codes))
