"""Operators without a device path run on the CPU: how that is reported."""

from torch_spyre import _C


class FallbackWarning(UserWarning):
    """An operator has no Spyre kernel and ran on the CPU."""


def install() -> None:
    _C._install_fallback_warning(FallbackWarning)
