#!/usr/bin/env python3
"""Compiles graphs with two builds and says which artifacts differ: a change that means to alter nothing shows it so.

    python scripts/compare_artifacts.py main HEAD                     two commits, built here and there
    python scripts/compare_artifacts.py build/before build/dev        two folders with built tools
    python scripts/compare_artifacts.py main build/dev tests/corpus/layers models/graphs --settings default

Every graph (.ir) of tests/corpus, or of the files and folders named, is compiled by both under several settings. The
files of the bundle, the plan that `spyre-plan` prints and, where a graph is refused, the message are compared byte for
byte.

Exit codes: 0 all the same, 1 something differs, 2 a build is missing or fails.
"""

import argparse
import contextlib
import filecmp
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("spyre-compile", "spyre-plan")

# Each setting takes another way through the compiler; small scratchpads make for spills, evictions and other orders.
SETTINGS = {
    "default": {},
    "one core": {"SENCORES": "1"},
    "four cores": {"SENCORES": "4"},
    "an eighth of LX": {"DXP_LX_FRAC_AVAIL": "0.875"},
    "a hundredth of LX": {"DXP_LX_FRAC_AVAIL": "0.99"},
    "sums in any order": {"SPYRE_KEEP_SUM_ORDER": "0"},
    "no copies at the boundary": {"LX_BOUNDARY_CLONES": "0", "DXP_LX_FRAC_AVAIL": "0.875"},
    "no ring, no eviction": {"SPYRE_LX_PLANNER_RELAYOUT": "0", "SPYRE_LX_PLANNER_EVICTION": "0"},
    "many bundles": {"SPYRE_BUNDLE_OPS": "3"},
    "many bundles, wiped between": {"SPYRE_BUNDLE_OPS": "3", "SPYRE_NON_TERMINAL": "0"},
    "divisions first": {"CO_OPTIMIZING_LX_PLANNING": "0", "SPYRE_LX_PLANNER_REORDER": "0"},
    "no LX": {"LX_PLANNING": "0"},
}


class Case(NamedTuple):
    graph: Path
    setting: str


class CannotBuild(Exception):
    pass


def tools_in(folder: Path) -> Path | None:
    """The folder that holds the programs: the one named, or its `tools`."""
    for place in (folder, folder / "tools"):
        if all((place / tool).is_file() for tool in TOOLS):
            return place.resolve()
    return None


def run(command: list[str], **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, **options)


def build_commit(commit: str, folder: Path) -> Path:
    """The tools of a commit, built in a checkout of its own that goes away afterwards."""
    source, build = folder / "source", folder / "build"
    steps = [
        ["git", "-C", str(ROOT), "worktree", "add", "--detach", str(source), commit],
        ["cmake", "-S", str(source), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
         "-DSPYRE_BUILD_TESTS=OFF", "-DSPYRE_BUILD_BENCH=OFF"],
        ["cmake", "--build", str(build), "--target", *TOOLS],
    ]  # fmt: skip
    try:
        for step in steps:
            done = run(step)
            if done.returncode != 0:
                raise CannotBuild(f"{commit}: `{' '.join(step)}` failed\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    finally:
        run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(source)])
    return build / "tools"


@contextlib.contextmanager
def tools_of(name: str) -> Iterator[Path]:
    if Path(name).is_dir():
        tools = tools_in(Path(name))
        if tools is None:
            raise CannotBuild(f"{name}: neither it nor its folder 'tools' has {' and '.join(TOOLS)}")
        yield tools
        return
    if run(["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", name + "^{commit}"]).returncode != 0:
        raise CannotBuild(f"'{name}' is neither a folder nor a commit")
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        print(f"building {name} ...", file=sys.stderr, flush=True)
        yield build_commit(name, Path(folder))


def compile_with(tools: Path, case: Case, folder: Path) -> None:
    """Leaves all there is to compare in the folder: the bundle, the plan, what was said."""
    settings = SETTINGS[case.setting]
    environment = {k: v for k, v in os.environ.items() if not any(k in known for known in SETTINGS.values())} | settings
    done = run([str(tools / "spyre-compile"), str(case.graph), "-o", str(folder / "bundle")], env=environment)
    (folder / "compile.txt").write_text(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    if done.returncode == 0 and settings.get("LX_PLANNING") != "0":
        done = run([str(tools / "spyre-plan"), str(case.graph), "--json"], env=environment)
        (folder / "plan.txt").write_text(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")


def files_under(folder: Path) -> set[Path]:
    return {p.relative_to(folder) for p in folder.rglob("*") if p.is_file()}


def differences(case: Case, before: Path, after: Path) -> tuple[int, list[str]]:
    """How many files were compared, and those that differ."""
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        old, new = Path(folder) / "before", Path(folder) / "after"
        for tools, place in ((before, old), (after, new)):
            place.mkdir()
            compile_with(tools, case, place)
        names = files_under(old) | files_under(new)
        differ = [n for n in names if not (old / n).exists() or not (new / n).exists()]
        differ += [n for n in names - set(differ) if not filecmp.cmp(old / n, new / n, shallow=False)]
        return len(names), sorted(str(n) for n in differ)


def graphs_of(paths: list[Path]) -> list[Path]:
    graphs = []
    for path in paths:
        graphs += sorted(path.rglob("*.ir")) if path.is_dir() else [path]
    return graphs


def compare(cases: list[Case], before: Path, after: Path, jobs: int) -> int:
    started, compared, different = time.monotonic(), 0, 0
    with ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda case: differences(case, before, after), cases)
        for done, (case, (count, differ)) in enumerate(zip(cases, results, strict=True), 1):
            compared += count
            if differ:
                different += 1
                shown = ", ".join(differ[:5]) + (f" and {len(differ) - 5} more" if len(differ) > 5 else "")
                print(f"differs: {case.graph} ({case.setting}): {shown}", flush=True)
            if sys.stderr.isatty():
                print(f"\r{done} of {len(cases)}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r", end="", file=sys.stderr)
    seconds = time.monotonic() - started
    verdict = f"{different} of {len(cases)} compilations differ" if different else "all the same"
    print(f"{compared} files of {len(cases)} compilations compared in {seconds:.0f} s: {verdict}")
    return 1 if different else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="a commit, or a folder with built tools")
    parser.add_argument("after", help="the same for the other side")
    parser.add_argument(
        "graphs", nargs="*", type=Path, default=[ROOT / "tests/corpus"], help="graphs, or folders of them"
    )
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS), help="which settings to try")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many graphs at a time")
    arguments = parser.parse_args()
    graphs = graphs_of(arguments.graphs)
    missing = [str(graph) for graph in graphs if not graph.is_file()]
    if missing or not graphs:
        print(f"no graphs: {', '.join(missing) or ', '.join(map(str, arguments.graphs))}", file=sys.stderr)
        return 2
    cases = [Case(graph, setting) for setting in arguments.settings for graph in graphs]
    try:
        with tools_of(arguments.before) as before, tools_of(arguments.after) as after:
            return compare(cases, before, after, arguments.jobs)
    except CannotBuild as problem:
        print(problem, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
