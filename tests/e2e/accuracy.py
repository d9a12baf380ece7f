"""How far functions are from exact values: where they are tried, the judge, and the worst error that is allowed.

The judge is mpmath with 60 digits, at the very numbers that the card holds. Errors are relative, in units of half the
last place of the format (2^-10 in 16 bits, 2^-24 in float32): 1 is correct rounding. Results below the smallest normal
number of a format may be flushed to zero: there the unit is that number.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import torch

POINTS = 250  # for each sign and each range


@dataclass(frozen=True)
class Format:
    dtype: torch.dtype
    half_place: float
    smallest: float
    largest: float


FORMATS = {
    "float16": Format(torch.float16, 2.0**-10, 2.0**-30, 65504.0),  # what float16 names, held in the card's format
    "bfloat16": Format(torch.bfloat16, 2.0**-10, 2.0**-30, 8.5e9),
    "float32": Format(torch.float32, 2.0**-24, 2.0**-126, 3.4e38),
}


def spread(low: float, high: float, signs=(1, -1)):
    """Powers of ten between two exponents, evenly."""
    generator = torch.Generator().manual_seed(1)
    sizes = 10 ** (low + (high - low) * torch.rand(POINTS, generator=generator, dtype=torch.float64))
    return torch.cat([sign * sizes for sign in signs])


def around(*centres, reach=(-7, -0.5)):
    """Numbers on both sides of each centre, ever closer."""
    return torch.cat([centre + spread(*reach) for centre in centres])


ALL, POSITIVE = (spread(-9, 38), (1, -1)), (spread(-9, 38, (1,)), (1,))
SMALL = spread(-9, 2)


@dataclass(frozen=True)
class Function:
    call: Callable
    exact: Callable
    points: torch.Tensor
    most: dict  # worst error allowed, by format
    domain: str


def bounds(half, single):
    return {"float16": half, "bfloat16": half, "float32": single}


mp = mpmath.mp
functional = torch.nn.functional


def _gelu(x):
    return x * mp.erfc(-x / mp.sqrt(2)) / 2


def _gelu_tanh(x):
    return x / (1 + mp.exp(-2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)))


FUNCTIONS = {
    "exp": Function(torch.exp, mp.exp, spread(-9, 1.9), bounds(1.1, 3), "all"),
    "exp2": Function(torch.exp2, lambda x: mp.mpf(2) ** x, spread(-9, 2.1), bounds(1.1, 6), "all"),
    "expm1": Function(torch.expm1, mp.expm1, spread(-9, 1.9), bounds(1.1, 6), "all"),
    "log": Function(
        torch.log, mp.log, torch.cat([spread(-37, 38, (1,)), around(1)]), bounds(1.1, 14), "positive, near 1 too"
    ),
    "log2": Function(
        torch.log2, lambda x: mp.log(x, 2), torch.cat([spread(-37, 38, (1,)), around(1)]), bounds(3.2, 16), "positive"
    ),
    "log10": Function(
        torch.log10, mp.log10, torch.cat([spread(-37, 38, (1,)), around(1)]), bounds(3.2, 16), "positive"
    ),
    "log1p": Function(
        torch.log1p, mp.log1p, torch.cat([spread(-9, -0.01), spread(0, 38, (1,))]), bounds(1.1, 14), "above -1"
    ),
    "sin": Function(torch.sin, mp.sin, spread(-9, 6.6), bounds(1.1, 6), "up to 4e6"),
    "cos": Function(torch.cos, mp.cos, spread(-9, 6.6), bounds(1.1, 6), "up to 4e6"),
    "tanh": Function(torch.tanh, mp.tanh, spread(-9, 2), bounds(1.1, 6), "all"),
    "sigmoid": Function(torch.sigmoid, lambda x: 1 / (1 + mp.exp(-x)), spread(-9, 1.9), bounds(1.1, 5), "all"),
    "silu": Function(functional.silu, lambda x: x / (1 + mp.exp(-x)), spread(-9, 1.9), bounds(1.1, 5), "all"),
    "erf": Function(torch.erf, mp.erf, spread(-9, 2), bounds(1.1, 6), "all"),
    "sqrt": Function(torch.sqrt, mp.sqrt, spread(-37, 38, (1,)), bounds(1.1, 1.1), "positive"),
    "rsqrt": Function(torch.rsqrt, lambda x: 1 / mp.sqrt(x), spread(-37, 38, (1,)), bounds(1.1, 3), "positive"),
    "reciprocal": Function(torch.reciprocal, lambda x: 1 / x, spread(-37, 37), bounds(1.1, 1.1), "all"),
    "square": Function(torch.square, lambda x: x * x, spread(-18, 18), bounds(1.1, 1.1), "all"),
    "pow3": Function(lambda t: t**3, lambda x: x**3, spread(-12, 12), bounds(3.2, 3), "all"),
    "pow2.5": Function(
        lambda t: t**2.5, lambda x: x ** mp.mpf("2.5"), spread(-12, 12, (1,)), bounds(1.1, 200), "positive"
    ),
    "softplus": Function(
        functional.softplus, lambda x: mp.log1p(mp.exp(x)), spread(-9, 1.3), bounds(1.1, 14), "up to 20"
    ),
    "gelu": Function(
        functional.gelu, _gelu, torch.cat([spread(-9, 0.4), spread(0.4, 2, (1,))]), bounds(1.1, 8), "above -2.5"
    ),
    "gelu_tanh": Function(
        lambda t: functional.gelu(t, approximate="tanh"), _gelu_tanh, spread(-9, 0.4), bounds(12, 12), "within 2.5"
    ),
}


def exact_values(function: Function, points: torch.Tensor) -> torch.Tensor:
    def exact(point):
        try:
            return float(function.exact(mp.mpf(point)))
        except (ArithmeticError, TypeError, ValueError):  # a pole, or no real number
            return math.inf

    with mpmath.workdps(60):
        return torch.tensor([exact(p) for p in points.tolist()], dtype=torch.float64)


def worst_error(name: str, kind: str, run=None) -> tuple[float, float]:
    """The largest error in units of half the last place, and where. `run` calls the function on the card."""
    function, form = FUNCTIONS[name], FORMATS[kind]
    points = function.points[function.points.abs() <= form.largest].to(form.dtype).to("spyre")
    held = points.float().cpu().double()
    expected = exact_values(function, held)
    found = (run or function.call)(points).float().cpu().double()
    # What lies beyond the format is infinite or not a number there.
    inside = expected.isfinite() & (expected.abs() <= min(form.largest, 8.5e9 if kind != "float32" else 3.4e38))
    size, off = expected.abs(), (found - expected).abs()
    error = torch.where(size < form.smallest, off / form.smallest, off / size / form.half_place)
    error = torch.where(inside, error.nan_to_num(nan=math.inf), 0.0)
    at = int(error.argmax())
    return error[at].item(), held[at].item()
