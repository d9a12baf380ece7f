"""What compiling costs, and how fast the result runs beside PyTorch on the CPU.

    python bench/compile_bench.py [--layers 1 4 40] [--hidden 4096] [--length 128] [--compile-tool PATH]

For each number of Granite layers: the time of torch.compile's first call, the part of it spent in the C++ compiler
(measured by `spyre-compile --timing` on the graph that was left in the cache), peak memory, and the time of a forward
pass on the card beside float32 eager on the CPU, turn by turn in the same run with the same threads. The card's result
is compared with the CPU's before a number is printed.
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="compile-bench-")

import torch
import torch_spyre  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent


def granite(layers: int, hidden: int):
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
    return GraniteModel(config).eval()


def compiler_ms(tool: Path, graph: Path) -> float:
    done = subprocess.run([tool, graph, "--timing"], capture_output=True, text=True, check=True)
    return sum(float(ms) for ms in re.findall(r"([\d.]+) ms", done.stderr))


def measure(layers: int, hidden: int, length: int, rounds: int, tool: Path) -> None:
    model = granite(layers, hidden)
    ids = torch.randint(0, 1024, (1, length))
    with torch.no_grad():
        expected = model(ids, use_cache=False).last_hidden_state
        card = granite(layers, hidden).half().to("spyre")
        run = torch.compile(card)
        on_card = ids.to("spyre")
        before = set(Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).glob("inductor-spyre/*/graph.ir"))
        start = time.perf_counter()
        found = run(on_card, use_cache=False).last_hidden_state
        torch.spyre.synchronize()
        first = time.perf_counter() - start
        graphs = set(Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).glob("inductor-spyre/*/graph.ir")) - before
        error = ((found.cpu().float() - expected).pow(2).mean() / expected.pow(2).mean()).sqrt().item()
        assert error < 0.02, f"the card is off by {error:.3f} (normalised RMS)"
        cpu, spyre = [], []
        for _ in range(rounds):
            start = time.perf_counter()
            model(ids, use_cache=False)
            cpu.append(time.perf_counter() - start)
            start = time.perf_counter()
            run(on_card, use_cache=False)
            torch.spyre.synchronize()
            spyre.append(time.perf_counter() - start)
    inside = sum(compiler_ms(tool, graph) for graph in graphs) / 1000
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    ratio = statistics.median(c / s for c, s in zip(cpu, spyre, strict=True))
    print(
        f"{layers:>6} {first:>9.2f} {inside * 1000:>10.1f} {inside / first:>7.1%} {peak:>8.2f}"
        f" {statistics.median(spyre):>9.3f} {statistics.median(cpu):>9.3f} {ratio:>7.2f} {error:>8.4f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compile-tool", type=Path, default=ROOT / "build/editable/tools/spyre-compile")
    args = parser.parse_args()
    print(f"Granite, hidden {args.hidden}, {args.length} tokens, {torch.get_num_threads()} threads")
    print("layers first (s) C++ (ms)   share   GiB peak  card (s)   CPU (s)  ratio    error")
    for layers in args.layers:
        measure(layers, args.hidden, args.length, args.rounds, args.compile_tool)


if __name__ == "__main__":
    main()
