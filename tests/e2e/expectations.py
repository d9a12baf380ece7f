"""Reads expectations.toml: what is known not to work, why, and which tolerances are wider than usual.

An entry names tests by ``operator``, ``operator:dtype`` or ``operator:variant:dtype``; ``*`` stands for any. Expected
failures are strict: a test that is listed and passes fails, and so does one that fails with another message.
"""

import fnmatch
import functools
import pathlib
import re
import tomllib
from dataclasses import dataclass

_FILE = pathlib.Path(__file__).with_name("expectations.toml")


@dataclass(frozen=True)
class Tolerance:
    rtol: float
    atol: float


@dataclass(frozen=True)
class Refusal:
    """One reason why samples fail."""

    name: str
    why: str
    message: re.Pattern

    def explains(self, error: BaseException) -> bool:
        return self.message.search(str(error)) is not None


@functools.cache
def _tables() -> dict:
    return tomllib.loads(_FILE.read_text())


def _matches(entry: str, op: str, variant: str, dtype: str) -> bool:
    parts = entry.split(":")
    wanted = {1: (parts[0], "*", "*"), 2: (parts[0], "*", parts[-1])}.get(len(parts), tuple(parts))
    return all(fnmatch.fnmatchcase(have, want) for have, want in zip((op, variant, dtype), wanted, strict=True))


def _groups(table: str, op: str, variant: str, dtype: str):
    for name, group in _tables().get(table, {}).items():
        if any(_matches(entry, op, variant, dtype) for entry in group["ops"]):
            yield name, group


def refusals(op: str, variant: str, dtype: str) -> list[Refusal]:
    """Why samples of this test are expected to fail; empty when all must pass."""
    return [
        Refusal(name, group["why"], re.compile(group["message"]))
        for name, group in _groups("refused", op, variant, dtype)
    ]


def skip_reason(op: str, variant: str, dtype: str) -> str | None:
    """Why the test must not run at all."""
    return next((group["why"] for _, group in _groups("skipped", op, variant, dtype)), None)


def takes_long(op: str, variant: str, dtype: str) -> bool:
    """True when only `make test-full` runs the test."""
    return any(True for _ in _groups("long", op, variant, dtype))


def values_are_unspecified(op: str, variant: str, dtype: str) -> bool:
    """True when only shape and dtype of the results can be compared."""
    return any(True for _ in _groups("unspecified", op, variant, dtype))


def places_are_unspecified(op: str, variant: str, dtype: str) -> bool:
    """True when of the results, values and their places, only the values can be compared."""
    return any(True for _ in _groups("places", op, variant, dtype))


def special_values_differ(op: str, variant: str, dtype: str) -> bool:
    """True when NaNs and infinities, in the inputs or as a result, need not be the CPU's."""
    return any(True for _ in _groups("special_values", op, variant, dtype))


def tolerance(op: str, variant: str, dtype: str) -> Tolerance:
    """The widest tolerance the test is listed with, or its dtype's own: exact but for the 16-bit formats."""
    found = [Tolerance(group["rtol"], group["atol"]) for _, group in _groups("tolerance", op, variant, dtype)]
    default = Tolerance(**_tables()["default_tolerance"].get(dtype, {"rtol": 0.0, "atol": 0.0}))
    return max([default, *found], key=lambda t: (t.rtol, t.atol))
