"""Hints a script may give: names of dimensions, and wished splits over cores.

    declare_tensor_dim("M", 512)
    name_tensor_dims(x, ["M", "K"])
    with spyre_hint(work_div={"M": 8}):
        y = x @ w

Hints travel on the FX nodes traced inside the block. They are wishes: the compiler may ignore one, and says so.
"""

import contextlib
import functools
import itertools
import logging

import torch

log = logging.getLogger(__name__)

_dims: dict[str, int] = {}
_ids = itertools.count()
_KEY = "_hint_"
_TILINGS = ("num_tiles_per_dim", "tiles", "slices")


def declare_tensor_dim(name: str, size: int) -> str:
    """Gives a dimension a name; the same name must keep its size."""
    if _dims.setdefault(name, size) != size:
        raise ValueError(f"declare_tensor_dim: {name!r} is {_dims[name]} long already, found {size}")
    return name


def name_tensor_dims(tensor: torch.Tensor, names: list[str]) -> torch.Tensor:
    """Says which declared dimension each axis of a tensor is."""
    if len(names) != tensor.dim():
        raise ValueError(f"name_tensor_dims: {len(names)} names for a tensor of {tensor.dim()} dimensions")
    for name, size in zip(names, tensor.shape, strict=True):
        declare_tensor_dim(name, size)
    tensor._spyre_dim_names = list(names)
    return tensor


@contextlib.contextmanager
def spyre_hint(**hint):
    """``work_div``, ``named_dims``, ``num_tiles_per_dim``: kept on every operator traced inside."""
    allowed = {"work_div", "named_dims", *_TILINGS}
    unknown = set(hint) - allowed
    if unknown:
        raise ValueError(f"spyre_hint: unknown {sorted(unknown)}, allowed {sorted(allowed)}")
    with torch.fx.traceback.annotate({f"{_KEY}{next(_ids)}": dict(hint)}):
        yield


def _hints_of(node) -> list[dict]:
    custom = node.meta.get("custom") or {}
    return [value for key, value in sorted(custom.items()) if key.startswith(_KEY)]


@functools.cache
def _say_once_that_tiles_are_ignored() -> None:
    log.warning(
        "spyre_hint: %s found; kernels are not cut into tiles, so it changes nothing. Scratchpads are planned for "
        "whole kernels; to steer how work is divided among cores, use work_div",
        " or ".join(_TILINGS),
    )


def for_key(graph_module) -> list:
    """The hints of a whole graph: two graphs that differ in them alone are compiled differently."""
    if not isinstance(graph_module, torch.fx.GraphModule):
        return []
    hinted = ((node.name, _hints_of(node)) for node in graph_module.graph.nodes)
    return [(name, repr(hints)) for name, hints in hinted if hints]


def splits_of(node, outer: int, reduced: int) -> dict[str, int]:
    """The wished splits of a node by loop: dimensions are matched to loops by their declared size."""
    from torch_spyre._inductor import config

    if config.ignore_work_division_hints:
        return {}
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return {}
    splits: dict[str, int] = {}
    for hint in _hints_of(node):
        if any(hint.get(tiling) for tiling in _TILINGS):
            _say_once_that_tiles_are_ignored()
        for dim, count in (hint.get("work_div") or {}).items():
            size = _dims.get(dim)
            for axis, extent in enumerate(value.shape):
                if extent == size and axis < outer and f"p{axis}" not in splits:
                    splits[f"p{axis}"] = int(count)
                    break
    return splits
