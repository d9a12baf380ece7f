"""The reference's values of the card's tensors, by storage, so that views and writes in place follow by themselves."""

from collections.abc import Callable

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from torch_spyre import _C


def read(tensor: torch.Tensor) -> torch.Tensor:
    """What a tensor holds, on the CPU. 16-bit values as float32: the host's types have other bits, or less range."""
    tensor = tensor.detach()
    if tensor.device.type == "spyre" and tensor.dtype in (torch.float16, torch.bfloat16):
        tensor = tensor.float()
    return tensor.cpu()


def storage_elements(tensor: torch.Tensor) -> int:
    if tensor.device.type == "spyre":
        return _C.storage_elements(tensor)
    return tensor.untyped_storage().nbytes() // tensor.element_size()


class Values:
    """One value for every floating-point element that the model computes, held while the card's tensor lives.

    What nobody computed yet (inputs, weights) is fetched when it is asked for, and held only if it is written to.
    """

    def __init__(self, wide: Callable[[torch.dtype], torch.dtype], fetch: Callable[[torch.Tensor], torch.Tensor]):
        self.wide, self._fetch = wide, fetch
        self._held: dict[int, tuple[StorageWeakRef, torch.Tensor]] = {}

    def _of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        held = self._held.get(tensor.untyped_storage()._cdata)
        if held is None or held[0].expired() or held[1].dtype != self.wide(tensor.dtype):
            return None
        return held[1]

    def knows(self, tensor: torch.Tensor) -> bool:
        return tensor.is_floating_point() and self._of(tensor) is not None

    def get(self, tensor: torch.Tensor) -> torch.Tensor:
        flat = self._of(tensor) if tensor.is_floating_point() else None
        if flat is None:
            return self._fetch(tensor)
        return flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def to_write(self, tensor: torch.Tensor) -> torch.Tensor:
        """The same, as memory that views of it share."""
        if not tensor.is_floating_point():
            return self._fetch(tensor).clone()
        if self._of(tensor) is None:
            whole = tensor.as_strided((storage_elements(tensor),), (1,), 0)
            self._hold(tensor, self._fetch(whole).clone())
        return self.get(tensor)

    def set(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        if not tensor.is_floating_point():
            return
        if self._of(tensor) is None:
            self._hold(tensor, torch.zeros(storage_elements(tensor), dtype=self.wide(tensor.dtype)))
        self.get(tensor).copy_(value)

    def forget(self, tensor: torch.Tensor) -> None:
        self._held.pop(tensor.untyped_storage()._cdata, None)

    def _hold(self, tensor: torch.Tensor, flat: torch.Tensor) -> None:
        self._held = {key: held for key, held in self._held.items() if not held[0].expired()}
        storage = tensor.untyped_storage()
        self._held[storage._cdata] = (StorageWeakRef(storage), flat)

    def bytes(self) -> int:
        return sum(flat.nbytes for ref, flat in self._held.values() if not ref.expired())
