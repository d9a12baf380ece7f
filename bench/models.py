"""Whole models of real size: made on the card without a second copy, compiled, run, and judged by the CPU.

    python bench/models.py [granite-3.3-8b ...] [--layers 2] [--hidden 512] [--tokens 128] [--new 8]
                           [--dtype float16] [--cache static] [--checkpoint FOLDER]

The models of model_configs.json, with weights from a seed; `--layers` and `--hidden` make them small. With
`--checkpoint` they are written into that folder first (sharded safetensors) and read from there. Each model runs
in a process of its own: a prompt of `--tokens` and `--new` tokens decoded greedily after its first, by `generate()`
with a compiled forward, twice. Then another process computes the text that came out in float32 on the CPU, module
by module, so that neither holds the model twice; logits must agree, and every token must be the judge's choice but for
ties within the error, or the run fails:

    GiB          the weights; peak of the card's process (VmHWM) beside them, and its ratio, which may be 1.15
    made s       until all weights were on the card
    compiled     how many times Dynamo compiled, and the seconds the first text took beyond the second
    prefill s    the prompt, second text; ratio: float32 on the CPU to it
    token s      a decoded token, second text; ratio: the products alone in float32 on the CPU to it
    error        of all logits, relative root mean square
    CPU, interpreted   operators that left the card; executes without fast code: both must be 0
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = json.loads(Path(__file__).with_name("model_configs.json").read_text())
LARGEST_PEAK = 1.15  # times the weights


def config_of(name: str, layers: int | None, hidden: int | None):
    from transformers import AutoConfig

    sizes = {key: value for key, value in CONFIGS[name].items() if key != "source"}
    if layers:
        sizes["num_hidden_layers"] = layers
    if hidden:
        scale = hidden / sizes["hidden_size"]
        heads = max(hidden // 128, 2)
        groups = sizes["num_attention_heads"] // sizes["num_key_value_heads"]
        sizes |= {
            "hidden_size": hidden, "intermediate_size": int(sizes["intermediate_size"] * scale) // 64 * 64,
            "num_attention_heads": heads, "num_key_value_heads": max(heads // groups, 1), "vocab_size": 1024,
        }  # fmt: skip
    # No token ends a text: it is as long as was asked for.
    return AutoConfig.for_model(**sizes, bos_token_id=None, eos_token_id=None, pad_token_id=0)


def prompt_of(config, tokens: int):
    import torch

    return torch.randint(1, config.vocab_size, (1, tokens), generator=torch.Generator().manual_seed(1))


def peak_gib() -> float:
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 2**20


def weights_of(args, name: str, dtype):
    from tests.models import large

    return large.from_folder(args.checkpoint / name) if args.checkpoint else large.seeded(dtype)


def write_checkpoint(args, name: str, out: Path) -> None:
    import torch

    from tests.models import large

    config = config_of(name, args.layers, args.hidden)
    large.write_folder(args.checkpoint / name, config, large.seeded(getattr(torch, args.dtype)))


class Timed:
    """A forward whose calls are timed, each with the number of tokens it got."""

    def __init__(self, forward):
        self.forward, self.calls = forward, []

    def __call__(self, *args, **kwargs):
        import torch

        start = time.perf_counter()
        result = self.forward(*args, **kwargs)
        torch.spyre.synchronize()
        self.calls.append((kwargs["input_ids"].shape[1], time.perf_counter() - start))
        return result


def run_on_card(args, name: str, out: Path) -> None:
    import torch
    from torch_spyre import diagnostics

    from tests.models import large

    dtype = getattr(torch, args.dtype)
    config = config_of(name, args.layers, args.hidden)
    start = time.perf_counter()
    model = large.on_card(config, dtype, weights_of(args, name, dtype))
    torch.spyre.synchronize()
    made = time.perf_counter() - start
    peak_made = peak_gib()
    inside = torch.compile(model.forward)
    prompt = prompt_of(config, args.tokens)
    torch.spyre.reset_metrics()
    runs = []
    for _ in range(2):
        model.forward = Timed(inside)
        start = time.perf_counter()
        text = large.generate(model, prompt, args.new + 1, args.cache)
        runs.append({"seconds": time.perf_counter() - start, "calls": model.forward.calls})
    metrics = torch.spyre.metrics()
    torch.save({"tokens": text.tokens, "logits": text.logits}, out / "card.pt")
    facts = {
        "weights": sum(p.numel() * p.element_size() for p in model.parameters()) / 2**30,
        "made": made, "peak_made": peak_made, "peak": peak_gib(), "runs": runs,
        "compiled": len(diagnostics.compilations()), "report": diagnostics.compile_report(),
        "fallbacks": {op: entry["calls"] for op, entry in metrics["fallbacks"].items()},
        "interpreted": metrics["interpreted_ops"],
    }  # fmt: skip
    (out / "card.json").write_text(json.dumps(facts))


def run_judge(args, name: str, out: Path) -> None:
    import torch

    from tests.models import large

    dtype = getattr(torch, args.dtype)
    config = config_of(name, args.layers, args.hidden)
    text = large.Text(**torch.load(out / "card.pt"))
    found = large.judge(config, weights_of(args, name, dtype), text.tokens[:, :-1], args.new + 1)
    error, chosen = large.compare(text, found.logits)
    facts = {
        "seconds": found.seconds, "seconds_of_one": found.seconds_of_one, "peak": peak_gib(),
        "error": error, "allowed": large.tolerance(config, dtype), "chosen": chosen,
    }  # fmt: skip
    (out / "judge.json").write_text(json.dumps(facts))


def measure(args, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for part in (*["checkpoint"] * bool(args.checkpoint), "card", "judge"):
            command = [sys.executable, __file__, *sys.argv[1:], "--part", part, name, folder]
            env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(Path(folder, "cache"))}
            subprocess.run(command, check=True, cwd=ROOT, env=env)
        out = Path(folder)
        card, judge = (json.loads((out / f"{part}.json").read_text()) for part in ("card", "judge"))
    first, second = card["runs"]
    prefill, *decoded = (seconds for _, seconds in second["calls"])
    token = sorted(decoded)[len(decoded) // 2]
    print(
        f"{name:<15} {card['weights']:>6.2f} {card['peak']:>6.2f} {card['peak'] / card['weights']:>6.2f}"
        f" {card['made']:>7.1f} {card['compiled']:>9} {first['seconds'] - second['seconds']:>8.1f}"
        f" {prefill:>10.2f} {judge['seconds'] / prefill:>6.2f} {token:>8.3f} {judge['seconds_of_one'] / token:>6.2f}"
        f" {judge['error']:>8.4f} {sum(card['fallbacks'].values()):>4} {sum(card['interpreted'].values()):>12}",
        flush=True,
    )
    small = args.layers or args.hidden  # the interpreter alone is larger then
    wrong = [
        *[f"the card is off by {judge['error']:.4f}"] * (not judge["error"] < judge["allowed"]),
        *["a token is not the judge's"] * (not judge["chosen"]),
        *[f"left the card: {card['fallbacks']}"] * bool(card["fallbacks"]),
        *[f"interpreted: {card['interpreted']}"] * bool(card["interpreted"]),
        *["the peak is too large"] * (not small and card["peak"] > LARGEST_PEAK * card["weights"]),
    ]
    if wrong:
        sys.exit(f"WRONG ANSWER {name}: {'; '.join(wrong)}\n{card['report']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(CONFIGS)}; default: all")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--new", type=int, default=8)
    parser.add_argument("--dtype", choices=("float16", "bfloat16"), default="float16")
    parser.add_argument("--cache", choices=("static", "dynamic"), default="static")
    parser.add_argument("--checkpoint", type=Path, help="write the weights here, and read them from here")
    parser.add_argument("--part", nargs=3, help=argparse.SUPPRESS)  # which part, the model, a folder for results
    args = parser.parse_args()
    if unknown := set(args.names) - set(CONFIGS):
        parser.error(f"no model {', '.join(sorted(unknown))}; there are {', '.join(CONFIGS)}")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    warnings.filterwarnings("ignore")
    sys.path.insert(0, str(ROOT))
    if args.part:
        part, name, folder = args.part
        {"checkpoint": write_checkpoint, "card": run_on_card, "judge": run_judge}[part](args, name, Path(folder))
        return
    print(f"prompt of {args.tokens} tokens, {args.new} more, {args.dtype}, {args.cache} cache, {os.cpu_count()} CPUs")
    print("model              GiB   peak  ratio  made s  compiled  first s  prefill s  ratio  token s  ratio"
          "    error  CPU  interpreted")
    for name in args.names or CONFIGS:
        measure(args, name)


if __name__ == "__main__":
    main()
