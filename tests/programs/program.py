"""A program: inputs, statements over tensors, results; as Python text that can be read, pasted and kept.

    '''What it shows.'''

    given = {
        "a": ("whole", "float16", (4, 64), 3, "[1:]"),
        "i": ("listed", "int64", (2,), [0, 2], ""),
    }


    def program(a, i):
        t0 = a.index_select(0, i)
        a.mul_(2)
        return (t0,)

An input is a fill (`values.py`) or a list, a type, a shape, a seed or the values, and a view that the caller takes.
"""

import ast
from dataclasses import dataclass, field, replace

import torch
from torch.utils._python_dispatch import _disable_current_modes

from tests.programs import values

NAMES = {"torch": torch, "F": torch.nn.functional, "nan": float("nan"), "inf": float("inf")}


@dataclass(frozen=True)
class Input:
    name: str
    fill: str  # of values.FILLS, or "listed"
    dtype: str
    shape: tuple
    source: object  # the seed, or the values
    view: str = ""  # applied before the call: "[1:]", ".transpose(0, 1)"

    def base(self) -> torch.Tensor:
        with _disable_current_modes():  # who watches a program does not watch this
            if self.fill == "listed":
                return torch.tensor(self.source, dtype=values.DTYPES[self.dtype]).reshape(self.shape)
            return values.fill(self.fill, self.dtype, self.shape, self.source)

    def of(self, base: torch.Tensor) -> torch.Tensor:
        return eval(f"base{self.view}", {"base": base, "torch": torch})  # noqa: S307 - our own text

    def __str__(self) -> str:
        return f'    "{self.name}": {(self.fill, self.dtype, self.shape, self.source, self.view)!r},'


@dataclass(frozen=True)
class Program:
    inputs: tuple[Input, ...] = ()
    statements: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    about: str = field(default="", compare=False)

    @property
    def source(self) -> str:
        lines = [f"def program({', '.join(i.name for i in self.inputs)}):"]
        lines += [f"    {s}" for s in self.statements]
        return "\n".join([*lines, f"    return ({', '.join(self.results)},)", ""])

    def __str__(self) -> str:
        given = "\n".join(["given = {", *map(str, self.inputs), "}"])
        return f'"""{self.about}"""\n\n{given}\n\n\n{self.source}'

    def but(self, **changes) -> "Program":
        return replace(self, **changes)

    @property
    def names(self) -> list[str]:
        """Of everything a caller can look at afterwards: the results, then the inputs."""
        return [*self.results, *(i.name for i in self.inputs)]

    def function(self):
        names = dict(NAMES)
        exec(compile(self.source, "<program>", "exec"), names)  # noqa: S102 - our own text
        return names["program"]

    def run(self, device: str, wrap=lambda f: f, calls: int = 1) -> list[torch.Tensor]:
        """What `names` names, after the last call; later calls see what earlier ones left in the inputs."""
        bases = [i.base().to(device) for i in self.inputs]
        function = wrap(self.function())
        for _ in range(calls):
            results = function(*(i.of(b) for i, b in zip(self.inputs, bases, strict=True)))
        return [*results, *bases]


def parse(text: str) -> Program:
    tree = ast.parse(text)
    about = ast.get_docstring(tree, clean=False) or ""
    given, function = (node for node in tree.body if isinstance(node, (ast.Assign, ast.FunctionDef)))
    inputs = tuple(Input(name, *rest) for name, rest in ast.literal_eval(given.value).items())
    *statements, last = function.body
    return Program(
        inputs,
        tuple(ast.get_source_segment(text, s) for s in statements),
        tuple(ast.unparse(e) for e in last.value.elts),
        about,
    )
