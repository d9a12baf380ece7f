"""What the card's formats do to a value, and how far an operator's result may be off for it.

Nothing here is a table of operators. An operator may be off by a few units of its format, and by as many units of its
operands as its result feels: that is measured, by running it on the CPU again with operands that are a unit off.
"""

from dataclasses import dataclass

import torch

NARROW = (torch.float16, torch.bfloat16)
LARGEST = 8573157376.0  # of the card's 16-bit format, which has no infinity: it holds this one instead
SMALLEST = 1.002 * 2.0**-31

#: Distance of two neighbours, relative. In float32 the card's functions are good to a few of these, not the format's.
STEP = {torch.float16: 2.0**-9, torch.bfloat16: 2.0**-9, torch.float32: 2.0**-18}

UNITS = 4  # an operator may be off by as many units of its result and of its operands
ROUNDINGS = 8  # a module may be off by as much as rounding alone explains, so many times


def step_of(dtype: torch.dtype, by_host: bool = False) -> float:
    """``by_host``: of a result that is compared with one in PyTorch's type of that name."""
    step = STEP.get(dtype, 0.0)
    return max(step, torch.finfo(dtype).eps) if by_host and step else step


def rounded(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The value as a tensor of this type holds it on the card; in float32, to as many places as its functions keep."""
    if dtype not in STEP or not value.is_floating_point():
        return value
    mantissa, exponent = torch.frexp(value)
    places = 2 / STEP[dtype]
    nearest = mantissa.sign() * torch.floor(mantissa.abs() * places + 0.5) / places  # the farther from zero of two
    held = torch.where(value.isfinite(), torch.ldexp(nearest, exponent), value)
    if dtype in NARROW:
        held = torch.where(held.abs() < SMALLEST, 0.0, held.double().clamp(-LARGEST, LARGEST))
    return held.to(value.dtype)


def within_format(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Infinities, and what the host's type has beyond the format, as the format holds them."""
    return value.clamp(-LARGEST, LARGEST) if dtype in NARROW else value


def shaken_scalar(value: float) -> float:
    """The card rounds a number of the program to the format of the tensor it meets, unless that holds it."""
    held = float(rounded(torch.tensor(value, dtype=torch.float64), torch.float16))
    return value if held == value else value * (1 + 2.0**-10)


def relative_error(found: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype) -> float:
    """Root mean square of what is off, to that of what is expected. Not a number on one side only: infinite."""
    found, expected = (within_format(t.double(), dtype) for t in (found, expected))
    same = (found == expected) | (found.isnan() & expected.isnan())
    if bool(same.all()):
        return 0.0
    off = torch.where(same, 0.0, found - expected)
    if not bool(off.isfinite().all()):
        return float("inf")
    size = expected.nan_to_num(0, 0, 0).square().mean().sqrt()
    return float(off.square().mean().sqrt() / size.clamp(min=SMALLEST))


@dataclass(frozen=True)
class Off:
    """The element that is off most, by what it may be off."""

    error: float
    bound: float
    index: tuple[int, ...]
    card: float
    reference: float

    @property
    def is_out(self) -> bool:
        return not self.error <= self.bound


def most_off(found: torch.Tensor, expected: torch.Tensor, allowed: torch.Tensor, dtype: torch.dtype) -> Off | None:
    """None of an empty tensor."""
    if not found.numel():
        return None
    plain = expected.double()
    found, expected = (within_format(t.double(), dtype) for t in (found, expected))
    same = (found == expected) | (found.isnan() & expected.isnan())
    error = torch.where(same, 0.0, (found - expected).abs()).nan_to_num(nan=torch.inf)
    allowed = allowed.double().expand(found.shape)
    score = torch.where(error == 0, 0.0, error / allowed.clamp(min=1e-300)).reshape(-1)
    at = int(score.argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(at), found.shape))
    return Off(float(error[index]), float(allowed[index]), index, float(found[index]), float(plain[index]))


def least_of(dtype: torch.dtype, by_host: bool = False) -> float:
    """The distance of two neighbours next to zero."""
    if dtype not in STEP:
        return 0.0
    card = SMALLEST if dtype in NARROW else torch.finfo(dtype).tiny
    return max(card, torch.finfo(dtype).tiny * torch.finfo(dtype).eps) if by_host else card


def units_of(expected: torch.Tensor, dtype: torch.dtype, by_host: bool) -> torch.Tensor:
    """What every result of this type may be off by, whatever computed it."""
    size = expected.double().abs().nan_to_num(0, posinf=0)
    return UNITS * (step_of(dtype, by_host) * size + least_of(dtype, by_host))


def allowed(expected: torch.Tensor, others: list[torch.Tensor], dtype: torch.dtype, by_host: bool) -> torch.Tensor:
    """The same, and what its operands' units do to it. An element that happened to feel little is judged by its
    neighbours: their median."""
    felt = torch.zeros(expected.shape, dtype=torch.float64)
    for other in others:
        felt = torch.maximum(felt, (other.double() - expected.double()).abs().nan_to_num(0, posinf=0))
    return units_of(expected, dtype, by_host) + UNITS * torch.maximum(felt, felt.median())
