#!/usr/bin/env python3
"""Runs every benchmark of bench/, several times over, and writes the tables of bench/README.md.

    run_bench.py --quick                      every benchmark once, as small as it gets: do they run, are results right?
    run_bench.py [name ...]                   prints tables: median and spread of --runs 5
    run_bench.py --write [name ...]           the same, into bench/README.md, with machine and commit beside
    run_bench.py --busy ...                   processor time where a benchmark can, on a machine that others use

Every benchmark checks its results before it prints a number and fails where they are wrong, which fails this script.
Spread is the median absolute deviation of the runs; figures that are counted and not measured have none. Programs are
taken from --build (default: build/editable).
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "bench" / "README.md"

Rows = dict[str, dict[str, float]]  # case -> column -> value


def lines_like(pattern: str) -> Callable[[str], Rows]:
    """Rows of text: the group `case` is the label, every other named group a column (`a__b` is headed "a b")."""

    def parse(printed: str) -> Rows:
        rows: Rows = {}
        for match in re.finditer(pattern, printed, re.MULTILINE):
            values = {k.replace("__", " "): float(v) for k, v in match.groupdict().items() if k != "case" and v}
            rows[match["case"].strip()] = values
        return rows

    return parse


def google_benchmark(printed: str) -> Rows:
    rows: Rows = {}
    for entry in json.loads(printed[printed.index("{") :])["benchmarks"]:
        if entry.get("error_occurred"):
            raise SystemExit(f"{entry['name']}: {entry['error_message']}")
        scale = {"ns": 1e-3, "us": 1, "ms": 1e3}[entry["time_unit"]]
        rows[entry["name"]] = {"us": entry["real_time"] * scale}
        if "bytes_per_second" in entry:
            rows[entry["name"]]["GB/s"] = entry["bytes_per_second"] / 1e9
        if "ratio" in entry:
            rows[entry["name"]]["ratio"] = entry["ratio"]
    return rows


class Bench(NamedTuple):
    source: str  # in bench/
    rows: Callable[[str], Rows]
    full: str = ""
    quick: str = ""
    busy: str = ""  # what measures on a machine that others use: processor time

    @property
    def name(self) -> str:
        return self.source.split(".")[0]


NUMBER = r"[-+]?[\d.]+(?:e[-+]?\d+)?"
GOOGLE = "--benchmark_format=json"
BENCHES = [
    Bench(
        "checker_bench.cpp",
        lines_like(
            rf"^(?P<case>.+?) +interpreter +(?P<interpreter__ms>{NUMBER}) ms +checker +(?P<checker__ms>{NUMBER})"
        ),
        "3",
        "1",
    ),
    Bench("convert_bench.cpp", google_benchmark, GOOGLE, f"{GOOGLE} --benchmark_min_time=0.01"),
    Bench(
        "transfer_bench.cpp",
        lines_like(rf"^(?P<case>\S.*?) +(?P<GBps>{NUMBER}) +(?P<copy__GBps>{NUMBER}) +(?P<ratio>{NUMBER})$"),
        "--mib 256 --rounds 5",
        "--mib 8 --rounds 1",
    ),
    Bench(
        "exec_bench.cpp",
        lines_like(rf'^{{.*"case": ?"(?P<case>\w+)".*"seconds": ?(?P<seconds>{NUMBER})'),
        "--json --rounds 5",
        "--json --rounds 1 --case softmax",
    ),
    Bench(
        "exec_vs_torch.py",
        lines_like(
            rf"^(?P<case>\w+) +card +(?P<card__ms>{NUMBER}) ms +torch +(?P<PyTorch__ms>{NUMBER}) ms"
            rf".*ratio +(?P<ratio>{NUMBER})"
        ),
        "--rounds 9",
        "--rounds 1 softmax",
        "--threads 1 --cpu",
    ),
    Bench("runtime_bench.cpp", google_benchmark, GOOGLE, f"{GOOGLE} --benchmark_min_time=0.01"),
    Bench("launch_bench.cpp", google_benchmark, GOOGLE, f"{GOOGLE} --benchmark_min_time=0.01"),
    Bench(
        "lx_traffic.cpp",
        lines_like(
            rf"^(?P<case>\w+) +(?P<without__LX>{NUMBER}) +(?P<separate>{NUMBER}) +(?P<joint>{NUMBER})"
            rf" +(?P<any__order>{NUMBER}) +(?P<compulsory>{NUMBER})"
            rf" +(?P<ratio>{NUMBER}) +{NUMBER} +(?P<plan__ms>{NUMBER})$"
        ),
    ),
    Bench(
        "timing_bench.cpp",
        lines_like(
            rf"^(?P<case>\w+) +(?P<plans>\d+) +(?P<simulated__us>{NUMBER}) +(?P<estimated__us>{NUMBER})"
            rf" +(?P<error__percent>{NUMBER}) +(?P<rank>{NUMBER}) +(?P<timed__ms>{NUMBER})$"
        ),
        "",
        "--corpus tests/corpus/graphs",
    ),
    Bench(
        "solve_bench.cpp",
        lines_like(
            rf"^ *(?P<case>\S+\.csv|\d+ \S+) +(?:\d+ +(?P<placed>\d+)|"
            rf"(?P<saved__percent>{NUMBER})% +(?P<gap__percent>{NUMBER})% +(?:yes|no)) +(?P<ms>{NUMBER}) \+-"
        ),
        "--rounds 1 --largest 1000",
        "--rounds 1 --largest 100 --budget 1000000",
    ),
    Bench(
        "compile_bench.py",
        lines_like(
            rf"^ *(?P<case>\d+x\d+x\d+) +(?P<first__call__s>{NUMBER}) +(?P<compiler__ms>{NUMBER}) +{NUMBER}%"
            rf" +(?P<GiB>{NUMBER}) +(?P<card__s>{NUMBER}) +(?P<CPU__s>{NUMBER}) +(?P<ratio>{NUMBER})"
        ),
        "",
        "--rounds 1 1x256x32",
        "--threads 1 --cpu",
    ),
    Bench(
        "start_bench.py",
        lines_like(
            rf"^ *(?P<case>\d+ \w+) +(?P<clock__s>{NUMBER}) +(?P<cpu__s>{NUMBER}) +(?P<import__s>{NUMBER})"
            rf" +(?P<model__s>{NUMBER}) +(?P<load__s>{NUMBER}) +(?P<token__s>{NUMBER}) +(?P<compiled>\d+)"
        ),
        "--layers 4 40 --rounds 1",
        "--layers 1 --hidden 256 --rounds 1",
    ),
    Bench(
        "models.py",
        lines_like(
            rf"^(?P<case>[a-z][\w.]*-[\w.-]+) +(?P<weights__GiB>{NUMBER}) +(?P<peak__GiB>{NUMBER}) +{NUMBER}"
            rf" +(?P<made__s>{NUMBER}) +(?P<compiled>\d+) +(?P<first__s>{NUMBER}) +(?P<prefill__s>{NUMBER})"
            rf" +(?P<prefill__ratio>{NUMBER}) +(?P<token__s>{NUMBER}) +(?P<token__ratio>{NUMBER}) +(?P<error>{NUMBER})"
            rf" +(?P<fallbacks>\d+) +(?P<interpreted>\d+)$"
        ),
        "--layers 2 --hidden 512",
        "granite-3.3-8b --layers 1 --hidden 256 --tokens 16 --new 2",
    ),
    Bench(
        "eager_bench.py",
        lines_like(
            rf"^(?P<case>[a-z]\w*) +(?P<first__call__ms>{NUMBER}) \+- ?{NUMBER}ms +{NUMBER}x"
            rf" +(?P<repeated__us>{NUMBER})us +(?P<execution__us>{NUMBER})us"
        ),
        "",
        "--rounds 3 --shapes 3",
        "--cpu",
    ),
    Bench(
        "numerics.py",
        lines_like(
            rf"^torch.(?P<case>\w+ mean \d+): layer_norm (?P<layer_norm>{NUMBER}), var (?P<var>{NUMBER}),"
            rf" batch_norm (?P<batch_norm>{NUMBER})$"
        ),
    ),
]


def arguments_of(bench: Bench, quick: bool, busy: bool) -> str:
    return " ".join(filter(None, [bench.quick or bench.full if quick else bench.full, bench.busy if busy else ""]))


def run_once(bench: Bench, build: Path, given: str) -> Rows:
    arguments = given.split()
    if bench.source.endswith(".py"):
        command = [sys.executable, str(ROOT / "bench" / bench.source), *arguments]
        if bench.name == "exec_vs_torch":
            command += ["--bench", str(build / "bench" / "exec_bench")]
        if bench.name == "compile_bench":
            command += ["--compile-tool", str(build / "tools" / "spyre-compile")]
    else:
        command = [str(build / "bench" / bench.name), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0 or "WRONG ANSWER" in done.stdout:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    rows = bench.rows(done.stdout)
    if not rows:
        raise SystemExit(f"{' '.join(command)} printed no row that this script knows:\n{done.stdout[-2000:]}")
    return rows


def cell(values: list[float]) -> str:
    middle = statistics.median(values)
    spread = statistics.median(abs(v - middle) for v in values)
    digits = 0 if abs(middle) >= 1000 else 1 if abs(middle) >= 100 else 2 if abs(middle) >= 1 else 3
    text = f"{middle:,.{digits}f}"
    return f"{text} +- {spread:.{digits}f}" if len(values) > 1 and spread > 0 else text


def table(runs: list[Rows]) -> str:
    columns = list(dict.fromkeys(column for row in runs[0].values() for column in row))
    heads = [column.replace("GBps", "GB/s") for column in columns]
    lines = ["| case | " + " | ".join(heads) + " |", "|---|" + "--:|" * len(columns)]
    for case in runs[0]:
        cells = [cell([run[case][c] for run in runs if c in run.get(case, {})] or [0]) for c in columns]
        shown = [text if c in runs[0][case] else "" for c, text in zip(columns, cells, strict=True)]
        lines.append(f"| `{case}` | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def machine() -> str:
    """The processor, and how busy others kept it: figures of a loaded machine say less."""
    model = platform.processor() or platform.machine()
    if (cpuinfo := Path("/proc/cpuinfo")).exists() and (
        found := re.search(r"model name\s*: (.*)", cpuinfo.read_text())
    ):
        model = found[1]
    return f"{len(os.sched_getaffinity(0))} CPUs of {model}, load {os.getloadavg()[0]:.1f} before the runs"


def commit() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "*.cpp", "*.h", "*.def", "*.py")
    return git("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")


def section(bench: Bench, runs: list[Rows], where: str, arguments: str) -> str:
    counted = "once" if len(runs) == 1 else f"median +- spread of {len(runs)} runs"
    return (
        f"<!-- begin:{bench.name} -->\n`{bench.name} {arguments}".rstrip()
        + f"`: {counted}; {where}\n\n{table(runs)}\n<!-- end:{bench.name} -->"
    )


def places(page: str) -> list[str]:
    """Benchmarks whose table the page shows."""
    return re.findall(r"<!-- begin:(\w+) -->", page)


def rewritten(page: str, sections: dict[str, str]) -> str:
    for name, text in sections.items():
        pattern = rf"<!-- begin:{name} -->.*?<!-- end:{name} -->"
        page = re.sub(pattern, lambda _, t=text: t, page, flags=re.DOTALL)
    return page


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="default: all")
    parser.add_argument("--quick", action="store_true", help="each once, with the smallest settings")
    parser.add_argument(
        "--busy", action="store_true", help="processor time where a benchmark can: others use the machine"
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="into bench/README.md")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "editable")
    options = parser.parse_args()
    known = {bench.name: bench for bench in BENCHES}
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    if options.write:
        shown = places(PAGE.read_text())
        if missing := [name for name in options.names if name not in shown]:
            parser.error(f"bench/README.md has no place for {', '.join(missing)}; it shows {', '.join(shown)}")
        options.names = options.names or shown
    where = f"{machine()}; commit {commit()}"
    sections = {}
    for bench in [known[name] for name in options.names] or BENCHES:
        arguments = arguments_of(bench, options.quick, options.busy)
        runs = [
            run_once(bench, options.build.resolve(), arguments) for _ in range(1 if options.quick else options.runs)
        ]
        sections[bench.name] = section(bench, runs, where, arguments)
        print(f"{bench.name}: {len(runs[0])} cases" if options.quick else sections[bench.name] + "\n", flush=True)
    if options.write:
        PAGE.write_text(rewritten(PAGE.read_text(), sections))
        print("wrote bench/README.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
