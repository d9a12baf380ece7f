"""What compiling costs, and how fast the result runs beside PyTorch on the CPU.

    python bench/compile_bench.py [--threads 2] [--cpu] [--compile-tool PATH] [LAYERSxHIDDENxTOKENS ...]

For each Granite: the time of torch.compile's first call, the part of it spent in the C++ compiler (measured by
`spyre-compile --timing` on the graph that was left in the cache), peak memory, and the time of a forward pass on the
card beside eager PyTorch on the CPU in a process of its own, turn by turn with the same threads: in float32, and for
one token, which is a decode, in the dtype that is fastest there. The card's result is compared with the CPU's before a
number is printed. On a machine that others use, `--threads 1 --cpu` compares processor time.

Goals: 1.0, and 0.5 below a hidden size of 4096; what misses its goal is marked.
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="compile-bench-")

import torch
from exec_vs_torch import Yardstick, seconds, serve

ROOT = Path(__file__).resolve().parent.parent


class Case(NamedTuple):
    layers: int
    hidden: int
    tokens: int

    @classmethod
    def read(cls, text: str) -> "Case":
        return cls(*(int(part) for part in text.split("x")))

    def ids(self):
        return torch.arange(self.tokens)[None] * 37 % 1024

    def goal(self) -> float:
        return 1.0 if self.hidden >= 4096 else 0.5


def granite(layers: int, hidden: int, dtype=torch.float32):
    from transformers import GraniteConfig, GraniteModel

    torch.manual_seed(0)
    config = GraniteConfig(
        hidden_size=hidden,
        intermediate_size=hidden * 25 // 8 // 64 * 64,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 128,
        num_key_value_heads=max(hidden // 512, 1),
        vocab_size=1024,
        attention_multiplier=1 / 128,
    )
    return GraniteModel(config).eval().to(dtype)


def cpu_works(case: Case):
    """What the yardstick may run. Weights are read from memory once for a single token: fewer bytes may be faster."""

    def work(dtype):
        model = granite(case.layers, case.hidden, dtype)
        return lambda: model(case.ids(), use_cache=False)

    dtypes = [torch.float32] if case.tokens > 1 else [torch.float32, torch.bfloat16, torch.float16]
    return [work(dtype) for dtype in dtypes]


def compiler_ms(tool: Path, graph: Path) -> float:
    done = subprocess.run([tool, graph, "--timing"], capture_output=True, text=True, check=True)
    return sum(float(ms) for ms in re.findall(r"([\d.]+) ms", done.stderr))


def graphs_in_cache() -> set[Path]:
    return set(Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).glob("inductor-spyre/*/graph.ir"))


@torch.no_grad()
def measure(name: str, yardstick: Yardstick, rounds: int, tool: Path, clock) -> None:
    case = Case.read(name)
    ids = case.ids()
    expected = granite(case.layers, case.hidden)(ids, use_cache=False).last_hidden_state
    card = granite(case.layers, case.hidden).half().to("spyre")
    run = torch.compile(card, dynamic=False)
    on_card = ids.to("spyre")

    def forward():
        found = run(on_card, use_cache=False).last_hidden_state
        torch.spyre.synchronize()
        return found

    before = graphs_in_cache()
    start = time.perf_counter()
    found = forward()
    first = time.perf_counter() - start
    graphs = graphs_in_cache() - before
    error = ((found.cpu().float() - expected).pow(2).mean() / expected.pow(2).mean()).sqrt().item()
    assert error < 0.02, f"the card is off by {error:.3f} (normalised RMS)"
    yardstick.seconds(name)
    cpu, spyre = [], []
    for _ in range(rounds):
        cpu.append(yardstick.seconds(name))
        spyre.append(seconds(forward, clock))
    inside = sum(compiler_ms(tool, graph) for graph in graphs) / 1000
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    ratio = statistics.median(c / s for c, s in zip(cpu, spyre, strict=True))
    print(
        f"{name:>10} {first:>9.2f} {inside * 1000:>10.1f} {inside / first:>7.1%} {peak:>8.2f}"
        f" {statistics.median(spyre):>9.4f} {statistics.median(cpu):>9.4f} {ratio:>7.2f} {error:>8.4f}"
        f"{'' if ratio >= case.goal() else f' missed {case.goal()}'}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--cpu", action="store_true", help="processor time instead of wall time")
    parser.add_argument("--serve", action="store_true", help="be PyTorch's process: cases on stdin, seconds on stdout")
    parser.add_argument("--compile-tool", type=Path, default=ROOT / "build/editable/tools/spyre-compile")
    parser.add_argument("cases", nargs="*", default=["1x512x128", "4x512x128", "1x4096x128", "1x4096x512", "1x4096x1"])
    args = parser.parse_args()
    clock = time.process_time if args.cpu else time.perf_counter
    if args.serve:
        with torch.no_grad():
            return serve(args.threads, clock, lambda name: cpu_works(Case.read(name)))
    import torch_spyre._C as _C

    _C.set_num_threads(args.threads)
    settings = ["--serve", "--threads", str(args.threads)] + ["--cpu"] * args.cpu
    yardstick = Yardstick([sys.executable, __file__, *settings])
    print(f"Granite, {args.threads} threads, {'processor' if args.cpu else 'wall'} time")
    print("      case first (s)  C++ (ms)   share GiB peak  card (s)   CPU (s)   ratio    error")
    for name in args.cases:
        measure(name, yardstick, args.rounds, args.compile_tool, clock)


if __name__ == "__main__":
    main()
