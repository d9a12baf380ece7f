"""What was found: the answer first, then modules and operators; as text, as JSON and as a page."""

import json
import math
import os

from torch_spyre._compare import formats
from torch_spyre._compare.judge import Judge, ModuleRow, OperatorRow, WeightRow

_SHOWN = 8  # operators in the text


class Report:
    """``ok``: whether everything is within its bound. ``str`` starts with the answer; ``to_json`` has every row."""

    def __init__(self, model: str, reference: str, compiled: bool, weights: list[WeightRow], judge: Judge):
        self.model, self.reference, self.compiled = model, reference, compiled
        self.weights, self.modules, self.operators = weights, judge.modules, judge.operators
        self.notes = judge.notes
        self.held_bytes = judge.held_at_most

    @property
    def first_operator(self) -> OperatorRow | None:
        """The first that is out of its bound, in the order in which they ran."""
        return next((row for row in self.operators if row.own is not None and row.own.is_out), None)

    @property
    def first_module(self) -> ModuleRow | None:
        return next((row for row in self.modules if row.is_out), None)

    @property
    def ok(self) -> bool:
        """Whether all that was judged is within its bound, and something was."""
        judged = any(row.own is not None for row in self.operators)
        return judged and not self.weights and self.first_operator is None and self.first_module is None

    @property
    def answer(self) -> str:
        if self.weights:
            w, more = self.weights[0], len(self.weights) - 1
            return (
                f"first weight that differs: {w.name}, in {w.differ} of {w.elements} elements, "
                f"at {_index(w.off.index)} the card has {w.off.card:.6g}, the reference {w.off.reference:.6g}"
                + (f" (and {more} more weights)" if more else "")
            )
        if (row := self.first_operator) is not None:
            return f"first operator out of bound: {_place(row)}: {_off(row)}"
        if (row := self.first_module) is not None:
            if row.own is not None and not row.own <= row.own_bound:
                return (
                    f"first kernel out of bound: {row.path} is off by {row.own:.2g} from its own inputs, bound "
                    f"{row.own_bound:.2g}, and none of its operators is when the kernel returns them all"
                )
            if math.isinf(row.accumulated):
                text = f"first module out of bound: {row.path} has NaN or infinity where the reference has numbers"
            else:
                text = f"first module out of bound: {row.path} is off by {row.accumulated:.2g}, bound {row.bound:.2g}"
            if math.isinf(row.rounding):
                return f"{text}; no operator is wrong: rounding to the card's format does the same to the reference"
            return f"{text}; no operator is: their errors add up to more than rounding explains"
        judged = [row for row in self.operators if row.own is not None]
        if not judged:
            return "nothing was judged" + (
                f": {self.operators[0].note}" if self.operators else ": no operator of the card ran"
            )
        text = f"all {len(judged)} operators of {len(self.modules)} {'kernel results' if self.compiled else 'modules'} "
        text += "within bounds"
        floats = [row for row in judged if row.own.error]
        if floats:
            worst = max(floats, key=lambda row: row.own.error / row.own.bound)
            text += f", worst {_place(worst)}: {_off(worst)}"
        unjudged = sum(row.own is None and bool(row.note) for row in self.operators)
        return text + (f"; {unjudged} not judged" if unjudged else "")

    @property
    def most_lost(self) -> tuple[ModuleRow, float] | None:
        """The module after which results are further off than any before it, by the largest step; and how far those
        were."""
        found, most, before = None, 0.0, 0.0
        for row in self.modules:
            if row.accumulated - before > most:
                found, most = (row, before), row.accumulated - before
            before = max(before, row.accumulated)
            if math.isinf(before):
                break
        return found

    def _lost(self) -> list[str]:
        if self.most_lost is None:
            return []
        row, before = self.most_lost
        return [
            f"most digits are lost in {row.path} ({row.kind}): off by at most {before:.2g} before it, "
            f"by {row.accumulated:.2g} after it, by {row.rounding:.2g} from rounding alone"
        ]

    def __str__(self) -> str:
        about = f"{self.model}, {'compiled' if self.compiled else 'eager'}, judged by {self.reference}"
        lines = [self.answer, *self._lost(), about]
        if self.modules:
            width = max(len(_cut(row.path)) for row in self.modules)
            lines += ["", f"  {'result of':<{width}}  {'off by':>8}  {'rounding alone':>14}  {'bound':>8}"]
            lines += [
                f"{'*' if row.is_out else ' '} {_cut(row.path):<{width}}  {row.accumulated:>8.2g}"
                f"  {row.rounding:>14.2g}  {row.bound:>8.2g}"
                for row in self.modules
            ]
        judged = [row for row in self.operators if row.own is not None and row.own.error]
        worst = sorted(judged, key=lambda row: (not row.own.is_out, -row.own.error / (row.own.bound or 1e-300)))[
            :_SHOWN
        ]
        if worst:
            lines += ["", "  operators nearest to their bounds, each from the card's own operands"]
            lines += [f"{'*' if row.own.is_out else ' '} {_place(row)}: {_off(row)}" for row in worst]
        unjudged = [row for row in self.operators if row.own is None and row.note]
        lines += [f"  {_place(row)}: {row.note}" for row in unjudged]
        lines += [
            f"  note {text} ({times} times)" if times > 1 else f"  note {text}" for text, times in self.notes.items()
        ]
        lines.append(
            f"  the reference held {self.held_bytes / 2**20:.3g} MiB at most, besides weights while they were read"
        )
        return "\n".join(lines)

    __repr__ = __str__

    def facts(self) -> dict:
        """As docs/spec/schema/compare_facts.schema.json describes them. None stands for NaN and for infinity."""
        return {
            "facts": "spyre-compare", "version": 1, "model": self.model, "reference": self.reference,
            "mode": "compiled" if self.compiled else "eager", "ok": self.ok, "answer": self.answer,
            "held_bytes": self.held_bytes,
            "weights": [
                {"name": w.name, "elements": w.elements, "differ": w.differ, **_facts_of(w.off)} for w in self.weights
            ],
            "modules": [
                {
                    "path": row.path, "kind": row.kind, "shape": row.shape, "dtype": row.dtype,
                    "accumulated": _number(row.accumulated), "rounding": _number(row.rounding),
                    "bound": _number(row.bound), "own": _number(row.own),
                    "own_bound": None if row.own is None else _number(row.own_bound), "out": row.is_out,
                    "first": row.first, "last": row.last,
                }
                for row in self.modules
            ],
            "operators": [
                {
                    "operator": row.operator, "module": row.module, "kernel": row.kernel, "source": row.source,
                    "shape": row.shape, "dtype": row.dtype, "judged": row.own is not None,
                    "out": row.own is not None and row.own.is_out, **_facts_of(row.own),
                    "accumulated": _number(row.accumulated), "rounding": _number(row.rounding), "note": row.note,
                }
                for row in self.operators
            ],
            "notes": [{"text": text, "times": times} for text, times in self.notes.items()],
        }  # fmt: skip

    def to_json(self) -> str:
        return json.dumps(self.facts(), indent=1, allow_nan=False)

    def save(self, path: str | os.PathLike) -> None:
        """One self-contained page."""
        from torch_spyre import _C

        with open(path, "w") as file:
            file.write(_C.compare_page(self.to_json()))


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _index(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]"


def _cut(path: str) -> str:
    """Its beginning and its end: of a kernel's name, what it computes first, and what tells it from others."""
    return path if len(path) <= 60 else f"{path[:32]}...{path[-25:]}"


def _facts_of(off: formats.Off | None) -> dict:
    numbers = {key: _number(getattr(off, key, None)) for key in ("error", "bound", "card", "reference")}
    return {**numbers, "index": list(off.index) if off else []}


def _place(row: OperatorRow) -> str:
    inside = row.kernel or row.module
    where = f" ({row.source})" if row.source else ""
    return row.operator + (f" in {_cut(inside)}" if inside else "") + where


def _off(row: OperatorRow) -> str:
    off = row.own
    text = (
        f"error {off.error:.3g}, bound {off.bound:.3g}, at {_index(off.index)} of {row.dtype}{row.shape} the card has "
    )
    text += f"{off.card:.6g}, the reference {off.reference:.6g}"
    return text + (f"; {row.note}" if row.note else "")
