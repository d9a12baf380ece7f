"""What Dynamo and Inductor ask a device: its interface, its statements in wrapper code, its code generators."""

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device

from torch_spyre import _device_module


class SpyreInterface(DeviceInterface):
    """The device as Dynamo sees it. Nothing here starts the card except what asks for its state."""

    device = _device_module.device

    class Worker:
        @staticmethod
        def set_device(device: int) -> None:
            raise RuntimeError("a compile worker never opens the card")

        @staticmethod
        def current_device() -> int:
            return 0

        @staticmethod
        def get_device_properties(device=None):
            return _device_module.get_device_properties(device)

    current_device = staticmethod(_device_module.current_device)
    set_device = staticmethod(_device_module.set_device)
    device_count = staticmethod(_device_module.device_count)
    is_available = staticmethod(_device_module.is_available)

    @staticmethod
    def exchange_device(device: int) -> int:
        previous = _device_module.current_device()
        _device_module.set_device(device)
        return previous

    @staticmethod
    def maybe_exchange_device(device: int) -> int:
        return SpyreInterface.exchange_device(device) if device >= 0 else _device_module.current_device()

    @staticmethod
    def current_stream():
        return torch.spyre.current_stream()

    @staticmethod
    def set_stream(stream) -> None:
        torch.spyre.set_stream(stream)

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        return 0

    @staticmethod
    def synchronize(device=None) -> None:
        torch.spyre.synchronize(device)

    @staticmethod
    def get_compute_capability(device=None) -> str:
        return ""

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        return True


def register_with_dynamo() -> None:
    """Ctrl-C may end it anywhere, then it is run again: every step bears that."""
    from torch_spyre._inductor import patches, regions

    register_interface_for_device("spyre", SpyreInterface)
    patches.guard_device_layouts()
    regions.install()
    _register_backend_name()


def _register_backend_name() -> None:
    from torch._dynamo.backends import registry

    def spyre(model, inputs, **kwargs):
        from torch._inductor.compile_fx import compile_fx

        return compile_fx(model, inputs, config_patches=kwargs.get("options"))

    registry._COMPILER_FNS.pop("spyre", None)  # of a registration that was interrupted; PyTorch refuses a name twice
    registry.register_backend(spyre, name="spyre")


def register_with_inductor() -> None:
    """As ``register_with_dynamo``: may be run again."""
    from torch._inductor.codegen import cpu_device_op_overrides  # noqa: F401 - Inductor skips it once one is registered
    from torch._inductor.codegen.common import (
        DeviceOpOverrides,
        register_backend_for_device,
        register_device_op_overrides,
    )

    from torch_spyre._inductor import config, patches
    from torch_spyre._inductor.scheduling import SpyreScheduling
    from torch_spyre._inductor.wrapper import SpyrePythonWrapperCodegen

    class SpyreDeviceOpOverrides(DeviceOpOverrides):
        """Kernels carry their own streams and devices: nothing to say in the wrapper."""

        def import_get_raw_stream_as(self, name: str) -> str:
            return f"def {name}(_):\n    return 0\n"

        def set_device(self, device_idx: int) -> str:
            return "pass"

        def synchronize(self) -> str:
            return "pass"

        def device_guard(self, device_idx: int) -> str:
            return "pass"

    register_device_op_overrides("spyre", SpyreDeviceOpOverrides())
    register_backend_for_device("spyre", SpyreScheduling, SpyrePythonWrapperCodegen, device_custom_config=config)
    patches.install()
