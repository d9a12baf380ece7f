"""Eager operators written in others by a script: its own decompositions.

A form the card cannot run as a whole leaves the operator to the CPU, counted (``_C.run_form``).
"""

import functools
import warnings

import torch

from torch_spyre import _C
from torch_spyre._patches import sixteen_bits_stay

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
