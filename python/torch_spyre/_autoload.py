"""What importing torch_spyre does to PyTorch: names are registered, nothing else.

``import torch`` comes here by way of ``torch_spyre_autoload``. It must be quick and must not start the card.
"""

import atexit
import warnings

TORCH_VERSION = "2.13"
_registered = False


def _check_torch_version() -> None:
    import torch

    found = torch.__version__
    if found.split("+")[0].split(".")[:2] != TORCH_VERSION.split("."):
        raise ImportError(
            f"torch_spyre was built for torch {TORCH_VERSION}, found torch {found}\n"
            f"  try  pip install torch=={TORCH_VERSION}.0, or rebuild torch_spyre against the installed torch"
        )


def register() -> None:
    """Makes ``spyre`` a device of PyTorch, once. Raises, with nothing registered, if settings or versions are wrong."""
    global _registered
    if _registered:
        return
    _check_torch_version()

    import torch

    from torch_spyre import (
        _C,
        _device_module,
        _inductor,
        _patches,
        _safetensors,
        _tensor_methods,
        fallback,
    )
    from torch_spyre._inductor import customops  # noqa: F401 - operators of ours that eager calls use

    _C._apply_settings()
    torch.utils.rename_privateuse1_backend("spyre")
    torch._register_device_module("spyre", _device_module.make())
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    _patches.install()
    _safetensors.install()
    _tensor_methods.install()
    fallback.install()
    _inductor.install()
    atexit.register(_C._stop_at_exit)  # while everything is still there that queued work uses
    _registered = True
    for name in _C.ignored_settings():
        warnings.warn(f"{name} is set, but this version of torch_spyre does not implement it", stacklevel=2)
