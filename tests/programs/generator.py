"""Writes a random program, statement by statement; the same seed writes the same program.

Each statement is tried on the CPU together with all before it, twice: as it is, and with rounding off by a step
(`rounding.py`). It stays if PyTorch accepts it, if its values have types of the card and stay small, and if no choice
(a comparison, a position, a whole number) hangs on how something was rounded.

Most values are small whole numbers. Up to 512 they are exact in the card's 16-bit format, and so are sums and products
of them that stay as small.
"""

import math
import random
import re

import torch

from tests.programs import statements
from tests.programs.program import NAMES, Input, Program
from tests.programs.rounding import Rounding, is_beyond
from tests.programs.values import DTYPES

_ALLOWED = frozenset(DTYPES.values())
_EXTENTS = (1, 1, 2, 3, 4, 5, 7, 8, 31, 32, 33, 63, 64, 64, 65, 100, 127, 128, 129, 192)
_ELEMENTS = 16384
#: Beyond this, whole numbers are cut back, so that sums of products stay exact.
_LARGEST = 64


class Generator:
    def __init__(self, seed: int, length: int | None = None):
        r = self.random = random.Random(seed)
        self.program = Program(about=f"seed {seed}")
        self.length = length or r.choice((1, 2, 3, 4, 6, 6, 8))
        # What a program is about; most are about shapes and views of whole numbers.
        self.empty = r.random() < 0.04
        self.fills = r.choices(
            (["whole"], ["whole", "fraction"], ["nan"], ["inf"], ["large"], ["tiny"], ["wide"]), (60, 15, 5, 4, 3, 3, 4)
        )[0]
        self.dtypes = r.choices(
            (
                ["float16"] * 4 + ["float32", "int64", "bool"],
                ["bfloat16"] * 4 + ["float32", "int64", "bool"],
                ["float32"] * 4 + ["float16", "int64", "bool"],
                ["int64", "int32", "bool", "float32"],
                list(DTYPES),
            ),
            (45, 12, 18, 10, 15),
        )[0]
        self.values: dict[str, torch.Tensor] = {}
        self.shaken: dict[str, torch.Tensor] = {}

    def generate(self) -> Program:
        r = self.random
        count = r.choice((1, 1, 2, 2, 3, 4))
        while len(self.program.inputs) < count:
            self.add_input(self._random_input())
        for _ in range(20 * self.length):  # some attempts come to nothing
            if len(self.program.statements) >= self.length:
                break
            statements.add(self)
        made = [n for n in self.values if n.startswith("t")] or list(self.values)
        chosen = set(made[-1:] + r.sample(made, min(len(made), r.choice((1, 2, 3, 6)))))
        said = " ".join(self.program.statements)
        inputs = tuple(i for i in self.program.inputs if i.fill != "listed" or re.search(rf"\b{i.name}\b", said))
        return self.program.but(inputs=inputs, results=tuple(n for n in made if n in chosen))

    # --- inputs ---

    def _random_input(self) -> Input:
        r = self.random
        name = "abcd"[len(self.program.inputs)]
        dtype = r.choice(self.dtypes)
        shape = tuple(self._shape())
        entry = Input(name, r.choice(self.fills), dtype, shape, r.randrange(1000))
        base = entry.base()
        if shape and r.random() < 0.35:
            kind = r.choice(("transpose", "permute", "slice", "slice", "select", "expand"))
            view = statements.view_text(r, base, kind)
            entry = Input(name, entry.fill, dtype, shape, entry.source, view)
        return entry

    def _shape(self) -> list[int]:
        r = self.random
        known = [i.shape for i in self.program.inputs if i.shape]
        if known and r.random() < 0.6:  # related shapes, so that broadcasting and products meet
            shape = list(r.choice(known))
            if r.random() < 0.4:
                r.shuffle(shape)
            if r.random() < 0.4:
                shape[r.randrange(len(shape))] = r.choice((1, 64, 5))
            if r.random() < 0.3:
                shape = shape[1:]
        else:
            shape = [r.choice(_EXTENTS) for _ in range(r.choice((0, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5)))]
        while math.prod(shape) > _ELEMENTS:
            shape[shape.index(max(shape))] = r.choice((1, 2, 3))
        if self.empty and shape and r.random() < 0.5:
            shape[r.randrange(len(shape))] = 0
        return shape

    def add_input(self, entry: Input) -> bool:
        return self._accept(self.program.but(inputs=(*self.program.inputs, entry)))

    def index(self, rows: list[int]) -> str:
        """An input that holds positions; it must stay in range, so nobody writes to it."""
        name = f"i{sum(i.name.startswith('i') for i in self.program.inputs)}"
        dtype = self.random.choice(("int64", "int64", "int64", "int32"))
        self.add_input(Input(name, "listed", dtype, (len(rows),), rows))
        return name

    # --- statements ---

    def pick(self, test=lambda t: True) -> str | None:
        """A value; later ones more often, so that programs are deep rather than wide."""
        names = [n for n in self.values if n[0] != "i" and test(self.values[n])]
        return self.random.choices(names, [1 + i for i in range(len(names))])[0] if names else None

    def say(self, expression: str, exact_only: bool = False) -> bool:
        """Adds `t = expression`, cut back where its values grow."""
        name = f"t{sum(s.startswith('t') and ' = ' in s for s in self.program.statements)}"
        if self.do(f"{name} = {expression}", exact_only):
            return True
        return self.fills in (["whole"], ["whole", "fraction"]) and self.do(
            f"{name} = ({expression}).clamp(-8, 8)", exact_only
        )

    def do(self, statement: str, exact_only: bool = False) -> bool:
        if exact_only and not self.is_exact(statement):
            return False
        return self._accept(self.program.but(statements=(*self.program.statements, statement)))

    def is_exact(self, text: str) -> bool:
        """Whether the values it reads do not depend on rounding."""
        return all(_same(self.values[n], self.shaken[n]) for n in re.findall(r"\b[a-z]\d*\b", text) if n in self.values)

    def _accept(self, program: Program) -> bool:
        try:
            values = _evaluate(program)
            with Rounding(7):
                shaken = _evaluate(program)
        except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
            return False
        if not all(self._fits(n, v) for n, v in values.items()):
            return False
        if any(not v.is_floating_point() and not _same(v, shaken[n]) for n, v in values.items()):
            return False  # a choice that hangs on rounding
        self.program, self.values, self.shaken = program, values, shaken
        return True

    def _fits(self, name: str, value) -> bool:
        if not isinstance(value, torch.Tensor) or value.numel() > _ELEMENTS or value.dtype not in _ALLOWED:
            return False
        if value.ndim > 6 or (value.numel() == 0 and not self.empty):
            return False
        if value.dtype == torch.int64 and not bool(((value >= -(2**31)) & (value < 2**31)).all()):
            return False  # int64 is 32 bits wide on the card: inputs that are written count, too
        if value.dtype == torch.bool or not value.numel() or name[0] != "t":
            return True
        if self.fills == ["wide"] and not value.is_floating_point():
            return value.dtype != torch.int64 or bool((value.abs() < 2**31 - 1).all())
        numbers = value.double()
        if self.fills in (["whole"], ["whole", "fraction"], ["wide"]):
            return bool(numbers.isfinite().all()) and bool(numbers.abs().max() <= _LARGEST)
        if self.fills == ["inf"]:
            return True
        if self.fills == ["nan"]:
            return not bool(numbers.isinf().any()) and bool(numbers.nan_to_num(0).abs().max() <= _LARGEST)
        return bool(numbers.isfinite().all()) and not is_beyond(value)


def _evaluate(program: Program) -> dict[str, torch.Tensor]:
    """Every value by name, after the last statement."""
    names = {i.name: i.of(i.base()) for i in program.inputs}
    scope = dict(names)
    exec("\n".join(program.statements), dict(NAMES), scope)  # noqa: S102 - our own text
    return scope


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.equal(a.double().nan_to_num(12345.0), b.double().nan_to_num(12345.0))


def generate(seed: int, length: int | None = None) -> Program:
    return Generator(seed, length).generate()
