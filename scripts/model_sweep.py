"""Runs the stock architectures of tests/models on the card, each in a process of its own, and says what left it.

    python scripts/model_sweep.py [--names llama bert] [--modes forward] [--ways eager] [--dtypes float16] [--json FILE]

One line per run: seconds, error against float32 on the CPU, operators that ran there. At the end the reasons, the most
frequent first. Exit code 1 when a run failed or left the card.
"""

import argparse
import collections
import json
import multiprocessing
import os
import re
import sys
import tempfile
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.models.architectures import ARCHITECTURES, BY_NAME  # noqa: E402
from tests.models.run import DTYPES, MODES, WAYS, modes_of  # noqa: E402

# A process of its own for each run, from one that has imported everything: importing takes longer than most runs.
_FROM = multiprocessing.get_context("forkserver")
_IMPORTED = [
    "torch._inductor.compile_fx", "torch_spyre", "transformers.modeling_utils", "transformers.generation.utils",
    "tests.models.run",
]  # fmt: skip


def _child(case: tuple[str, str, str, str], folder: str) -> None:
    """One run, its facts into a file: what it prints and how it ends are judged from outside."""
    from tests.models import run

    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
    sys.stdout = sys.stderr = open(Path(folder, "printed"), "w", buffering=1)  # noqa: SIM115 - until it ends
    warnings.filterwarnings("ignore")
    try:
        Path(folder, "facts.json").write_text(json.dumps(run.run(*case)))
    except BaseException:
        traceback.print_exc()
        raise


def run_one(case: tuple[str, str, str, str], limit: int) -> dict:
    facts = dict(zip(("name", "mode", "how", "dtype"), case, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        process = _FROM.Process(target=_child, args=(case, folder))
        process.start()
        process.join(limit)
        if process.exitcode is None:
            process.kill()
            process.join()
            return {**facts, "failed": f"no answer within {limit} s"}
        if process.exitcode == 0:
            return json.loads(Path(folder, "facts.json").read_text())
        printed = Path(folder, "printed").read_text()
    errors = re.findall(r"^[\w.]+(?:Error|Exception|Fault)\b.*", printed, re.M)
    last = (errors or printed.strip().splitlines() or [f"exit code {process.exitcode}"])[-1]
    return {**facts, "failed": last, "stderr": printed[-4000:]}


def line(result: dict) -> str:
    what = f"{result['name']:<12}{result['mode']:<9}{result['how']:<9}{result['dtype']:<9}"
    if "failed" in result:
        return f"{what} FAILED {result['failed'][:160]}"
    worst = max(result["error"].values(), default=0.0)
    calls = sum(entry["calls"] for entry in result["fallbacks"].values())
    tokens = {True: " same tokens", False: " OTHER TOKENS"}.get(result.get("same_tokens"), "")
    if margins := result.get("margins"):
        tokens += f" (by {max(margins):.2g} times the error)"
    operators = ", ".join(f"{op.removeprefix('aten::')} x{e['calls']}" for op, e in result["fallbacks"].items())
    if interpreted := result.get("interpreted"):
        operators += " interpreted: " + ", ".join(f"{op} x{n}" for op, n in interpreted.items())
    return f"{what}{result['seconds']:>7.1f} s  error {worst:.1e}{tokens}  {calls} on the CPU {operators}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", nargs="*", choices=sorted(BY_NAME), default=[a.name for a in ARCHITECTURES])
    parser.add_argument("--modes", nargs="*", choices=MODES, default=MODES)
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=WAYS)
    parser.add_argument("--dtypes", nargs="*", choices=DTYPES, default=DTYPES)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=int, default=300, help="seconds for one run")
    parser.add_argument("--json", type=Path, help="write every fact here")
    args = parser.parse_args()
    cases = [
        (name, mode, how, dtype)
        for dtype in args.dtypes for how in args.ways for mode in args.modes for name in args.names
        if mode in modes_of(BY_NAME[name])
    ]  # fmt: skip
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # workers would be started for nothing
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    _FROM.set_forkserver_preload(_IMPORTED)
    results = []
    with ThreadPoolExecutor(args.jobs) as pool:
        for result in pool.map(lambda case: run_one(case, args.limit), cases):
            results.append(result)
            print(f"[{len(results)}/{len(cases)}] {line(result)}", flush=True)
    reasons = collections.Counter()
    for result in results:
        for op, entry in result.get("fallbacks", {}).items():
            for reason, calls in entry["reasons"].items():
                reasons[f"{op}: {reason}"] += calls
    for reason, calls in reasons.most_common():
        print(f"{calls:>6} x {reason}")
    failed = [r for r in results if "failed" in r]
    left = [r for r in results if r.get("fallbacks")]
    whole = len(results) - len(failed) - len(left)
    print(f"{len(results)} runs: {whole} wholly on the card, {len(left)} with the CPU, {len(failed)} failed")
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    return 1 if failed or left else 0


if __name__ == "__main__":
    sys.exit(main())
