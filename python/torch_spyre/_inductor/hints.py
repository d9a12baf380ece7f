"""Hints a script may give: names of dimensions, and wished splits over cores.

    declare_tensor_dim("M", 512)
    name_tensor_dims(x, ["M", "K"])
    with spyre_hint(work_div={"M": 8}):
        y = x @ w

Hints travel on the FX nodes traced inside the block. They are wishes: the compiler may ignore one, and says so.
A tensor may have more names than axes where an axis is several dimensions in one, outermost first: ``["B", "S", "D"]``
for a tensor of B * S rows. Such an axis can be split like its outermost dimension.
"""

import contextlib
import functools
import itertools
import logging

import torch

log = logging.getLogger(__name__)

_dims: dict[str, int] = {}
_fused: dict[int, list[str]] = {}  # by extent of the axis
_ids = itertools.count()
_KEY = "_hint_"
_TILINGS = ("num_tiles_per_dim", "tiles", "slices")
_KNOWN = ("work_div", "named_dims", *_TILINGS)


def declare_tensor_dim(name: str, size: int) -> str:
    """Gives a dimension a name. The last declaration counts: two models may use one name."""
    if not isinstance(size, int) or size < 1:
        raise ValueError(f"declare_tensor_dim: {name!r}: found size {size!r}, allowed: whole numbers from 1 on")
    _dims[name] = size
    return name


def _names_by_axis(shape, names: list[str]) -> list[list[str]]:
    """Which names each axis has: as many as make up its extent."""
    left, axes = list(names), []
    for extent in shape:
        axis, product = [], 1
        while left and (not axis or product < extent):
            axis.append(left.pop(0))
            product *= _dims[axis[-1]]
        if product != extent:
            raise ValueError(f"name_tensor_dims: an axis of {extent} is not {' * '.join(axis)} = {product} long")
        axes.append(axis)
    if left:
        raise ValueError(f"name_tensor_dims: no axis is left for {left} in a tensor of shape {list(shape)}")
    return axes


def name_tensor_dims(tensor: torch.Tensor, names: list[str]) -> torch.Tensor:
    """Says which dimension each axis of a tensor is. With a name for each axis the tensor declares their sizes."""
    if len(names) < tensor.dim():
        raise ValueError(f"name_tensor_dims: {len(names)} names for a tensor of {tensor.dim()} dimensions")
    if len(names) == tensor.dim():
        for name, size in zip(names, tensor.shape, strict=True):
            declare_tensor_dim(name, size)
    elif undeclared := [name for name in names if name not in _dims]:
        raise ValueError(
            f"name_tensor_dims: {len(names)} names for {tensor.dim()} axes, of which {undeclared} have no size\n"
            f"  try  declare_tensor_dim({undeclared[0]!r}, size) first"
        )
    else:
        for extent, axis in zip(tensor.shape, _names_by_axis(tensor.shape, names), strict=True):
            if len(axis) > 1:
                _fused[extent] = axis
    tensor._spyre_dim_names = list(names)
    return tensor


@contextlib.contextmanager
def spyre_hint(**hint):
    """``work_div``, ``named_dims``, ``num_tiles_per_dim``: kept on every operator traced inside. Others are kept, too,
    and logged; they change nothing."""
    if not torch.compiler.is_compiling():
        _say_what_is_unknown(hint)
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


@functools.cache
def _say_once_that_it_is_unknown(key: str) -> None:
    log.warning("spyre_hint: unknown %s, which changes nothing; known: %s", key, ", ".join(_KNOWN))


def _say_what_is_unknown(hint: dict) -> None:
    for key in hint:
        if key not in _KNOWN:
            _say_once_that_it_is_unknown(key)


@functools.cache
def _say_once_that_it_is_inside(dim: str, axis: tuple[str, ...]) -> None:
    log.warning("spyre_hint: %s is the inner part of the axis %s, which can be split like %s only", dim, axis, axis[0])


def _axis_of(dim: str, shape, taken: dict[str, int]) -> int | None:
    """The axis that is this dimension by its size, or whose outermost part it is."""
    free = [axis for axis in range(len(shape)) if f"p{axis}" not in taken]
    for axis in free:
        if shape[axis] == _dims.get(dim):
            return axis
    for axis in free:
        names = _fused.get(shape[axis], [])
        if names and names[0] == dim:
            return axis
        if dim in names:
            _say_once_that_it_is_inside(dim, tuple(names))
    return None


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
        _say_what_is_unknown(hint)
        if any(hint.get(tiling) for tiling in _TILINGS):
            _say_once_that_tiles_are_ignored()
        for dim, count in (hint.get("work_div") or {}).items():
            axis = _axis_of(dim, value.shape[:outer], splits)
            if axis is not None:
                splits[f"p{axis}"] = int(count)
    return splits
