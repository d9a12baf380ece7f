"""Who says that a program's answer is wrong. Each judge looks at one promise and names what breaks it.

    eager      called operator by operator, the card gives what PyTorch gives on the CPU, up to rounding
    compiled   through torch.compile, called twice, likewise
    bits       eager and compiled are the same bits, where both ran on the card alone; if not, `worker.py` asks why
    replay     what torch.compile saved, run by spyre-run, computes the same bytes
    settings   how many cores there are, and where buffers lie, changes no result
    checked    the checker, which looks at every launch, finds no broken rule (in a process where it is on)
"""

import re
from dataclasses import asdict, dataclass

import torch
import torch_spyre

from tests.programs import replay
from tests.programs.program import Program
from tests.programs.rounding import slack
from tests.programs.values import LIMIT

#: Ways to compile that must not change a bit; and numbers of cores, which may change the order of sums.
SAME_BITS = {
    "LX_PLANNING=0": {"lx_planning": False},
    "LAYOUT_SOLVER=greedy": {"layout_solver": "greedy"},
    "LAYOUT_SOLVER=exact": {"layout_solver": "exact"},
    "LAYOUT_SOLVER=simulated_annealing": {"layout_solver": "simulated_annealing"},
    "CO_OPTIMIZING_LX_PLANNING=0": {"co_optimizing_lx_planning": False},
    "SPYRE_BUNDLE_OPS=2": {"bundle_ops": 2},
}
SAME_NUMBERS = {f"SENCORES={n}": {"sencores": n} for n in (1, 2, 7, 16)}
SETTINGS = {**SAME_BITS, **SAME_NUMBERS}


@dataclass(frozen=True)
class Failure:
    kind: str  # judge, and "wrong" or "error": "eager wrong"
    message: str
    setting: str = ""

    def facts(self) -> dict:
        return asdict(self)


@dataclass
class Run:
    """What the card gave: values on the CPU, or the error; and which operators ran on the CPU."""

    values: list[torch.Tensor] | None = None
    error: str = ""
    fallbacks: tuple = ()


#: What PyTorch refuses on every device, though some of its CPU kernels let it pass: writes into an expanded dimension.
_PYTORCHS_OWN = "unsupported operation: more than one element of the written-to tensor refers to a single memory"


def _pytorch_cannot_compile(program: Program) -> bool:
    """Whether the tracer itself fails, before any backend: then it fails for the CPU's tensors, too."""
    torch._dynamo.reset()
    try:
        program.run("cpu", lambda f: torch.compile(f, fullgraph=True, backend="aot_eager"))
    except Exception:  # whatever it is, the card has no part in it
        return True
    return False


def run(program: Program, calls: int, compiled: bool) -> Run:
    torch._dynamo.reset()
    torch.spyre.reset_metrics()
    wrap = (lambda f: torch.compile(f, fullgraph=True)) if compiled else (lambda f: f)
    try:
        found = [t.cpu() for t in program.run("spyre", wrap, calls)]
    except Exception as error:  # whatever it is, it is a finding
        torch_spyre._C._reset_device(0)  # a fault stops its stream; the next program must not suffer for it
        text = str(error).split("\n\nSet TORCH", 1)[0].split("\n\nWhile executing", 1)[0]
        return Run(error=f"{type(error).__name__}: {text}"[:2000])
    return Run(found, fallbacks=tuple(sorted(torch.spyre.metrics()["fallbacks"])))


def first_difference(name: str, found, expected, allowed, lenient: bool, overflows: bool = False) -> str:
    """Empty if there is none; `lenient` where 16-bit values left the range both formats have, `overflows` where
    arithmetic made infinities of them, for which the card has the symbol of NaN."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"{name}: {found.dtype}{list(found.shape)}, expected {expected.dtype}{list(expected.shape)}"
    f, e = found.double(), expected.double()
    good = (f == e) | (f.isnan() & e.isnan()) | ((f - e).abs() <= allowed)
    if lenient:
        good |= e.isnan()  # infinities that meet; the card's large numbers are numbers
        good |= (e.abs() > LIMIT.get(expected.dtype, 6.0e4)) & ~f.isnan()
    if overflows:
        good |= f.isnan()  # and what was computed from it: NaN says that it is none
    if bool(good.all()):
        return ""
    wrong = (~good).nonzero()
    at = tuple(wrong[0].tolist())
    by = f", {allowed[at].item():.3g} allowed" if allowed[at] > 0 else ""
    where = f"{len(wrong)} of {e.numel()} elements, first at {list(at)}"
    return f"{name}: {where}: {f[at].item()}, expected {e[at].item()}{by}"


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    x, y = a.double(), b.double()
    return bool((((x == y) & (x.signbit() == y.signbit())) | (x.isnan() & y.isnan())).all())


JUDGES = ("eager", "compiled", "bits", "replay", "settings")


class Judgement:
    """The judges over one program; `failures` is what they found."""

    def __init__(self, program: Program, setting: str = "", judges=JUDGES):
        self.program, self.calls = program, 2
        self.failures: list[Failure] = []
        if "checked" in judges:
            self._checked()
            return
        self.expected = program.run("cpu", calls=self.calls)
        self.slack = slack(program, self.calls, self.expected)
        if self.slack.undefined:
            return
        eager = self._against_cpu("eager", run(program, self.calls, compiled=False)) if "eager" in judges else Run()
        compiled = Run()
        if set(judges) - {"eager"}:
            compiled = self._against_cpu("compiled", run(program, self.calls, compiled=True))
        if compiled.values is None:
            return
        if "bits" in judges and eager.values is not None and not eager.fallbacks and not compiled.fallbacks:
            self._same_bits("bits", "compiled", compiled, "eager", eager)
        if "replay" in judges:
            self._replay()
        if "settings" in judges and setting:
            self._settings(setting, compiled)

    def _replay(self) -> None:
        with replay.replayed() as differences:
            again = run(self.program, 1, compiled=True)
        for text in ([again.error] if again.error else differences)[:1]:
            self._fail("replay error" if again.error or text.startswith("error") else "replay wrong", text)

    def _checked(self) -> None:
        for compiled in (False, True):
            found = run(self.program, self.calls, compiled)
            if "the checker found" in found.error:
                self._fail("checked error", found.error)
                return

    def _fail(self, kind: str, message: str, setting: str = "") -> None:
        self.failures.append(Failure(kind, message, setting))

    def _against_cpu(self, kind: str, found: Run, setting: str = "") -> Run:
        if found.values is None:
            pytorchs = _PYTORCHS_OWN in found.error if kind == "eager" else _pytorch_cannot_compile(self.program)
            if not pytorchs:
                self._fail(f"{kind} error", found.error, setting)
            return found
        values = zip(self.program.names, found.values, self.expected, self.slack.allowed, strict=True)
        for name, f, e, allowed in values:
            if text := first_difference(name, f, e, allowed, self.slack.beyond, self.slack.overflows):
                self._fail(f"{kind} wrong", text, setting)
                break
        return found

    def _same_bits(self, kind: str, what: str, a: Run, other: str, b: Run, setting: str = "") -> None:
        for name, x, y in zip(self.program.names, a.values, b.values, strict=True):
            if not same_bits(x, y):
                text = first_difference(name, x, y, torch.zeros(y.shape), False) or "the sign of a zero"
                self._fail(f"{kind} wrong", f"{what} is not {other}: {text}", setting)
                return

    def _settings(self, setting: str, compiled: Run) -> None:
        from torch_spyre._inductor import config

        with config.patch(**SETTINGS[setting]):
            changed = run(self.program, self.calls, compiled=True)
        if setting in SAME_NUMBERS or changed.values is None:
            if not any(f.kind == "compiled wrong" for f in self.failures):
                self._against_cpu("settings", changed, setting)
        elif changed.fallbacks == compiled.fallbacks:
            self._same_bits("settings", setting, changed, "the default", compiled, setting)


_OPERATOR = re.compile(r"\.(\w+)\(|(?<=[\w)\]] )([-+*/@&|^<>=!%]+)(?= )|(~|(?<=[ (])-(?=[a-z(]))|(\[)")


def bucket_of(failure: Failure, program: Program) -> str:
    """What failures of one cause share: the message of an error, or the operators and types of a small program."""
    if failure.kind.endswith("error") or failure.kind in ("crash", "hang"):
        if checked := re.search(r"note ([\w-]+): launch .*?\((\w+)\).*? (HBM|LX) \[", failure.message):
            return f"{failure.kind}: the checker: {checked[1]}, {checked[2]} in {checked[3]}"
        line = next((x for x in failure.message.splitlines() if x), "")
        line = re.sub(r"'[^']*'", "'_'", line)
        line = re.sub(r"\b(?:buf|arg|t|op|primals_|r|d)?\d[\w.]*", "#", line)
        line = re.sub(r"\[[#, -]*\]|\([#, -]*\)", "#", line)
        return f"{failure.kind}: {line[:160]}"
    names = set()
    for statement in program.statements:
        names |= {next(filter(None, m)) for m in _OPERATOR.findall(re.sub(r"^\w+ = ", "", statement))}
    views = "".join(sorted({i.view.strip(".[")[:2] for i in program.inputs if i.view}))
    dtypes = sorted({i.dtype for i in program.inputs if i.fill != "listed"})
    setting = f" under {failure.setting}" if failure.setting else ""
    return f"{failure.kind}{setting}: {' '.join(sorted(names))} of {' '.join(dtypes)}{' views' if views else ''}"
