"""What happens when PyTorch starts: names are registered, nothing else.

PyTorch calls ``autoload`` through the entry point group ``torch.backends``. It must be quick, must not start the card
and must not raise: a failure here would break ``import torch`` for everybody.
"""

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
    """Makes ``spyre`` a device of PyTorch. Does its work once; raises if it cannot."""
    global _registered
    if _registered:
        return
    _registered = True
    _check_torch_version()

    import torch
    from torch_spyre import _C
    from torch_spyre import _device_module, _patches, _tensor_methods, fallback

    torch.utils.rename_privateuse1_backend("spyre")
    torch._register_device_module("spyre", _device_module.make())
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    _patches.install()
    _tensor_methods.install()
    fallback.install()
    _C._apply_settings()
    for name in _C.ignored_settings():
        warnings.warn(f"{name} is set, but this version of torch_spyre does not implement it", stacklevel=2)


def autoload() -> None:
    """The entry point. Never raises."""
    try:
        register()
    except Exception as error:  # noqa: BLE001 - whatever it is, `import torch` must go on
        warnings.warn(f"torch_spyre is installed but could not be loaded: {error}", stacklevel=2)
