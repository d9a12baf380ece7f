"""``torch.spyre``: the module that device-agnostic code looks for. Names follow torch.cuda and torch.accelerator."""

import types
from dataclasses import dataclass

import torch

from torch_spyre import _C, diagnostics, memory, profiler, random, streams
from torch_spyre.streams import _index


@dataclass(frozen=True)
class DeviceProperties:
    """What the card is. Sizes in bytes; ``total_memory`` is what tensors can use, as in ``mem_get_info``."""

    name: str
    type: str
    index: int
    multi_processor_count: int
    total_memory: int
    lx_bytes_per_core: int
    stick_bytes: int
    span_limit: int
    segments: int
    segment_bytes: int
    ring_bytes_per_cycle: int
    emulated: bool = True


def is_available() -> bool:
    return _C._is_in_bad_fork() or _C._device_count() > 0


def device_count() -> int:
    return _C._device_count()


def current_device() -> int:
    return _C._current_device()


def set_device(device) -> None:
    index = _index(device)
    if index >= 0:
        _C._set_device(index)


def is_initialized() -> bool:
    return _C._is_initialized()


def init() -> None:
    """Starts the runtime now instead of at first use."""
    _C.start_runtime()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """bfloat16 tensors work; the card holds them in its own 16-bit format."""
    return including_emulation


def get_device_name(device=None) -> str:
    return get_device_properties(device).name


def get_device_capability(device=None) -> dict:
    return torch.accelerator.get_device_capability(_index(device))


def get_device_properties(device=None) -> DeviceProperties:
    index = _index(device)
    return DeviceProperties(index=index, **_C._device_properties(index))


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float16, torch.bfloat16]


class device:
    """``with torch.spyre.device(i):`` makes card i current inside the block; a negative index changes nothing."""

    def __init__(self, device):
        self.index = -1 if device is None else _index(device)
        self.previous = -1

    def __enter__(self):
        self.previous = _C._current_device()
        if self.index >= 0:
            _C._set_device(self.index)
        return self

    def __exit__(self, *_):
        _C._set_device(self.previous)
        return False


class device_of(device):
    """The same for the card of a tensor; changes nothing for tensors elsewhere."""

    def __init__(self, tensor):
        super().__init__(tensor.device.index if tensor.device.type == "spyre" else None)


class _Utils:
    """Where torch.load looks for the index of a location such as ``spyre:1``."""

    @staticmethod
    def _get_device_index(device, optional: bool = False) -> int:
        return _index(device if optional or device is not None else None)


class _SpyreModule(types.ModuleType):
    """Names that are not here are the extension's, as in upstream; ``_C`` itself is not one of them."""

    def __getattr__(self, name: str):
        if not name.startswith("__") and name != "_C" and hasattr(_C, name):
            return getattr(_C, name)
        raise AttributeError(f"module 'torch.spyre' has no attribute '{name}'")


def make() -> types.ModuleType:
    module = _SpyreModule("torch.spyre", __doc__)
    here = globals()
    for name in (
        "DeviceProperties",
        "current_device",
        "device",
        "device_count",
        "device_of",
        "get_amp_supported_dtype",
        "get_device_capability",
        "get_device_name",
        "get_device_properties",
        "init",
        "is_available",
        "is_bf16_supported",
        "is_initialized",
        "set_device",
    ):
        setattr(module, name, here[name])
    for name in (
        "Event",
        "Stream",
        "current_stream",
        "default_stream",
        "device_time",
        "set_stream",
        "stream",
        "synchronize",
    ):
        setattr(module, name, getattr(streams, name))
    for name in (
        "get_rng_state",
        "get_rng_state_all",
        "initial_seed",
        "manual_seed",
        "manual_seed_all",
        "seed",
        "seed_all",
        "set_rng_state",
        "set_rng_state_all",
    ):
        setattr(module, name, getattr(random, name))
    for name in ("metrics", "metrics_report", "compilations", "compile_report", "show_config"):
        setattr(module, name, getattr(diagnostics, name))
    for name in memory.__all__:
        setattr(module, name, getattr(memory, name))
    for name in ("Scheduling", "GraphLowering", "Lowering", "Codegen", "Compile"):
        setattr(module, name, None)
    module.get_diagnostic_report = profiler.get_diagnostic_report
    module.memory, module.random, module._utils = memory, random, _Utils
    module._is_in_bad_fork = _C._is_in_bad_fork
    module._is_compiled = lambda: True
    module._lazy_init = lambda: None  # PyTorch calls it for CPU-only work too; a card starts at its first use
    return module
