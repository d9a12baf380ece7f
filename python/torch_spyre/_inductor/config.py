"""Settings of the compiler, as an Inductor config module: ``config.patch(lx_planning=False)`` works in a script.

Names are upstream's. The compiler's own come from the table in ``spyre/base/settings.cpp``, which has their defaults,
environment variables and meanings (``docs/settings.md`` shows them). Everything here is part of the key of Inductor's
graph cache, because it changes what is compiled; settings that only change what is printed are in that table alone.
Names that upstream has and this compiler has no use for can be set, too (``accepted.py``).
"""

import sys

from torch.utils._config_module import install_config_module

from torch_spyre import _C
from torch_spyre._inductor import accepted

allow_all_ops_in_lx_planning: bool = False
"""Let the planner consider every buffer; for tests."""

dynamic_capacity: int = 1024
"""Room for a size that changes from call to call and has no end; a larger one is compiled anew, with twice the room."""

cpu_fallback_on_refusal: bool = True
"""Run an operator on the CPU, counted, when the compiler refuses its graph. Off: the refusal is raised."""


def _from_the_table() -> dict:
    """By name: the value of the environment. A malformed one is its default: this module is loaded for CPU programs,
    too, and the error comes when a device is used."""
    return {row["config"]: row["value"] for row in _C.settings() if row["config"]}


def values() -> dict:
    """The compiler's settings as they stand."""
    return {name: getattr(sys.modules[__name__], name) for name in _from_the_table()}


def compile_options() -> "_C.CompileOptions":
    """The same as the value that the compiler takes."""
    return _C.CompileOptions(**values())


globals().update(_from_the_table())
globals().update({name: default for name, (default, _) in accepted.WITHOUT_EFFECT.items()})
install_config_module(sys.modules[__name__])
accepted.announce(sys.modules[__name__])
