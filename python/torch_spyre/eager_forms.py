"""Eager operators written in others in Python: a script's own decompositions, and steps of convolutions and pools.

A form the card cannot run as a whole leaves the operator to the CPU, counted (``_C.run_form``).
"""

import functools
import warnings

import torch

from torch_spyre import _C
from torch_spyre._inductor import customops, decompositions  # noqa: F401 - operators of ours that eager calls use
from torch_spyre._patches import sixteen_bits_stay

aten = torch.ops.aten

# Operators with a kernel of their own, for calls that it is refused for.
_WHERE_REFUSED = {
    aten.convolution.default: decompositions.convolution,
    aten.max_pool2d_with_indices_backward.default: decompositions.max_pool2d_with_indices_backward,
}

# Instead of a kernel of their own: a weight's gradient, and a pool of float32, are refused beside others in one graph.
_STEP_BY_STEP = {
    aten.convolution_backward.default: decompositions.convolution_backward,
    aten.max_pool2d_with_indices.default: decompositions.max_pool2d_with_indices,
}

_library = torch.library.Library("aten", "IMPL")  # kept alive: kernels go with it


def _as_the_card_computes(form):
    @functools.wraps(form)
    def run(*args, **kwargs):
        with sixteen_bits_stay():
            return form(*args, **kwargs)

    return run


def replace(op, form) -> None:
    """Another form for an operator, a script's own; calls of the card run it from now on."""
    overload = "" if op._overloadname == "default" else op._overloadname
    kernel = functools.partial(_C.run_form, op._schema.name, overload, _as_the_card_computes(form))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning only once for all operators")  # replacing is what was asked
        _library.impl(op, kernel, "PrivateUse1", allow_override=True)


def install() -> None:
    _C.set_refused_forms({op.name(): form for op, form in _WHERE_REFUSED.items()})
    for op, form in _STEP_BY_STEP.items():
        replace(op, form)
