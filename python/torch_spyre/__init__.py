"""Torch-Spyre: PyTorch on an emulated IBM Spyre card.

``import torch`` alone makes ``device="spyre"`` work (see ``torch_spyre_autoload``); importing this package by name does
the same and raises where the silent import only warns.
"""

from torch_spyre import _autoload

_autoload.register()

from torch_spyre._C import __revision__ as _revision
from torch_spyre._C import __version__ as _base_version  # noqa: E402

__version__ = f"{_base_version}+g{_revision}" if _revision else _base_version

from torch_spyre import logging_config, profiler  # noqa: E402
from torch_spyre._compare import compare  # noqa: E402
from torch_spyre._device_module import make as make_spyre_module  # noqa: E402
from torch_spyre._inductor.errors import SpyreUnsupportedError  # noqa: E402
from torch_spyre._inductor.hints import declare_tensor_dim, name_tensor_dims, spyre_hint  # noqa: E402
from torch_spyre.diagnostics import environment_report, explain  # noqa: E402
from torch_spyre.fallback import FallbackWarning  # noqa: E402
from torch_spyre.model_utils import load_model_to_spyre  # noqa: E402
from torch_spyre.packages import PackageError, load, packaging, save  # noqa: E402
from torch_spyre.streams import synchronize  # noqa: E402

__all__ = [
    "FallbackWarning",
    "PackageError",
    "SpyreUnsupportedError",
    "__version__",
    "compare",
    "declare_tensor_dim",
    "environment_report",
    "explain",
    "load",
    "load_model_to_spyre",
    "logging_config",
    "make_spyre_module",
    "name_tensor_dims",
    "packaging",
    "profiler",
    "save",
    "spyre_hint",
    "synchronize",
]
