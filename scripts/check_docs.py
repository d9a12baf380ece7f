#!/usr/bin/env python3
"""Checks the documents against the tree: links, files named in backticks, pages that sources cite, README's map, what
READMEs say of their folders, generated pages.

Prints one line per problem and exits 1 if there is one. Needs nothing but Python. The generated pages are compared only
where torch_spyre can be imported; where it cannot, a line says so.
"""

import fnmatch
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = {".git", ".venv", "build", "dist", "node_modules", "__pycache__"}
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)>\s]+)>?[^)]*\)")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
# A path in backticks is checked when it starts at a folder of the root and has no placeholder in it.
NAMED_FILE = re.compile(r"`((?:spyre|glue|python|tools|tests|bench|docs|scripts|examples|cmake)/[\w./-]+)`")
CITED = re.compile(r"\b(docs/[\w/-]+\.md(?:#[\w-]+)?)")
CODE = re.compile(r"`([^`\n]+)`")
FILE_NAME = re.compile(r"[\w./*-]+")
# Folders whose READMEs list their files.
LAYER_FOLDERS = {"spyre", "glue", "python", "tools", "bench"}
SOURCES = (".h", ".cpp", ".def", ".py", ".inc")
TEST_ONLY = re.compile(r"_test\.cpp$|^test_\w+\.h$|_for_test\.h$")
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


def cited_problems():
    """Pages that comments of the sources name exist, and so do the sections."""
    for name in source_files():
        if not name.endswith(SOURCES):
            continue
        text = (ROOT / name).read_text()
        for match in CITED.finditer(text):
            if problem := link_problem(ROOT / "README.md", match[1]):
                yield f"{name}:{line_of(text, match.start())}: {problem}"


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


def source_files() -> list[str]:
    """Sources and READMEs, as paths from the root."""
    found = []
    for folder, subfolders, files in os.walk(ROOT):
        subfolders[:] = sorted(set(subfolders) - SKIPPED)
        here = Path(folder).relative_to(ROOT)
        found += [(here / name).as_posix() for name in files if name.endswith(SOURCES) or name == "README.md"]
    return sorted(found)


def stem_of(name: str) -> str:
    """What a header, its source and its test share."""
    return re.sub(r"(_test)?\.\w+$", "", name)


def folder_problems(readme: Path, files: list[str]):
    """A folder's README names every file of the folder, and no file that is not there.

    A name in backticks covers a file when it is the file's name, its stem (which a header, its source and its test
    share), a pattern such as `bindings_*.cpp`, or a folder around it (`division/`). Folders with a README of their own
    speak for themselves but are named. Tests, and what only tests include, lie beside what they test and need no row.
    """
    folder = readme.parent.relative_to(ROOT).as_posix() + "/"
    mine = [name.removeprefix(folder) for name in files if name.startswith(folder) and name != f"{folder}README.md"]
    own = {name.split("/README.md")[0] + "/" for name in mine if name.endswith("/README.md")}
    named = {name for quoted in CODE.findall(readme.read_text()) for name in FILE_NAME.findall(quoted)}
    named |= {link for link in LINK.findall(readme.read_text()) if not re.match(r"[a-z]+:|\.\./", link)}
    # A pass is named as on the command line, with dashes.
    stems = {stem_of(name).replace("-", "_") for name in named if "*" not in name}
    for file in mine:
        within = next((o for o in sorted(own) if file.startswith(o)), None)
        if within is not None:
            if within not in named and within.rstrip("/") not in named and f"{within}README.md" not in named:
                yield f"{folder}README.md: does not name the folder {within}"
                own.discard(within)
            continue
        base = file.rsplit("/", 1)[-1]
        if base in ("__init__.py", "README.md") or TEST_ONLY.search(base):
            continue
        parents = [file[: m.end()] for m in re.finditer("/", file)]
        covered = (
            {file, base, stem_of(file), stem_of(base)} & (named | stems)
            or set(parents) & named
            or any(fnmatch.fnmatch(file, n) or fnmatch.fnmatch(base, n) for n in named if "*" in n)
        )
        if not covered:
            yield f"{folder}README.md: does not name {file}"
    everything = {*mine, *(f.rsplit("/", 1)[-1] for f in files), *files}
    for name in sorted(named):
        if name.endswith(SOURCES) and "*" not in name and name not in everything:
            if not any(f.endswith("/" + name) for f in files):
                yield f"{folder}README.md: names {name}, which does not exist"


def readme_problems():
    files = source_files()
    for name in files:
        if name.endswith("/README.md") and name.split("/")[0] in LAYER_FOLDERS:
            yield from folder_problems(ROOT / name, files)


def generated_problems():
    if importlib.util.find_spec("torch_spyre") is None:
        print("note: torch_spyre is not installed for this Python; generated pages were not compared", file=sys.stderr)
        return
    check = subprocess.run(
        [sys.executable, ROOT / "scripts" / "generate_docs.py", "--check"], capture_output=True, text=True
    )
    if check.returncode != 0:
        yield from (check.stdout.strip() or check.stderr.strip().splitlines()[-1]).splitlines()


def problems() -> list[str]:
    of_pages = [problem for page in pages() for problem in page_problems(page)]
    return [*of_pages, *cited_problems(), *map_problems(), *readme_problems(), *generated_problems()]


def main() -> int:
    found = problems()
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
