"""Causal language models that fill the machine's memory: on the card once, and judged without being held again.

Weights come one at a time from a function of name and shape: drawn from a seed, or read from a checkpoint folder. On
the card every weight arrives before the next one is made. The judge is the same model in float32 on the CPU, whose
modules fetch their weights when they run and drop them afterwards, so it never holds more than the largest.
"""

import json
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

Weights = Callable[[str, torch.Size], torch.Tensor]

#: Numbers drawn at a time, in float32: an embedding drawn at once would take three times its place beside the card.
DRAWN = 2**22


def seeded(dtype: torch.dtype, seed: int = 0) -> Weights:
    """Weights that depend on the seed and their name alone; norms stay near one, as those of trained models do."""

    def weights(name: str, shape: torch.Size) -> torch.Tensor:
        generator = torch.Generator().manual_seed(zlib.crc32(f"{seed} {name}".encode()))
        mean = 1.0 if "norm" in name and len(shape) == 1 else 0.0
        made = torch.empty(shape, dtype=dtype)
        for part in made.view(-1).split(DRAWN):
            part.copy_(torch.empty(part.shape).normal_(0, 0.02, generator=generator).add_(mean))
        return made

    return weights


def from_folder(folder: Path) -> Weights:
    """The weights of a Hugging Face checkpoint: one safetensors file, or several and an index."""
    from safetensors import safe_open

    index = folder / "model.safetensors.index.json"
    where = json.loads(index.read_text())["weight_map"] if index.exists() else {}

    def weights(name: str, _: torch.Size) -> torch.Tensor:
        # Read, not mapped: pages of a mapped file count as resident for as long as it is open.
        with safe_open(folder / where.get(name, "model.safetensors"), framework="pt", backend="pread") as file:
            return file.get_tensor(name)

    return weights


def write_folder(folder: Path, config, weights: Weights, shard_bytes: int = 2**30) -> None:
    """A sharded checkpoint as Hugging Face writes it, one shard in memory at a time."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    config.save_pretrained(folder)
    shapes = {name: parameter.shape for name, parameter in on_meta(config, torch.float16).named_parameters()}
    shards: list[list[str]] = [[]]
    filled = 0
    for name, shape in shapes.items():
        filled += 2 * shape.numel()
        if shards[-1] and filled > shard_bytes:
            shards.append([])
            filled = 2 * shape.numel()
        shards[-1].append(name)
    where = {}
    for i, shard in enumerate(shards):
        file = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        save_file({name: weights(name, shapes[name]) for name in shard}, folder / file, {"format": "pt"})
        where |= dict.fromkeys(shard, file)
    index = {"metadata": {"total_size": 2 * sum(shape.numel() for shape in shapes.values())}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def on_meta(config, dtype: torch.dtype):
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config, dtype=dtype).eval()


def _compute_buffers(model: nn.Module, device: str) -> None:
    """Buffers are no part of a checkpoint: the model says what is in them."""
    for module in model.modules():
        if module._buffers:
            module.to_empty(device=device, recurse=False)
            model._init_weights(module)


def on_card(config, dtype: torch.dtype, weights: Weights):
    """The model on the card; besides it, the host holds one weight at a time."""
    model = on_meta(config, dtype).to_empty(device="spyre")
    _compute_buffers(model, "spyre")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights(name, parameter.shape))
    return model


@dataclass
class Text:
    tokens: torch.Tensor  # the prompt and what was generated
    logits: torch.Tensor  # of every generated token


def generate(model, prompt: torch.Tensor, new: int, cache: str) -> Text:
    """Tokens chosen greedily on the card, by ``generate`` with a cache of fixed length or with the default one."""
    fixed = {"cache_implementation": "static", "disable_compile": True} if cache == "static" else {}
    with torch.no_grad():
        out = model.generate(prompt.to("spyre"), attention_mask=torch.ones_like(prompt).to("spyre"), do_sample=False,
                             max_new_tokens=new, min_new_tokens=new, return_dict_in_generate=True,
                             output_logits=True, **fixed)  # fmt: skip
    return Text(out.sequences.cpu(), torch.stack(out.logits, 1).float().cpu())


def compare(card: Text, expected: torch.Tensor) -> tuple[float, bool]:
    """How far the card's logits are off (relative root mean square), and whether each token was the judge's choice,
    or as good as that within the error."""
    difference = card.logits - expected
    error = float(difference.square().mean().sqrt() / expected.square().mean().sqrt())
    chosen = card.tokens[:, -expected.shape[1] :]
    behind = expected.max(-1).values - expected.gather(-1, chosen[..., None])[..., 0]
    return error, bool((behind <= 2 * difference.abs().amax(-1)).all())


def tolerance(config, dtype: torch.dtype) -> float:
    """How far logits may be off: tolerances.json says it, for the root of the layers."""
    profiles = json.loads(Path(__file__).with_name("tolerances.json").read_text())
    profile = profiles.get(config.model_type, profiles["default"])
    return profile[str(dtype).removeprefix("torch.")] * config.num_hidden_layers**0.5


@dataclass
class Judgement:
    logits: torch.Tensor  # of the last positions asked for
    seconds: float  # of the whole sequence, without fetching weights
    seconds_of_one: float  # of the products of one position: what decoding a token cannot do without


def judge(config, weights: Weights, ids: torch.Tensor, positions: int) -> Judgement:
    """What float32 on the CPU says about the last positions of a text."""
    model = on_meta(config, torch.float32)
    _compute_buffers(model, "cpu")
    names = {id(parameter): name for name, parameter in model.named_parameters()}  # a tied one has one name
    spent = {"apart": 0.0, "one": 0.0}

    def fetch(module: nn.Module, _) -> None:
        start = time.perf_counter()
        module.on_meta = dict(module._parameters)
        for name, parameter in module.on_meta.items():
            if parameter is not None:
                found = weights(names[id(parameter)], parameter.shape).float()
                module._parameters[name] = nn.Parameter(found, requires_grad=False)
        spent["apart"] += time.perf_counter() - start

    def drop(module: nn.Module, inputs, _) -> None:
        start = time.perf_counter()
        if isinstance(module, nn.Linear):
            nn.functional.linear(inputs[0][:, -1:], module.weight, module.bias)
            spent["one"] += time.perf_counter() - start
        module._parameters.update(module.on_meta)
        spent["apart"] += time.perf_counter() - start

    for module in model.modules():
        if module._parameters:
            module.register_forward_pre_hook(fetch)
            module.register_forward_hook(drop)
    start = time.perf_counter()
    with torch.no_grad():
        logits = model(ids, use_cache=False, logits_to_keep=positions).logits
    return Judgement(logits, time.perf_counter() - start - spent["apart"], spent["one"])
