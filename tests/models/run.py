"""One architecture, run one way on the card and judged by float32 on the CPU.

    python -m tests.models.run llama --mode generate --how eager --dtype float16

prints a JSON object: what ran on the CPU and why, what the emulated card has no fast code for, how far the numbers are
off, how long it took. Random numbers are drawn on the CPU by design, so the operators that draw them do not count.
"""

import argparse
import copy
import functools
import json
import os
import time
import warnings

import torch

from tests.models.architectures import BY_NAME

MODES = ("forward", "generate", "train", "loop")
WAYS, DTYPES = ("eager", "compiled"), ("float16", "bfloat16", "float32")
RANDOM = ("aten::native_dropout", "aten::bernoulli", "aten::rand")
#: Compiled, every length of the cache is compiled anew; the third is the first that PyTorch leaves open.
NEW_TOKENS = {"eager": 6, "compiled": 3}
STEPS = 20  # of a training loop


def modes_of(architecture) -> list[str]:
    return ["forward", *["generate"] * architecture.generates, *["train", "loop"] * bool(architecture.labels())]


def _on(device: str, dtype: torch.dtype, inputs: dict) -> dict:
    def moved(value):
        if not isinstance(value, torch.Tensor):
            return value
        return (value.to(dtype) if value.is_floating_point() else value).to(device)

    return {name: moved(value) for name, value in inputs.items()}


def _forward(model, inputs) -> dict[str, torch.Tensor]:
    with torch.no_grad():
        out = model(**inputs)
    return {"result": out[0]}


def _generate(model, inputs, tokens: int) -> dict[str, torch.Tensor]:
    inputs = {k: v for k, v in inputs.items() if k != "decoder_input_ids"}
    with torch.no_grad():
        out = model.generate(**inputs, max_new_tokens=tokens, do_sample=False, return_dict_in_generate=True,
                             output_logits=True)  # fmt: skip
    return {"tokens": out.sequences, "logits": torch.stack(out.logits, 1)}


def _in_training(model):
    """Dropout would draw other numbers than the judge's; everything else is as in training."""
    model.train()
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, float) and (
                name.endswith(("dropout", "layerdrop")) or isinstance(module, torch.nn.Dropout)
            ):
                setattr(module, name, 0.0)
    return model


def _train(model, inputs) -> dict[str, torch.Tensor]:
    model = _in_training(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss = model(**inputs).loss
    loss.backward()
    optimizer.step()
    largest = max((p for p in model.parameters() if p.grad is not None), key=lambda p: p.numel())
    return {"loss": loss.detach(), "gradient": largest.grad}


def _loop(model, inputs) -> dict[str, torch.Tensor]:
    model = _in_training(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(**inputs).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return {"losses": torch.stack(losses)}


def _distance(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Root mean square of the difference, relative to that of what is expected."""
    found, expected = found.float().cpu(), expected.float().cpu()
    if not torch.isfinite(found).all() and torch.isfinite(expected).all():
        return float("inf")
    kept = torch.isfinite(expected) & torch.isfinite(found)
    difference = (found - expected)[kept].square().mean().sqrt()
    return float(difference / expected[kept].square().mean().sqrt().clamp_min(1e-12))


def _until_they_differ(found: dict, expected: dict) -> tuple[dict, dict]:
    """Both with the logits of each text up to the first token that is another one: from there on the inputs are others,
    too. How far they are off there says whether the two candidates were as good as equal."""
    steps = min(found["logits"].shape[1], expected["logits"].shape[1])

    def new(run: dict) -> torch.Tensor:
        return run["tokens"][:, run["tokens"].shape[1] - run["logits"].shape[1] :][:, :steps].cpu()

    same = new(found) == new(expected)
    same_before = torch.cat([torch.ones_like(same[:, :1]), same.cumprod(1)[:, :-1].bool()], 1)
    wanted = expected["logits"][:, :steps]
    logits = torch.where(same_before[..., None], found["logits"][:, :steps].float().cpu(), wanted)
    return {**found, "logits": logits}, {**expected, "logits": wanted}


def _margins(found: dict, expected: dict) -> list[float]:
    """For each text, where the first other token is chosen: by how much float32 prefers its own, in units of the mean
    error of the logits there. Up to about 3 the two are a tie, which any rounding decides."""
    margins = []
    steps = min(found["logits"].shape[1], expected["logits"].shape[1])
    for mine, logits, theirs, wanted in zip(
        found["tokens"].cpu(), found["logits"].float().cpu(), expected["tokens"], expected["logits"], strict=True
    ):
        mine, theirs = (tokens[-logits.shape[0] :][:steps] for tokens in (mine, theirs))
        if not torch.equal(mine, theirs):
            at = int((mine != theirs).nonzero()[0])
            error = (logits[at] - wanted[at]).square().mean().sqrt()
            margins.append(float((wanted[at, theirs[at]] - wanted[at, mine[at]]) / error))
    return margins


def run(name: str, mode: str, how: str, dtype: str) -> dict:
    architecture = BY_NAME[name]
    generate = functools.partial(_generate, tokens=NEW_TOKENS[how])
    do = {"forward": _forward, "generate": generate, "train": _train, "loop": _loop}[mode]
    inputs = {**architecture.inputs(), **(architecture.labels() if mode in ("train", "loop") else {})}
    if mode in ("train", "loop"):
        inputs = {k: v for k, v in inputs.items() if k != "decoder_input_ids"}
    model = architecture.build()
    expected = do(copy.deepcopy(model), _on("cpu", torch.float32, inputs))

    number = getattr(torch, dtype)
    model = model.to(number).to("spyre")
    inputs = _on("spyre", number, inputs)
    if how == "compiled":
        model.forward = torch.compile(model.forward)
    torch.spyre.reset_metrics()
    start = time.perf_counter()
    found = do(model, inputs)
    seconds = time.perf_counter() - start
    torch.spyre.synchronize()
    metrics = torch.spyre.metrics()
    fallbacks = {op: entry for op, entry in metrics["fallbacks"].items() if not op.startswith(RANDOM)}
    same = {k: torch.equal(found[k].cpu(), expected[k]) for k in found if k == "tokens"}
    margins = _margins(found, expected) if mode == "generate" else []
    if mode == "generate":
        found, expected = _until_they_differ(found, expected)
    return {
        "name": name, "mode": mode, "how": how, "dtype": dtype, "seconds": round(seconds, 2),
        "fallbacks": {op: {"calls": e["calls"], "reasons": e["reasons"]} for op, e in fallbacks.items()},
        "interpreted": metrics["interpreted_ops"],
        "error": {k: _distance(found[k], expected[k]) for k in found if k != "tokens"},
        **({"same_tokens": same["tokens"], "margins": margins} if same else {}),
        **({"losses": found["losses"].tolist()} if mode == "loop" else {}),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=sorted(BY_NAME))
    parser.add_argument("--mode", choices=MODES, default="forward")
    parser.add_argument("--how", choices=WAYS, default="eager")
    parser.add_argument("--dtype", choices=DTYPES, default="float16")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    print(json.dumps(run(args.name, args.mode, args.how, args.dtype)))


if __name__ == "__main__":
    main()
