"""Makes a failing program smaller while it still fails in the same way."""

import re
import time
from collections.abc import Callable, Iterator

from tests.programs.program import Input, Program


def shrink(program: Program, fails: Callable[[Program], bool], seconds: float = 60) -> Program:
    """Takes away and simplifies as long as the program still runs on the CPU and still fails."""
    best, end, seen = program, time.monotonic() + seconds, {program.source + str(program.inputs)}
    progress = True
    while progress:
        progress = False
        for candidate in _smaller(best):
            if time.monotonic() > end:
                return best
            key = candidate.source + str(candidate.inputs)
            if key in seen or not _runs(candidate):
                continue
            seen.add(key)
            if fails(candidate):
                best, progress = candidate, True
                break
    return best


def _runs(program: Program) -> bool:
    try:
        program.run("cpu", calls=2)
    except Exception:  # a name is missing now, or a shape does not fit
        return False
    return True


def _smaller(p: Program) -> Iterator[Program]:
    """The largest steps first."""
    if len(p.results) > 1:
        for name in p.results:
            yield p.but(results=(name,))
    made = [s.split(" = ")[0] for s in p.statements]
    for i in reversed(range(len(p.statements))):  # cut off the end
        if made[i].isidentifier() and i + 1 < len(p.statements):
            yield p.but(statements=p.statements[: i + 1], results=(made[i],))
    for i in reversed(range(len(p.statements))):
        yield p.but(statements=_without(p.statements, i))
        if made[i].isidentifier():  # an input or an earlier value instead
            for other in [x.name for x in p.inputs] + made[:i]:
                if other.isidentifier():
                    rest = tuple(re.sub(rf"\b{made[i]}\b", other, s) for s in _without(p.statements, i))
                    yield p.but(statements=rest, results=tuple(other if r == made[i] else r for r in p.results))
    for i, entry in enumerate(p.inputs):
        yield p.but(inputs=_without(p.inputs, i))
        for simpler in _simpler(entry):
            yield p.but(inputs=(*p.inputs[:i], simpler, *p.inputs[i + 1 :]))
    for i, statement in enumerate(p.statements):  # (x).clamp(-8, 8) is x
        if cut := re.fullmatch(r"(\w+ = )\((.*)\)\.clamp\(-8, 8\)", statement):
            yield p.but(statements=(*p.statements[:i], cut[1] + cut[2], *p.statements[i + 1 :]))


def _without(items: tuple, i: int) -> tuple:
    return items[:i] + items[i + 1 :]


def _simpler(entry: Input) -> Iterator[Input]:
    def but(**changes):
        return Input(**{**vars(entry), **changes})

    if entry.fill == "listed":
        if len(entry.source) > 1:
            yield but(source=entry.source[: len(entry.source) // 2], shape=(len(entry.source) // 2,))
        if entry.dtype != "int64":
            yield but(dtype="int64")
        return
    if entry.view:
        yield but(view="")
    if entry.fill != "whole":
        yield but(fill="whole")
    for i, extent in enumerate(entry.shape):
        for less in (1, 2, 3, 32, 33, 64, 65):
            if less < extent:
                yield but(shape=(*entry.shape[:i], less, *entry.shape[i + 1 :]))
    if entry.dtype not in ("float16", "int64", "bool"):
        yield but(dtype="float16" if "float" in entry.dtype else "int64")
