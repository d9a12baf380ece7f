"""Random small PyTorch programs as source text, and what their answers should be.

A program is a list of statements over tensors, written as Python, so that a failing one can be read and pasted:

    def program(a, b):
        t0 = a.transpose(0, 1)
        t1 = (t0 @ b).clamp(-8, 8)
        a[1:3] = 2
        return t1, t0

Most values are small whole numbers. Up to 512 they are exact in the card's 16-bit format, and so are sums and
products of them that stay as small: a program of such values must give the CPU's answer bit for bit, and comparisons
have no near misses. Values past a division or an exponential are no longer exact; how far they may be off is measured,
by running the program on the CPU again with every result off by up to one unit of the card's last place.
"""

import itertools
import math
import random
import re
from dataclasses import dataclass, field

import torch
from torch.utils._python_dispatch import TorchDispatchMode

H, F, I, B = torch.float16, torch.float32, torch.int64, torch.bool
_LARGEST = 512  # whole numbers up to here, and halves of them, are exact in a 10-bit significand
_STEP = 2.0**-9  # relative distance of two neighbours in the card's 16-bit format
_EXTENTS = (1, 2, 3, 4, 5, 7, 8, 32, 33, 63, 64, 65, 100, 128, 130, 192)
_ELEMENTS = 16384


@dataclass
class Input:
    name: str
    base: torch.Tensor
    view: str = ""  # applied to the base before the call: "[1:]", ".transpose(0, 1)"

    def of(self, base: torch.Tensor) -> torch.Tensor:
        return eval(f"base{self.view}", {"base": base, "torch": torch})  # noqa: S307 - our own text


@dataclass
class Program:
    seed: int
    inputs: list[Input] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    exact: dict[str, bool] = field(default_factory=dict)

    @property
    def source(self) -> str:
        lines = [f"def program({', '.join(i.name for i in self.inputs)}):"]
        lines += [f"    {s}" for s in self.statements]
        return "\n".join([*lines, f"    return ({', '.join(self.results)},)", ""])

    def __str__(self) -> str:
        given = [
            f"# {i.name} = {str(i.base.dtype).removeprefix('torch.')}{list(i.base.shape)}{i.view}" for i in self.inputs
        ]
        return "\n".join([f"# seed {self.seed}", *given, self.source])

    def function(self):
        names = {"torch": torch, "F": torch.nn.functional}
        exec(compile(self.source, f"<program {self.seed}>", "exec"), names)  # noqa: S102 - our own text
        return names["program"]

    def run(self, device: str, wrap=lambda f: f) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """The results, and the inputs' bases as the program left them."""
        bases = [i.base.clone().to(device) for i in self.inputs]
        results = wrap(self.function())(*(i.of(b) for i, b in zip(self.inputs, bases, strict=True)))
        return list(results), bases

    def check(self, found, bases) -> None:
        """Raises AssertionError where the answer is not the CPU's."""
        expected, expected_bases = self.run("cpu")
        slack = None
        for name, f, e in [
            *zip(self.results, found, expected, strict=True),
            *zip((i.name for i in self.inputs), bases, expected_bases, strict=True),
        ]:
            f = f.cpu()
            assert f.shape == e.shape and f.dtype == e.dtype, f"{name}: {f.dtype}{f.shape}, expected {e.dtype}{e.shape}"
            if self.exact.get(name, True):
                wrong = (f != e).nonzero()
                assert not len(wrong), f"{name}: {len(wrong)} of {e.numel()} elements, first at {wrong[0].tolist()}: " + (
                    f"{f[tuple(wrong[0])].item()}, expected {e[tuple(wrong[0])].item()}"
                )
            else:
                slack = slack or self.slack()
                off = (f.double() - e.double()).abs() - slack[name]
                assert bool((off <= 0).all()), f"{name}: off by {off.max().item():.3g} more than rounding explains"

    def slack(self) -> dict[str, torch.Tensor]:
        """By result: how far rounding can carry each element."""
        exact, exact_bases = self.run("cpu")
        names = [*self.results, *(i.name for i in self.inputs)]
        spread = [torch.zeros(t.shape, dtype=torch.float64) for t in (*exact, *exact_bases)]
        for trial in range(6):
            with Jitter(trial):
                results, bases = self.run("cpu")
            for s, t, e in zip(spread, (*results, *bases), (*exact, *exact_bases), strict=True):
                torch.maximum(s, (t.double() - e.double()).abs(), out=s)
        slack = {}
        for name, s, e in zip(names, spread, (*exact, *exact_bases), strict=True):
            # Rounding of neighbours is as good a sample of an element's as its own: six trials are few.
            near = torch.maximum(s, s.mean()) if s.numel() else s
            slack[name] = 4 * near + 4 * _STEP * e.double().abs() + 1e-3
        return slack


class Jitter(TorchDispatchMode):
    """Every floating result is off by up to one unit of the card's last place."""

    def __init__(self, seed: int):
        super().__init__()
        self.random = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns):
            return result
        for t in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(t, torch.Tensor) and t.is_floating_point() and 0 not in t.stride():
                noise = torch.rand(t.shape, generator=self.random, dtype=torch.float64) * 2 - 1
                t.copy_((t.double() * (1 + _STEP * noise)).to(t.dtype))
        return result


class Generator:
    """Writes a program statement by statement, running each on the CPU to know shapes and sizes of values."""

    def __init__(self, seed: int, length: int = 6):
        self.random = random.Random(seed)
        self.program = Program(seed)
        self.length = length
        self.values: dict[str, torch.Tensor] = {}
        self.frozen: set[str] = set()  # expanded: several positions are one element, and may not be written
        self.numbers = itertools.count()

    def generate(self) -> Program:
        for _ in range(self.random.choice((1, 1, 2, 2, 3, 4))):
            self._input()
        while len(self.program.statements) < self.length:
            self.random.choices(*zip(*self._KINDS, strict=True))[0](self)
        made = [n for n in self.values if n.startswith("t")] or list(self.values)
        count = min(len(made), self.random.choice((1, 2, 3, 6)))
        self.program.results = sorted(set(made[-1:] + self.random.sample(made, count)), key=made.index)
        # Whoever aliases an inexact value is inexact too; programs are short, so all or nothing is enough.
        if not all(self.program.exact.values()):
            self.program.exact = dict.fromkeys([*self.values], False)
        return self.program

    # --- pieces ---

    def _input(self) -> None:
        r = self.random
        name = "abcd"[len(self.program.inputs)]
        known = [i for i in self.program.inputs if i.base.ndim]
        if known and r.random() < 0.5:  # related shapes, so that broadcasting and products meet
            shape = list(r.choice(known).base.shape)
            if r.random() < 0.5:
                r.shuffle(shape)
            if r.random() < 0.4:
                shape[r.randrange(len(shape))] = r.choice((1, 64, 5))
            if r.random() < 0.3:
                shape = shape[1:]
        else:
            shape = [r.choice(_EXTENTS) for _ in range(r.choice((0, 1, 2, 2, 2, 3, 3, 4, 5, 6)))]
        while math.prod(shape) > _ELEMENTS:
            shape[shape.index(max(shape))] = r.choice((1, 2, 3))
        dtype = r.choices((H, F, I, B), (12, 3, 2, 1))[0]
        generator = torch.Generator().manual_seed(r.randrange(1 << 30))
        low, high = (0, 2) if dtype == B else (-4, 5)
        base = torch.randint(low, high, shape, generator=generator).to(dtype)
        view = ""
        if shape and r.random() < 0.3:
            view = self._view_text(base, r.choice(("transpose", "slice", "slice", "select", "expand")))
        entry = Input(name, base, view)
        self.program.inputs.append(entry)
        self.values[name] = entry.of(base.clone())
        if "expand" in view:
            self.frozen.add(name)

    def _pick(self, test=lambda t: True, exact: bool = False) -> str | None:
        """A value; later ones more often, so that programs are deep rather than wide."""
        names = [n for n in self.values if test(self.values[n]) and not (exact and self._is_inexact(n))]
        return self.random.choices(names, [1 + i for i in range(len(names))])[0] if names else None

    def _say(self, expression: str, inexact: bool = False, views: str | None = None) -> bool:
        """Adds `t = expression` if the CPU accepts it and its values stay in range."""
        try:
            value = self._evaluate(expression)
        except (RuntimeError, IndexError):
            return False
        if not isinstance(value, torch.Tensor) or value.numel() > _ELEMENTS or value.dtype not in (H, F, I, B):
            return False
        if value.ndim > 6 or value.numel() == 0:
            return False
        if views is None and value.dtype != B and value.abs().max() > 64:
            expression = f"({expression}).clamp(-8, 8)"
            value = self._evaluate(expression)
        if value.is_floating_point() and not bool(value.isfinite().all()):
            return False
        name = f"t{next(self.numbers)}"
        self.program.statements.append(f"{name} = {expression}")
        self.values[name] = value
        self.program.exact[name] = not inexact and not self._is_inexact(expression)
        if views is not None and (views in self.frozen or "expand" in expression):
            self.frozen.add(name)
        return True

    def _is_inexact(self, text: str) -> bool:
        return any(not self.program.exact.get(name, True) for name in re.findall(r"\b(?:t\d+|[a-d])\b", text))

    def _evaluate(self, expression: str):
        return eval(expression, {"torch": torch, "F": torch.nn.functional}, self.values)  # noqa: S307

    # --- statements ---

    def _view_text(self, t: torch.Tensor, kind: str) -> str:
        r, rank = self.random, t.ndim
        dim = r.randrange(rank) if rank else 0
        if kind == "transpose" and rank > 1:
            return f".transpose({', '.join(map(str, r.sample(range(rank), 2)))})"
        if kind == "permute" and rank > 1:
            return f".permute({', '.join(map(str, r.sample(range(rank), rank)))})"
        if kind == "slice" and rank:
            extent = t.shape[dim]
            start = r.choice((0, extent // 2, 64 if extent > 64 else 0, r.randrange(extent)))
            stop = r.choice((extent, r.randrange(start + 1, extent + 1), min(extent, start + 64)))
            step = r.choice((1, 1, 1, 2, 3))
            text = f"{start}:{stop}" + (f":{step}" if step > 1 else "")
            return "[" + ":, " * dim + text + "]"
        if kind == "select" and rank:
            return "[" + ":, " * dim + str(r.choice((0, -1, r.randrange(t.shape[dim])))) + "]"
        if kind == "unsqueeze":
            return f".unsqueeze({r.randrange(-1, rank + 1)})"
        if kind == "squeeze":
            return ".squeeze()"
        if kind == "expand":
            ones = [i for i, e in enumerate(t.shape) if e == 1]
            sizes = [r.choice((2, 3, 64, 65)) if i in ones else e for i, e in enumerate(t.shape)]
            lead = [r.choice((2, 5))] if not ones or r.random() < 0.3 else []
            return f".expand({', '.join(map(str, lead + sizes))})"
        if kind == "flatten" and rank > 1:
            start = r.randrange(rank - 1)
            return f".flatten({start}, {r.randrange(start + 1, rank)})"
        if kind == "reshape":
            return f".reshape({', '.join(map(str, self._refactor(t.numel())))})"
        if kind == "unflatten" and rank:
            parts = self._refactor(t.shape[dim], most=2)
            return f".unflatten({dim}, ({', '.join(map(str, parts))},))"
        if kind == "flip" and rank:
            return f".flip({dim})"
        if kind == "diagonal" and rank > 1:
            return ".diagonal(0, 0, 1)"
        return ""

    def _refactor(self, count: int, most: int = 4) -> list[int]:
        sizes = []
        for _ in range(self.random.randrange(most)):
            divisors = [d for d in range(1, count + 1) if count % d == 0]
            sizes.append(self.random.choice(divisors))
            count //= sizes[-1]
        sizes.append(count)
        self.random.shuffle(sizes)
        return sizes

    _VIEWS = ("transpose", "permute", "slice", "slice", "select", "unsqueeze", "squeeze", "expand")
    _VIEWS += ("flatten", "reshape", "reshape", "unflatten", "diagonal")

    def view(self) -> None:
        name = self._pick()
        text = self._view_text(self.values[name], self.random.choice(self._VIEWS))
        if text:
            self._say(f"{name}{text}", views=name)

    def _partner(self, t: torch.Tensor) -> str:
        """Another value that broadcasts with this one, cut or turned if need be; or a number."""
        r = self.random
        options = []
        for name, other in self.values.items():
            if _broadcasts(t, other):
                options += [name] * 3
            if other.ndim > 1 and _broadcasts(t, other.transpose(-1, -2)):
                options.append(f"{name}.transpose(-1, -2)")
            if other.ndim and _broadcasts(t, other.unsqueeze(-1)):
                options.append(f"{name}.unsqueeze(-1)")
            if other.ndim and other.numel() and _broadcasts(t, other.select(-1, 0).unsqueeze(-1)):
                options.append(f"{name}[..., :1]")
        if not options or r.random() < 0.15:
            return str(r.choice((-3, -1, 0, 1, 2, 3)))
        return r.choice(options)

    def binary(self) -> None:
        name = self._pick(lambda t: t.dtype != B)
        if name is None:
            return
        other = self._partner(self.values[name])
        ops = ("{} + {}", "{} - {}", "{} * {}", "{1} - {0}", "torch.where({0} > {1}, {0}, {1})", "{} + 2 * {}")
        both = ("torch.maximum({}, {})", "torch.minimum({}, {})")
        self._say(self.random.choice(ops if other.lstrip("-").isdigit() else ops + both).format(name, other))

    def unary(self) -> None:
        name = self._pick(lambda t: t.dtype != B)
        if name is None:
            return
        ops = ("-{}", "{}.abs()", "{}.clamp(-2, 3)")
        if self.values[name].is_floating_point():
            ops += ("torch.relu({})", "{}.square()")
            if not self._is_inexact(name):
                ops += ("torch.floor({} / 2)", "{}.masked_fill({} > 1, 0)", "torch.ceil({} * 0.5)")
        if not self._is_inexact(name):
            ops += ("torch.sign({})",)
        self._say(self.random.choice(ops).replace("{}", name))

    def compare(self) -> None:
        name = self._pick(lambda t: t.dtype != B, exact=True)
        if name is None:
            return
        sign = self.random.choice(("<", "<=", ">", ">=", "==", "!="))
        other = self._partner(self.values[name])
        if not self._is_inexact(other):
            self._say(f"{name} {sign} {other}")

    def logic(self) -> None:
        name = self._pick(lambda t: t.dtype == B)
        if name is None:
            return
        other = self._pick(lambda t: t.dtype == B and _broadcasts(t, self.values[name]))
        ops = ("~{0}", "{0} & {1}", "{0} | {1}", "{0} ^ {1}", "torch.where({0}, 2, -1)", "{0}.to(torch.float16)")
        self._say(self.random.choice(ops).format(name, other))

    def cast(self) -> None:
        name = self._pick()
        floats = ("float16", "float32")
        kind = self.random.choice(floats if self._is_inexact(name) else (*floats, "int64", "bool"))
        self._say(f"{name}.to(torch.{kind})")

    def smooth(self) -> None:
        """Not exact any more."""
        name = self._pick(lambda t: t.is_floating_point())
        if name is None:
            return
        ops = ("torch.sigmoid({})", "torch.tanh({} * 0.25)", "torch.exp({} * 0.125)", "torch.rsqrt({}.abs() + 1)")
        ops += ("{} / 3", "1 / ({}.abs() + 2)", "F.gelu({}, approximate='tanh')", "torch.sqrt({}.abs() + 1)", "F.silu({})")
        if self.values[name].ndim:
            dim = self.random.randrange(self.values[name].ndim)
            ops += (f"torch.softmax({{}}, {dim})", f"{{}}.mean({dim})", f"{{}}.mean({dim}, keepdim=True)", "{}.mean()")
            # Moments of 16-bit values say little about values far from zero: those that are centred only.
            if self.values[name].float().mean(-1).abs().max() < 1:
                ops += (f"F.layer_norm({{}}, ({self.values[name].shape[-1]},))", f"{{}}.var({dim}, correction=0)")
        self._say(self.random.choice(ops).replace("{}", name), inexact=True)

    def reduction(self) -> None:
        r = self.random
        name = self._pick(lambda t: t.ndim > 0)
        if name is None:
            return
        t = self.values[name]
        dims = tuple(r.sample(range(t.ndim), r.choice((1, 1, 1, min(2, t.ndim), t.ndim))))
        keep = r.choice(("", ", keepdim=True"))
        if t.dtype == B:
            self._say(f"{name}.{r.choice(('any', 'all'))}({dims[0]}{keep})")
            return
        kind = r.choice(("sum", "sum", "sum", "amax", "amin", "argmax", "argmin"))
        if kind.startswith("arg"):
            if not self._is_inexact(name):
                self._say(f"{name}.{kind}({dims[0]}{keep})")
            return
        if kind == "sum" and t.abs().sum(dims).max() > _LARGEST:
            name = f"({name} > 3)" if t.numel() > _LARGEST else f"torch.sign({name})"
            if self._is_inexact(name):
                return
            if t.numel() > _LARGEST and (t > 3).sum(dims).max() > _LARGEST:
                kind = "amax"
        self._say(f"{name}.{kind}({dims}{keep})")

    def product(self) -> None:
        r = self.random
        name = self._pick(lambda t: t.ndim > 0 and t.dtype in (H, F))
        if name is None:
            return
        t = self.values[name]
        options = [f"{name} @ {name}.transpose(-1, -2)"] if t.ndim > 1 else []
        for other, u in self.values.items():
            if u.dtype != t.dtype:
                continue
            for text, v in ((other, u), (f"{other}.transpose(-1, -2)", u.transpose(-1, -2) if u.ndim > 1 else None)):
                if v is not None and v.ndim and v.shape[-2 if v.ndim > 1 else -1] == t.shape[-1]:
                    options += [f"{name} @ {text}"] * 4
        if not options:
            return
        expression = r.choice(options)
        try:
            bound = eval(expression, {}, {n: v.abs().float() for n, v in self.values.items()})  # noqa: S307
        except RuntimeError:
            return
        if bound.max() <= _LARGEST:
            self._say(expression)
        else:
            left, right = expression.split(" @ ")
            if t.shape[-1] <= _LARGEST and not self._is_inexact(expression):
                self._say(f"torch.sign({left}) @ torch.sign({right})")

    def join(self) -> None:
        r = self.random
        name = self._pick(lambda t: t.ndim > 0)
        if name is None:
            return
        t = self.values[name]
        dim = r.randrange(t.ndim)
        fits = [
            n
            for n, u in self.values.items()
            if u.ndim == t.ndim and all(i == dim or a == b for i, (a, b) in enumerate(zip(u.shape, t.shape, strict=True)))
        ]
        names = [name] + [r.choice(fits) for _ in range(r.choice((1, 1, 2)))]
        if r.random() < 0.3:
            same = [n if self.values[n].shape == t.shape else name for n in names]
            self._say(f"torch.stack([{', '.join(same)}], {r.randrange(t.ndim + 1)})")
        else:
            self._say(f"torch.cat([{', '.join(names)}], {dim})")

    def gather(self) -> None:
        r = self.random
        name = self._pick(lambda t: t.ndim > 0)
        if name is None:
            return
        dim = r.randrange(self.values[name].ndim)
        extent = self.values[name].shape[dim]
        rows = [r.randrange(extent) for _ in range(r.choice((1, 2, 5)))]
        if r.random() < 0.5:
            self._say(f"{name}.index_select({dim}, {self._index(rows)})")
        else:
            self._say(f"{name}[{':, ' * dim}{self._index([x - r.choice((0, extent)) for x in rows])}]")

    def _index(self, rows: list[int]) -> str:
        """An input that holds positions."""
        name = f"i{sum(i.name.startswith('i') for i in self.program.inputs)}"
        self.program.inputs.append(Input(name, torch.tensor(rows)))
        self.values[name] = torch.tensor(rows)
        self.frozen.add(name)  # it must stay in range
        return name

    def mutate(self) -> None:
        r = self.random
        names = [n for n in self.values if n not in self.frozen and self.values[n].ndim]
        if not names:
            return
        name = r.choice(names)
        t = self.values[name]
        kind = r.choice(("copy", "slice", "slice", "add", "index_copy", "fill"))
        view = self._view_text(t, "slice")
        target = eval(f"t{view}")  # noqa: S307
        fits = [n for n, u in self.values.items() if _fills(u, target) and (u.dtype == t.dtype or r.random() < 0.2)]
        source = r.choice(fits) if fits and r.random() < 0.8 else str(r.choice((0, 1, 2)))
        if kind == "slice":
            text = f"{name}{view} = {source}"
        elif kind == "fill":
            text = f"{name}{view}.fill_({r.choice((0, 1, 3))})"
        elif kind == "copy":
            fits = [n for n, u in self.values.items() if _fills(u, t)]
            text = f"{name}.copy_({r.choice(fits)})"
        elif kind == "add" and t.dtype != B:
            text = f"{name}{view}.{r.choice(('add_', 'sub_', 'clamp_'))}(1)"
        else:
            dim = r.randrange(t.ndim)
            rows = r.sample(range(t.shape[dim]), min(t.shape[dim], 2))
            text = f"{name}.index_copy_({dim}, {self._index(rows)}, "
            text += f"1 - {name}[{':, ' * dim}:{len(rows)}])"
        scratch = dict(self.values)
        try:
            exec(text, {"torch": torch}, scratch)  # noqa: S102
        except (RuntimeError, IndexError):
            return
        self.program.statements.append(text)
        if self._is_inexact(text):  # whoever shares this memory is inexact now
            self.program.exact.update(dict.fromkeys(self.values, False))

    _KINDS = (
        (view, 24),
        (binary, 20),
        (unary, 8),
        (compare, 3),
        (logic, 3),
        (cast, 4),
        (smooth, 3),
        (reduction, 12),
        (product, 14),
        (join, 8),
        (gather, 4),
        (mutate, 14),
    )


def _broadcasts(a: torch.Tensor, b: torch.Tensor) -> bool:
    pairs = itertools.zip_longest(reversed(a.shape), reversed(b.shape), fillvalue=1)
    return all(x == y or 1 in (x, y) for x, y in pairs)


def _fills(source: torch.Tensor, target: torch.Tensor) -> bool:
    if source.ndim > target.ndim or not _broadcasts(source, target):
        return False
    return torch.broadcast_shapes(source.shape, target.shape) == target.shape


def generate(seed: int, length: int = 6) -> Program:
    return Generator(seed, length).generate()


def shrink(program: Program, fails) -> Program:
    """The program with statements and results taken away as long as it still fails."""
    best = program
    progress = True
    while progress:
        progress = False
        for candidate in _smaller(best):
            try:
                candidate.run("cpu")
            except Exception:  # a name is missing now
                continue
            if fails(candidate):
                best, progress = candidate, True
                break
    return best


def _smaller(p: Program):
    for i in range(len(p.results)):
        if len(p.results) > 1:
            yield Program(p.seed, p.inputs, p.statements, p.results[:i] + p.results[i + 1 :], p.exact)
    for i in reversed(range(len(p.statements))):
        rest = p.statements[:i] + p.statements[i + 1 :]
        yield Program(p.seed, p.inputs, rest, p.results, p.exact)
        name = p.statements[i].split(" = ")[0]
        if name in p.results:  # then an earlier value instead
            for other in (s.split(" = ")[0] for s in rest[:i] if s.startswith("t")):
                yield Program(p.seed, p.inputs, rest, [other], p.exact)
    for i in range(len(p.inputs)):
        yield Program(p.seed, p.inputs[:i] + p.inputs[i + 1 :], p.statements, p.results, p.exact)
