#!/usr/bin/env python3
"""Writes what is generated from the code: pages, and tables inside pages. With --check, only says what is out of date.

A table inside a page stands between ``<!-- generated: name -->`` and ``<!-- end -->``.
"""

import re
import sys
from pathlib import Path

from torch_spyre import _C

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"docs/settings.md": _C.settings_markdown}
TABLES = {"spyre/passes/README.md": {"passes": _C.passes_markdown}}


def with_tables(text: str, tables: dict) -> str:
    for name, make in tables.items():
        block = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, found = block.subn(lambda match, make=make: match[1] + make() + match[2], text)
        if found != 1:
            raise SystemExit(f"a page has {found} places for the table '{name}', wanted is one")
    return text


def stale(wanted: dict[str, str]) -> list[str]:
    """The pages, named from the root, that say something else than wanted."""
    return [name for name, text in wanted.items() if not (ROOT / name).exists() or (ROOT / name).read_text() != text]


def main() -> int:
    wanted = {name: make() for name, make in PAGES.items()}
    wanted |= {name: with_tables((ROOT / name).read_text(), tables) for name, tables in TABLES.items()}
    old = stale(wanted)
    if "--check" in sys.argv:
        print("\n".join(f"{name} is out of date: run `make docs`" for name in old), end="\n" if old else "")
        return 1 if old else 0
    for name in old:
        (ROOT / name).write_text(wanted[name])
        print("wrote", name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
