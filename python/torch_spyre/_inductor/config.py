"""Settings of the compiler, as an Inductor config module: ``config.patch(lx_planning=False)`` works in a script.

Names and environment variables are upstream's. Everything here is part of the key of Inductor's graph cache, because
it changes what is compiled; settings that only change what is printed belong in ``spyre/base/settings.cpp`` alone.
The C++ compiler reads the same environment variables; ``overrides()`` is what they are set to while it runs.
Names that upstream has and this compiler has no use for can be set, too (``accepted.py``).
"""

import os
import sys

from torch.utils._config_module import install_config_module

from torch_spyre import _C
from torch_spyre._inductor import accepted


def _value(name: str):
    """As the C++ side reads it. A malformed one is its default: this module is loaded for CPU programs too, and the
    error comes when a device is used."""
    return next(row["value"] for row in _C.settings() if row["name"] == name)


def _flag(name: str, default: bool) -> bool:
    return os.environ.get(name, "1" if default else "0").lower() in ("1", "true", "on")


sencores: int = _value("SENCORES")
"""Cores that work is divided over, 1 to 32."""

lx_planning: bool = _value("LX_PLANNING")
"""Keep intermediate buffers in the cores' scratchpads."""

co_optimizing_lx_planning: bool = _value("CO_OPTIMIZING_LX_PLANNING")
"""Search core splits and scratchpad placement together."""

keep_sum_order: bool = _value("SPYRE_KEEP_SUM_ORDER")
"""That search leaves sums divided as they are: the same bits as without it."""

lx_planner_relayout: bool = _value("SPYRE_LX_PLANNER_RELAYOUT")
"""Cores that share a buffer in different divisions may exchange it over the ring."""

lx_planner_eviction: bool = _value("SPYRE_LX_PLANNER_EVICTION")
"""Buffers that rest may leave the scratchpad and be fetched again when that saves traffic."""

lx_planner_reorder: bool = _value("SPYRE_LX_PLANNER_REORDER")
"""Operations may run in another order when more fits into the scratchpad then."""

lx_boundary_clones: bool = _value("LX_BOUNDARY_CLONES")
"""Inputs may be copied into the scratchpad, and results out of it."""

bundle_ops: int = _value("SPYRE_BUNDLE_OPS")
"""Operations in one bundle; a graph with more is cut into several. 0: no cut."""

non_terminal: bool = _value("SPYRE_NON_TERMINAL")
"""The runtime honours marks that keep data in the scratchpads from one bundle to the next."""

layout_solver: str = _value("LAYOUT_SOLVER")
"""Which solver places buffers in the scratchpad."""

dxp_lx_frac_avail: float = _value("DXP_LX_FRAC_AVAIL")
"""Fraction of the scratchpad left to the back end."""

allow_all_ops_in_lx_planning: bool = False
"""Let the planner consider every buffer; for tests."""

ignore_work_division_hints: bool = _flag("SPYRE_INDUCTOR_IGNORE_HINTS", False)
"""Compile as if no ``spyre_hint(work_div=...)`` had been written."""

cpu_fallback_on_refusal: bool = True
"""Run an operator on the CPU, counted, when the compiler refuses its graph. Off: the refusal is raised."""


def overrides() -> dict[str, str]:
    """The compiler's settings as they stand, by environment variable."""
    variables = {
        "SENCORES": "sencores",
        "LX_PLANNING": "lx_planning",
        "CO_OPTIMIZING_LX_PLANNING": "co_optimizing_lx_planning",
        "SPYRE_KEEP_SUM_ORDER": "keep_sum_order",
        "SPYRE_LX_PLANNER_RELAYOUT": "lx_planner_relayout",
        "SPYRE_LX_PLANNER_EVICTION": "lx_planner_eviction",
        "SPYRE_LX_PLANNER_REORDER": "lx_planner_reorder",
        "LX_BOUNDARY_CLONES": "lx_boundary_clones",
        "SPYRE_BUNDLE_OPS": "bundle_ops",
        "SPYRE_NON_TERMINAL": "non_terminal",
        "LAYOUT_SOLVER": "layout_solver",
        "DXP_LX_FRAC_AVAIL": "dxp_lx_frac_avail",
    }
    values = {variable: getattr(sys.modules[__name__], field) for variable, field in variables.items()}
    return {variable: str(int(v)) if isinstance(v, bool) else str(v) for variable, v in values.items()}


globals().update({name: default for name, (default, _) in accepted.WITHOUT_EFFECT.items()})
install_config_module(sys.modules[__name__])
accepted.announce(sys.modules[__name__])
