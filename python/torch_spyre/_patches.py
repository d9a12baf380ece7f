"""Every change this package makes to private parts of PyTorch, with the reason for each.

``tests/e2e/test_patches.py`` fails when one of the places below changes under us.
"""

import contextlib
import threading

import torch
import torch._prims_common


def _print_on_the_host(original):
    """Formatting a tensor computes on it (abs, comparisons, float64); printing must not need device operators."""

    def tensor_str(self, indent):
        if self.device.type != "spyre":
            return original(self, indent)
        try:
            host = self.detach().cpu()
        except RuntimeError as error:
            return f"<unreadable: {str(error).splitlines()[0]}>"
        return original(host, indent)

    return tensor_str


def _print_without_elements(original):
    """A typed storage counts its elements by its bytes; on the card many of those are padding, which is no element."""

    def typed_storage_str(self):
        if self.device.type != "spyre":
            return original(self)
        return f"...\n[{torch.typename(self)}(dtype={self.dtype}, device={self.device}) of {self.nbytes()} bytes]"

    return typed_storage_str


_narrow = threading.local()


class _ComputationTypes(dict):
    """In which type decompositions compute: values of 16 bits in float32 by PyTorch's rule, in 16 bits by the card's.

    PyTorch asks one table for all threads. This one answers as PyTorch's does, but to threads that said otherwise.
    """

    def get(self, dtype, default=None):
        return default if getattr(_narrow, "depth", 0) else super().get(dtype, default)


@contextlib.contextmanager
def sixteen_bits_stay():
    """While inside, every step of a decomposition of fp16 values is fp16: ``torch._refs.nn.functional.mish(x)``."""
    _narrow.depth = getattr(_narrow, "depth", 0) + 1
    try:
        yield
    finally:
        _narrow.depth -= 1


def install() -> None:
    torch._prims_common._computation_dtype_map = _ComputationTypes(torch._prims_common._computation_dtype_map)
    torch._tensor_str._tensor_str = _print_on_the_host(torch._tensor_str._tensor_str)
    torch.storage.TypedStorage.__str__ = _print_without_elements(torch.storage.TypedStorage.__str__)
