"""Memory of the card: the functions of torch.accelerator.memory, and a snapshot for PyTorch's viewer."""

import pickle

from torch.accelerator.memory import (
    empty_cache,
    get_memory_info,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)

from torch_spyre import _C
from torch_spyre.streams import _index

__all__ = [
    "empty_cache",
    "fragmentation",
    "get_memory_info",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "record_memory_history",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "save_memory_snapshot",
]


def mem_get_info(device=None) -> tuple[int, int]:
    """(free, total) bytes that tensors can use."""
    info = _C._memory_info(_index(device))
    return info["free"], info["total"]


def fragmentation(device=None) -> dict:
    """total, free, largest_free_block, programs (bytes) and fragmentation (0 whole, towards 1 crumbs)."""
    return _C._memory_info(_index(device))


def record_memory_history(max_entries: int = 100_000) -> None:
    """Keeps the last allocations and frees with their Python stacks; 0 stops and forgets."""
    _C._record_memory_history(max_entries)


def memory_snapshot() -> dict:
    """Segments, blocks and history in the form of ``torch.cuda.memory._snapshot``."""
    return _C._memory_snapshot()


def save_memory_snapshot(path: str) -> None:
    """Writes the snapshot as the pickle that PyTorch's memory viewer opens."""
    with open(path, "wb") as file:
        pickle.dump(memory_snapshot(), file)


def memory_summary(device=None) -> str:
    """The main figures of one card, for people."""
    index = _index(device)
    stats = memory_stats(index)
    info = fragmentation(index)
    rows = [
        ("allocated", stats["allocated_bytes.all.current"]),
        ("peak", stats["allocated_bytes.all.peak"]),
        ("free", info["free"]),
        ("largest free block", info["largest_free_block"]),
        ("total", info["total"]),
        ("programs", info["programs"]),
    ]
    lines = [f"spyre:{index} memory", *(f"  {name:<20}{value / 2**20:>14.2f} MiB" for name, value in rows)]
    lines.append(f"  {'fragmentation':<20}{info['fragmentation']:>14.3f}")
    return "\n".join(lines)
