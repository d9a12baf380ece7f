"""What Spyre adds to torch.Tensor: the device layout, and layouts as an argument of ``to`` and ``empty``; and to
``Module.to`` and ``to_empty``: weights of linear layers arrive the way matmuls read them."""

import functools
import threading

import torch
from torch.utils._device import _device_constructors

from torch_spyre import _C


def device_tensor_layout(self: torch.Tensor):
    """The layout of this tensor's base on the card; None for tensors that are not on one."""
    if self.device.type != "spyre" or not torch._C._has_storage(self):
        return None
    return _C.get_spyre_tensor_layout(self)


def _to_layout(tensor: torch.Tensor, device, dtype, layout, copy: bool) -> torch.Tensor:
    dtype = dtype or tensor.dtype
    same = tensor.device.type == "spyre" and dtype == tensor.dtype and device_tensor_layout(tensor) == layout
    if same and not copy:
        return tensor
    contiguous = torch.empty(tensor.shape, device="meta").stride()
    result = _C.spyre_empty_with_layout(list(tensor.shape), list(contiguous), dtype, layout, device)
    return result.copy_(tensor)


def _wrap_to(original):
    @functools.wraps(original)
    def to(self, *args, device_layout=None, **kwargs):
        if device_layout is None:
            return original(self, *args, **kwargs)
        device, dtype, _, _ = torch._C._nn._parse_to(*args, **{k: v for k, v in kwargs.items() if k != "copy"})
        if device is None:  # a layout is one of the card's, so that is where a tensor of the host goes
            device = torch.device("spyre") if self.device.type == "cpu" else self.device
        if device.type != "spyre":
            raise ValueError(f"device_layout needs a Spyre device, found {device}")
        return _to_layout(self, device, dtype, device_layout, kwargs.get("copy", False))

    return to


def _wrap_empty(original):
    @functools.wraps(original)
    def empty(*args, device_layout=None, **kwargs):
        if device_layout is None:
            return original(*args, **kwargs)
        shape = original(*args, **{**kwargs, "device": "meta"})
        device = torch.device(kwargs.get("device") or "spyre")
        return _C.spyre_empty_with_layout(list(shape.shape), list(shape.stride()), shape.dtype, device_layout, device)

    return empty


def _wrap_module_to(original):
    @functools.wraps(original)
    def to(self, *args, **kwargs):
        device, dtype, _, _ = torch._C._nn._parse_to(*args, **kwargs)
        if device is not None and device.type == "spyre":
            from torch_spyre.model_utils import place_linear_weights

            place_linear_weights(self, device, dtype)
        return original(self, *args, **kwargs)

    return to


def _wrap_module_to_empty(original):
    @functools.wraps(original)
    def to_empty(self, *, device, recurse=True):
        result = original(self, device=device, recurse=recurse)
        if device is not None and torch.device(device).type == "spyre":
            from torch_spyre.model_utils import place_empty_linear_weights

            place_empty_linear_weights(self, recurse)
        return result

    return to_empty


_applying = threading.local()


def _wrap_module_apply(original):
    """A tensor of the card is no shallow copy of one of the host, so PyTorch makes a new parameter of each that moves,
    and of a tied one as many as there are holders. Here they stay one: its gradient is the sum of both."""

    @functools.wraps(original)
    def _apply(self, *args, **kwargs):
        if getattr(_applying, "inside", False):
            return original(self, *args, **kwargs)
        from torch_spyre.model_utils import shared_tensors, tie

        shared = shared_tensors(self)
        _applying.inside = True
        try:
            return original(self, *args, **kwargs)
        finally:
            _applying.inside = False
            tie(shared)

    return _apply


def place_weights_in_module_to() -> None:
    """Changes ``Module.to``, unless that was done."""
    if not hasattr(torch.nn.Module.to, "_places_weights"):
        torch.nn.Module.to = _wrap_module_to(torch.nn.Module.to)
        torch.nn.Module.to._places_weights = True


def install() -> None:
    # `with torch.device(...)` tells constructors by identity and remembers them at first use. Let it remember the
    # function inside our wrapper: that is the one it gets to see.
    _device_constructors()
    torch.Tensor.device_tensor_layout = device_tensor_layout
    torch.Tensor.to = _wrap_to(torch.Tensor.to)
    torch.empty = _wrap_empty(torch.empty)
    torch.nn.Module._apply = _wrap_module_apply(torch.nn.Module._apply)
    torch.nn.Module.to_empty = _wrap_module_to_empty(torch.nn.Module.to_empty)
    place_weights_in_module_to()
