#!/usr/bin/env python3
"""Checks #include directions against the table of layers: who may use whom; and that files of a layer form no cycle."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# layer -> layers it may include, besides itself.
ALLOWED = {
    "base": set(),
    "arch": {"base"},
    "ops": {"arch", "base"},
    "layout": {"arch", "base"},
    "graph": {"layout", "ops", "arch", "base"},
    "forms": {"graph", "layout", "ops", "arch", "base"},
    "cost": {"layout", "ops", "arch", "base"},
    "solve": {"base"},
    "lx": {"graph", "cost", "solve", "layout", "ops", "arch", "base"},
    "passes": {"forms", "lx", "graph", "cost", "solve", "layout", "ops", "arch", "base"},
    "opspec": {"graph", "layout", "ops", "arch", "base"},
    "codegen": {"opspec", "graph", "layout", "ops", "arch", "base"},
    "driver": {"passes", "forms", "lx", "opspec", "codegen", "graph", "layout", "ops", "arch", "base"},
    "program": {"layout", "ops", "arch", "base"},
    "device": {"program", "cost", "layout", "ops", "arch", "base"},
    "runtime": {"device", "program", "cost", "layout", "ops", "arch", "base"},
    "report": {"base"},
    "glue": {"driver", "report", "runtime", "program", "forms", "graph", "opspec", "codegen", "layout", "arch", "base"},
}
# Layers whose files use each other in one direction only: a header and its source count as one.
ACYCLIC = {"lx"}
PYTORCH = re.compile(r"#include <(torch|ATen|c10|caffe2|pybind11)/|#include <Python\.h>")
OURS = re.compile(r'#include "(?:spyre/)?([a-z_]+)/')


def layer_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "spyre" else parts[0]


def violations(path: Path):
    layer = layer_of(path)
    for number, line in enumerate(path.read_text().splitlines(), 1):
        where = f"{path.relative_to(ROOT)}:{number}"
        if layer != "glue" and PYTORCH.match(line):
            yield f"{where}: only glue/ may include PyTorch or Python headers: {line.strip()}"
        match = OURS.match(line)
        if match and layer in ALLOWED and match[1] != layer and match[1] not in ALLOWED[layer]:
            allowed = ", ".join(sorted(ALLOWED[layer])) or "nothing"
            yield f"{where}: '{layer}' may not include '{match[1]}' (allowed: {allowed})"


def uses_within(layer: str) -> dict[str, set[str]]:
    """For each file of a layer, without its ending, the other files of the layer that it includes."""
    uses: dict[str, set[str]] = {}
    for path in sorted((ROOT / "spyre" / layer).rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        stem = path.relative_to(ROOT).with_suffix("").as_posix()
        included = re.findall(rf'#include "(spyre/{layer}/[^"]+)\.h"', path.read_text())
        uses.setdefault(stem, set()).update(set(included) - {stem})
    return uses


def cycles(layer: str):
    uses = uses_within(layer)
    # Files that use nothing that is left, or that nothing uses that is left, are no part of a cycle.
    while free := [
        stem for stem, used in uses.items() if not used & uses.keys() or stem not in set().union(*uses.values())
    ]:
        for stem in free:
            del uses[stem]
    if uses:
        yield f"spyre/{layer}: these include each other in a circle: {', '.join(sorted(uses))}"


def main() -> int:
    files = [p for top in ("spyre", "glue") for p in (ROOT / top).rglob("*") if p.suffix in (".h", ".cpp")]
    found = [problem for path in sorted(files) for problem in violations(path)]
    unknown = {layer_of(p) for p in files} - ALLOWED.keys()
    found += [problem for layer in sorted(ACYCLIC) for problem in cycles(layer)]
    found += [f"spyre/{layer}: not in the table of layers in scripts/check_includes.py" for layer in sorted(unknown)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
