"""The entry point that PyTorch calls when it starts (group ``torch.backends``).

A package of its own, because importing ``torch_spyre`` raises when something is wrong, and this must not: a failure
here would break ``import torch`` for everybody.
"""

import warnings


def autoload() -> None:
    try:
        import torch_spyre  # noqa: F401
    except Exception as error:  # noqa: BLE001 - whatever it is, `import torch` must go on
        warnings.warn(f"torch_spyre is installed but could not be loaded: {error}", stacklevel=2)
