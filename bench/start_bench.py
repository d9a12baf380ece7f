"""How long a process takes to the first token: with an empty cache, with a filled one, and with a package.

    python bench/start_bench.py [--layers 2 40] [--hidden 512] [--length 16] [--rounds 3] [--profile]

Each way is a process of its own that makes a Granite of seeded weights and lets it predict one token; they take turns,
after one of each that fills the cache and writes the package. `clock` is seconds from the start of the process, `cpu`
its processor time, which says more on a busy machine; of that the parts: `import` of torch and transformers, `model` is
made and brought to the card, `load` of the package (or the call of torch.compile), `token`. Tokens of all ways are
compared. `--profile` prints where the package's process spends its time.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WAYS = ("cold", "cache", "package")
PARTS = ("import", "model", "load", "token")


def child(way: str, layers: int, hidden: int, length: int, package: str) -> None:
    marks = [0.0]
    import torch
    import torch_spyre
    from transformers import GraniteConfig, GraniteForCausalLM

    marks.append(time.process_time())
    torch.manual_seed(0)
    config = GraniteConfig(
        hidden_size=hidden,
        intermediate_size=hidden * 25 // 8 // 64 * 64,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 128,
        num_key_value_heads=max(hidden // 512, 1),
        vocab_size=1024,
        max_position_embeddings=256,
    )
    with torch.device("meta"):
        model = GraniteForCausalLM(config).half().eval()
    model.to_empty(device="cpu")
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, dtype=torch.float32).mul_(0.02).half()
    model.model.rotary_emb = type(model.model.rotary_emb)(config)  # its buffers are computed, not drawn
    model = model.to("spyre")
    ids = torch.arange(length)[None].to("spyre")
    marks.append(time.process_time())
    with torch.no_grad():
        if way == "package":
            model = torch_spyre.load(package, model)
        elif way == "save":
            with torch_spyre.packaging():
                model.forward = torch.compile(model.forward)
                model(ids, use_cache=False)
            torch_spyre.save(model, package)
        else:
            model.forward = torch.compile(model.forward)
        marks.append(time.process_time())
        token = int(model(ids, use_cache=False).logits[0, -1].cpu().argmax())
    marks.append(time.process_time())
    counted = torch.spyre.metrics()
    print(
        json.dumps(
            {
                "predicted": token,
                "clock": time.time() - float(os.environ["START_BENCH_BEGAN"]),
                "cpu": marks[-1],
                **{name: after - before for name, before, after in zip(PARTS, marks, marks[1:], strict=False)},
                "compiled": counted["graphs_compiled"],
            }
        )
    )


def run(way: str, arguments, cache: Path, package: Path) -> dict:
    command = [sys.executable, __file__, "--child", way, "--package", str(package)]
    command += ["--layers", str(arguments.layers[0]), "--hidden", str(arguments.hidden)]
    command += ["--length", str(arguments.length)]
    if arguments.profile and way == "package":
        command[1:1] = ["-m", "cProfile", "-s", "cumulative"]
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache), "TORCH_SPYRE_DOWNCAST_WARN": "0"}
    environment["START_BENCH_BEGAN"] = str(time.time())
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise SystemExit(done.stderr[-4000:])
    lines = done.stdout.splitlines()
    (number,) = [i for i, line in enumerate(lines) if line.startswith("{")]
    if arguments.profile and way == "package":
        print("\n".join(lines[number + 1 : number + 90]))
    return json.loads(lines[number])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 40])
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--child")
    parser.add_argument("--package")
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.layers[0], arguments.hidden, arguments.length, arguments.package)
        return
    print("layers way      clock s   cpu s  import   model    load   token compiled")
    for layers in arguments.layers:
        arguments.layers = [layers]
        with tempfile.TemporaryDirectory() as folder:
            cache, package = Path(folder) / "cache", Path(folder) / "package"
            found = {way: [] for way in WAYS}
            found["cold"].append(run("cold", arguments, cache, package))
            run("save", arguments, Path(folder) / "other", package)
            for number in range(arguments.rounds):
                if number > 0:
                    found["cold"].append(run("cold", arguments, Path(folder) / f"cold{number}", package))
                found["cache"].append(run("cache", arguments, cache, package))
                found["package"].append(run("package", arguments, Path(folder) / f"none{number}", package))
            if len({result["predicted"] for results in found.values() for result in results}) != 1:
                raise SystemExit(f"WRONG ANSWER: {found}")
            for way, results in found.items():
                median = {key: statistics.median(result[key] for result in results) for key in results[0]}
                numbers = " ".join(f"{median[key]:7.2f}" for key in ("clock", "cpu", *PARTS))
                print(f"{layers:6} {way:8}{numbers} {median['compiled']:8.0f}")


if __name__ == "__main__":
    main()
