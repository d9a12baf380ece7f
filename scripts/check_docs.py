#!/usr/bin/env python3
"""Checks the documents against the tree: links, files named in backticks, README's map, generated pages.

Prints one line per problem and exits 1 if there is one. Needs nothing but Python. The generated pages are compared only
where torch_spyre can be imported; where it cannot, a line says so.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = {".git", ".venv", "build", "dist", "node_modules"}
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)>\s]+)>?[^)]*\)")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
# A path in backticks is checked when it starts at a folder of the root and has no placeholder in it.
NAMED_FILE = re.compile(r"`((?:spyre|glue|python|tools|tests|bench|docs|scripts|examples|cmake)/[\w./-]+)`")
MAP_ROW = re.compile(r"^\|\s*(?:\[)?`([\w./-]+/)`", re.MULTILINE)


def pages():
    for folder, subfolders, files in os.walk(ROOT):
        subfolders[:] = sorted(set(subfolders) - SKIPPED)
        yield from (Path(folder) / name for name in sorted(files) if name.endswith(".md"))


def without_code(text: str) -> str:
    """Blanks out fenced blocks, keeping line numbers."""
    return FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def anchor_of(heading: str) -> str:
    """GitHub's rule: lower case, punctuation dropped, blanks to dashes."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", lambda m: m[1] or "", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def link_problem(page: Path, target: str) -> str | None:
    if re.match(r"[a-z]+:", target):
        return None
    name, _, anchor = unquote(target).partition("#")
    path = (page.parent / name).resolve() if name else page
    if not path.is_relative_to(ROOT):
        return f"link '{target}' leaves the repository"
    if not path.exists():
        return f"link '{target}' leads nowhere: there is no {path.relative_to(ROOT)}"
    if anchor and path.suffix == ".md":
        if anchor not in {anchor_of(h) for h in HEADING.findall(without_code(path.read_text()))}:
            return f"link '{target}': {path.relative_to(ROOT)} has no heading '{anchor}'"
    return None


def exists_beside(page: Path, name: str) -> bool:
    return (ROOT / name).exists() or (page.parent / name).exists()


def page_problems(page: Path):
    text = without_code(page.read_text())
    where = page.relative_to(ROOT)
    for match in LINK.finditer(text):
        if problem := link_problem(page, match[1]):
            yield f"{where}:{line_of(text, match.start())}: {problem}"
    for match in NAMED_FILE.finditer(text):
        name = match[1]
        if not exists_beside(page, name):
            yield f"{where}:{line_of(text, match.start())}: names `{name}`, which does not exist"


def map_problems():
    """README's map names existing folders only, and every layer."""
    text = (ROOT / "README.md").read_text()
    named = MAP_ROW.findall(text)
    if not named:
        yield "README.md: the map of the tree was not found (rows that start with a folder in backticks)"
    for folder in named:
        if not (ROOT / folder).is_dir():
            yield f"README.md: the map names {folder}, which is not a folder"
    for layer in sorted(p.parent for p in (ROOT / "spyre").glob("*/CMakeLists.txt")):
        folder = f"{layer.relative_to(ROOT)}/"
        if folder not in named:
            yield f"README.md: the map does not name the layer {folder}"


def generated_problems():
    if importlib.util.find_spec("torch_spyre") is None:
        print("note: torch_spyre is not installed for this Python; generated pages were not compared", file=sys.stderr)
        return
    check = subprocess.run(
        [sys.executable, ROOT / "scripts" / "generate_docs.py", "--check"], capture_output=True, text=True
    )
    if check.returncode != 0:
        yield from (check.stdout.strip() or check.stderr.strip().splitlines()[-1]).splitlines()


def main() -> int:
    problems = [problem for page in pages() for problem in page_problems(page)]
    problems += [*map_problems(), *generated_problems()]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
