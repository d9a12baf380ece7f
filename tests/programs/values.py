"""What inputs hold, by the name of a fill: the same name, type, shape and seed give the same tensor everywhere.

    whole     -4 to 4: sums and products stay exact in the card's 16-bit format
    fraction  numbers between -2 and 2, as the card's format holds them
    wide      integers over all 32 bits (8 and 16 for short types)
    nan, inf, large, tiny   whole numbers with some such values among them (tiny: -0.0 and very small ones)
"""

import torch

DTYPES = {
    name: getattr(torch, name)
    for name in ("float16", "bfloat16", "float32", "int64", "int32", "int16", "int8", "uint8", "bool")
} | {"float8_e4m3fn": torch.float8_e4m3fn}

#: Beyond these the card's 16-bit format and the host's types part: float16 ends here, bfloat16 goes on after the card.
LIMIT = {torch.float16: 6.0e4, torch.bfloat16: 4.0e9}

_SPECIAL = {
    "nan": [float("nan")],
    "inf": [float("inf"), -float("inf")],
    "large": [32768.0, -59904.0, 4096.0],
    "tiny": [-0.0, 2.0**-14, -(2.0**-20), 2.0**-24],
}
FILLS = ("whole", "fraction", "wide", *_SPECIAL)


def on_grid(t: torch.Tensor) -> torch.Tensor:
    """The nearest numbers with ten significant bits, which the card's 16-bit format holds (in its range)."""
    mantissa, exponent = torch.frexp(t.double())
    rounded = torch.ldexp(torch.round(mantissa * 1024) / 1024, exponent)
    return torch.where(t.double().isfinite(), rounded, t.double())


def fill(kind: str, dtype: str, shape, seed: int) -> torch.Tensor:
    of, shape = DTYPES[dtype], tuple(shape)
    random = torch.Generator().manual_seed(seed)
    if of == torch.bool:
        return torch.randint(0, 2, shape, generator=random).to(of)
    if kind == "wide" and not of.is_floating_point:
        limits = torch.iinfo(torch.int32 if of == torch.int64 else of)
        return torch.randint(limits.min, limits.max, shape, generator=random).to(of)
    if kind == "fraction" and of.is_floating_point:
        drawn = torch.rand(shape, generator=random) * 4 - 2
        return (on_grid(drawn) if of == torch.float16 else drawn).to(of)
    whole = torch.randint(0 if of == torch.uint8 else -4, 5, shape, generator=random).to(of)
    if kind not in _SPECIAL or not of.is_floating_point or of.itemsize == 1:
        return whole
    values = torch.tensor(_SPECIAL[kind], dtype=torch.float64)
    chosen = values[torch.randint(0, len(values), shape, generator=random)]
    return torch.where(torch.rand(shape, generator=random) < 0.2, chosen, whole.double()).to(of)
