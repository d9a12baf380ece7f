#!/usr/bin/env python3
"""Writes the pages that are generated from the code. With --check, only says which are out of date."""

import sys
from pathlib import Path

from torch_spyre import _C

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"docs/settings.md": _C.settings_markdown}


def main() -> int:
    stale = [name for name, make in PAGES.items() if not (ROOT / name).exists() or (ROOT / name).read_text() != make()]
    if "--check" in sys.argv:
        print("\n".join(f"{name} is out of date: run `make docs`" for name in stale), end="\n" if stale else "")
        return 1 if stale else 0
    for name in stale:
        (ROOT / name).write_text(PAGES[name]())
        print("wrote", name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
