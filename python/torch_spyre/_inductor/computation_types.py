"""In which type decompositions compute values of 16 bits: in float32 by PyTorch's rule, in 16 bits by the card's.

PyTorch asks a table of its own, one for all threads. It is replaced, once, by one that answers as PyTorch's does, but
for threads that said otherwise:

    with sixteen_bits_stay():
        torch._refs.nn.functional.mish(x)  # x is a half, and so is every step
"""

import contextlib
import threading

import torch._prims_common

_state = threading.local()


class _Table(dict):
    def get(self, dtype, default=None):
        return default if getattr(_state, "depth", 0) else super().get(dtype, default)


def install() -> None:
    torch._prims_common._computation_dtype_map = _Table(torch._prims_common._computation_dtype_map)


@contextlib.contextmanager
def sixteen_bits_stay():
    _state.depth = getattr(_state, "depth", 0) + 1
    try:
        yield
    finally:
        _state.depth -= 1
