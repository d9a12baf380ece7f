"""Figures and settings for people: counters, configuration, environment."""

import platform

import torch

from torch_spyre import _C


def metrics() -> dict:
    """Exact counters of this process: allocations, transfers, bytes, stream work, CPU fallbacks, and which operations
    the emulator ran element by element."""
    return {**_C.metrics(), "fallbacks": _C.fallback_counts(), "interpreted_ops": _C.interpreted_ops()}


def metrics_report() -> str:
    """The counters as text."""
    lines = ["Spyre metrics", *(f"  {name:<24}{value:>16,}" for name, value in _C.metrics().items())]
    fallbacks = _C.fallback_counts()
    total = sum(entry["calls"] for entry in fallbacks.values())
    lines.append(f"  {'cpu_fallbacks':<24}{total:>16,}")
    for name, entry in sorted(fallbacks.items(), key=lambda item: -item[1]["calls"]):
        lines.append(f"    {name:<38}{entry['calls']:>10,} calls {entry['bytes']:>14,} bytes")
        lines.extend(f"      {calls:>10,} x {reason}" for reason, calls in entry["reasons"].items())
    lines.extend(f"  interpreted: {op:<35}{n:>10,} executes" for op, n in _C.interpreted_ops().items())
    return "\n".join(lines)


def compilations() -> list[dict]:
    """Every compilation of this process: the function, its seconds, why it was compiled again, operators refused."""
    from torch._dynamo.utils import get_compilation_metrics

    from torch_spyre._inductor import patches

    entries = []
    for metric in get_compilation_metrics():
        if metric.co_name is None:  # a backward graph, counted with its forward one
            continue
        entries.append(
            {
                "function": f"{metric.co_name} ({metric.co_filename}:{metric.co_firstlineno})",
                "compile_id": metric.compile_id,
                "seconds": (metric.duration_us or 0) / 1e6,
                "recompile_reason": metric.recompile_reason,
                "refused": patches.refusals.get(metric.compile_id, []),
            }
        )
    return entries


def compile_report() -> str:
    """The compilations as text: first those that happened, then why some happened again."""
    entries = compilations()
    again = [e for e in entries if e["recompile_reason"]]
    seconds = sum(e["seconds"] for e in entries)
    lines = [f"{len(entries)} compilations in {seconds:.1f} s, {len(again)} of them again"]
    for entry in entries:
        lines.append(f"  [{entry['compile_id']}] {entry['function']}  {entry['seconds']:.2f} s")
        if entry["recompile_reason"]:
            lines.append(f"    again because {entry['recompile_reason']}")
        lines += [f"    on the CPU: {operator}" for operator in entry["refused"]]
    return "\n".join([*lines, *_programs()])


def _programs() -> list[str]:
    """The kernels whose sizes change from call to call, with the ranges they were compiled for so far."""
    from torch_spyre._inductor import kernels

    found = [kernel for kernel in sorted(kernels.loaded, key=lambda k: k.number) if kernel.is_open]
    return [f"  {kernel.name}: a program each for {'; '.join(kernel.programs()) or 'no call yet'}" for kernel in found]


def show_config() -> str:
    """Every setting with its value; a star marks those the environment sets."""
    rows = _C.settings()
    width = max(len(row["name"]) for row in rows)
    return "\n".join(
        f"{'*' if row['is_set'] else ' '} {row['name']:<{width}} = {row['error'] or row['value']}" for row in rows
    )


def environment_report() -> str:
    """What a bug report needs: versions, machine, settings."""
    import torch_spyre

    return "\n".join(
        [
            f"torch_spyre {torch_spyre.__version__} (built for torch {_C.__torch_version__})",
            f"torch       {torch.__version__}",
            f"python      {platform.python_version()} on {platform.platform()}",
            f"threads     {_C.get_num_threads()}",
            f"devices     {_C._device_count()} (initialized: {_C._is_initialized()})",
            "settings",
            show_config(),
        ]
    )


def explain(html=None) -> list[dict]:
    """The scratchpad plan of every compiled kernel of this process; with ``html``, a folder, also as pages.

    >>> torch.compile(model)(x)
    >>> [(p["kernel"], p["saved"], p["moved"]) for p in torch_spyre.explain(html="plans")]
    """
    from torch_spyre._inductor import kernels  # torch.compile is not loaded before it is used

    return kernels.explain(html)
