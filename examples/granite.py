"""A small Granite, built from its Hugging Face config, generates text on the emulated card.

    python examples/granite.py [--layers 2] [--hidden 256] [--tokens 16] [--page granite.html]

Nothing in the model knows about the card: `model.to("spyre")`, `torch.compile`, `generate`. The same model in float32
on the CPU is the judge. Weights are random but seeded, so the tokens mean nothing and never change.
"""

import argparse
import tempfile
import time
import warnings
from collections import defaultdict
from pathlib import Path

import torch
import torch_spyre.profiler


def build(layers: int, hidden: int):
    from transformers import GraniteConfig, GraniteForCausalLM

    torch.manual_seed(0)
    heads = max(hidden // 64, 2)
    config = GraniteConfig(
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads // 2,
        vocab_size=512,
        max_position_embeddings=256,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=None,
    )
    return GraniteForCausalLM(config).eval()


def generate(model, prompt, tokens: int):
    return model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=tokens,
        do_sample=False,
        return_dict_in_generate=True,
        output_logits=True,
    )


def compare(card, judge, start: int) -> None:
    """The tokens, or the first that differs and why."""
    found, expected = card.sequences[0, start:].cpu(), judge.sequences[0, start:]
    print("tokens on the card ", found.tolist())
    print("tokens on the CPU  ", expected.tolist())
    differing = (found != expected).nonzero()
    if len(differing) == 0:
        print("equal, all of them")
        return
    step = int(differing[0])
    ours, theirs = card.logits[step][0].float().cpu(), judge.logits[step][0].float()
    best = theirs.topk(2).values
    print(
        f"first difference at token {step}: the two best logits are {best[0] - best[1]:.4f} apart there, "
        f"and the card's 16-bit format is off by up to {(ours - theirs).abs().max():.4f}"
    )


def print_traffic() -> None:
    from torch_spyre._inductor import kernels

    sums = defaultdict(lambda: [0, 0, 0, 0])
    counts = defaultdict(int)
    for op in kernels.traffic():
        counts[op["op"]] += 1
        entry = sums[op["op"]]
        for i, key in enumerate(("hbm_read", "hbm_written", "lx_read", "macs")):
            entry[i] += op[key]
    print("\nbytes moved by the last run of every kernel")
    print(f"{'op':<18}{'runs':>6}{'HBM read':>12}{'HBM written':>13}{'LX read':>11}{'MACs':>14}")
    for name, (read, written, lx, macs) in sorted(sums.items(), key=lambda kv: -sum(kv[1][:2])):
        print(f"{name:<18}{counts[name]:>6}{read:>12,}{written:>13,}{lx:>11,}{macs:>14,}")
    total = [sum(column) for column in zip(*sums.values(), strict=True)]
    print(f"{'total':<18}{sum(counts.values()):>6}{total[0]:>12,}{total[1]:>13,}{total[2]:>11,}{total[3]:>14,}")


def print_time(report, tokens: int) -> None:
    """What the card would take, and what for."""
    total, bound = report.facts["totals"]["total_us"], report.facts["bound"]
    by, page = bound["by"], report.page
    share = 100 * bound["us"][by] / total
    print(f"{total / tokens:.0f} us a token on the card's clock, {share:.0f} % of it bound by {by}: {page}")


def print_saving(model, forward, prompt) -> None:
    """What the scratchpads save: the same prompt and one more token, compiled without them."""
    from torch_spyre._inductor import config, kernels

    planned = set(kernels.loaded)
    moved, least = kernels.hbm_bytes(planned)
    print("\ncompiling once more without scratchpad planning ...", flush=True)
    torch._dynamo.reset()
    model.forward = torch.compile(forward, dynamic=True)
    with config.patch(lx_planning=False):
        generate(model, prompt, 2)
    without, _ = kernels.hbm_bytes(set(kernels.loaded) - planned)
    print(
        f"HBM bytes of the last run of every kernel: {without:,} without LX, {moved:,} with it; "
        f"{least:,} are inputs, weights and results once"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=16)
    page = Path(tempfile.gettempdir()) / "granite.html"
    parser.add_argument("--page", type=Path, default=page, help="where the report of time goes")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")

    print(f"Granite with {args.layers} layers of {args.hidden}, built from its config", flush=True)
    model = build(args.layers, args.hidden)
    prompt = torch.randint(2, 512, (1, 12))
    with torch.no_grad():
        print("  the judge: float32 on the CPU ...", flush=True)
        judge = generate(model, prompt, args.tokens)
        print("  to the card, compiling ...", flush=True)
        model = model.half().to("spyre")
        forward = model.forward
        model.forward = torch.compile(forward, dynamic=True)  # prompts and caches have any length
        torch.spyre.reset_metrics()
        start = time.perf_counter()
        card = generate(model, prompt.to("spyre"), args.tokens)
        first = time.perf_counter() - start
        start = time.perf_counter()
        card = generate(model, prompt.to("spyre"), args.tokens)
        again = time.perf_counter() - start
        with torch_spyre.profiler.report(args.page) as report:
            generate(model, prompt.to("spyre"), args.tokens)
        longer = torch.randint(2, 512, (1, 50))
        generate(model, longer.to("spyre"), args.tokens)
    compare(card, judge, prompt.shape[1])
    print(f"{first:.1f} s with compilation, {again:.2f} s without")
    lengths = f"{prompt.shape[1]} and {longer.shape[1]}"
    print(f"compiled {len(torch.spyre.compilations())} times for prompts of {lengths} tokens and all that follow")
    print_time(report, args.tokens)
    print_traffic()
    with torch.no_grad():
        print_saving(model, forward, prompt.to("spyre"))
    from torch_spyre._inductor import kernels

    fallbacks = torch.spyre.metrics()["fallbacks"]
    print(f"\noperators that ran on the CPU, in both runs: {', '.join(sorted(fallbacks)) or 'none'}")
    print(f"graphs and artifacts are in {kernels.artifact_directory()}")


if __name__ == "__main__":
    main()
