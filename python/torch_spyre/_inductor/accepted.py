"""Names of upstream's configuration that scripts set and that change nothing here: each says so once, and why."""

import logging
import types

log = logging.getLogger(__name__)

_TILES = "kernels are not cut into tiles; scratchpads are planned for whole kernels"
_ALWAYS = "it is always so here"
_NEVER = "there is no such step here"

# By name: the default upstream gives it, and why it has no effect.
WITHOUT_EFFECT = {
    "allow_exhaustive_search": (False, "the solver decides how far it searches; LAYOUT_SOLVER chooses it"),
    "async_dxp_compile": (False, _NEVER),
    "auto_coarse_tiling": (False, _TILES),
    "bundle_symbolic_args": (True, "addresses are always bound at the launch"),
    "conv2d_direct_lowering": (False, "the compiler chooses the form of a convolution"),
    "core_id_k_fast_emission": (True, "the compiler numbers cores by its own rule"),
    "cost_model": ("", "spyre-plan and torch_spyre.explain() show costs"),
    "disable_conv2d_spatial_split": (True, "the compiler divides work by its own rule"),
    "enable_lx_context_switching": (True, _NEVER),
    "enable_reduction_tiling": (True, _TILES),
    "frontend_pool_allocation": (False, _ALWAYS),
    "global_stick_optimizer": (True, _ALWAYS),
    "hbm_pool_planning": (True, _ALWAYS),
    "ignore_span_overflow_hints": (True, _TILES),
    "ignore_wsr_hints": (False, _TILES),
    "kernel_cache": (False, "kernels are kept in Inductor's cache"),
    "kernel_cache_shared": (False, "kernels are kept in Inductor's cache"),
    "ktir_device_mlir": ("", "the only output is a SuperDSC bundle"),
    "ktir_emitter": (False, "the only output is a SuperDSC bundle"),
    "log_passes": ("", "spyre-opt prints a graph after each pass"),
    "max_buckets": (32, "sizes are static in compiled kernels"),
    "min_default_granularity": (4, "sizes are static in compiled kernels"),
    "native_layout_packer": (True, _ALWAYS),
    "read_copy_elision": (True, _ALWAYS),
    "sdsc_cache": (True, "kernels are kept in Inductor's cache"),
    "unroll_loops": (False, _TILES),
    "validate_graph": (True, _ALWAYS),
    "validate_op_specs": (True, _ALWAYS),
}

_said: set[str] = set()


def announce(module: types.ModuleType) -> None:
    """From now on a config module says once of each such name that setting it changes nothing."""

    class Announcing(type(module)):
        def __setattr__(self, name, value):
            if name in WITHOUT_EFFECT and name not in _said and value != WITHOUT_EFFECT[name][0]:
                _said.add(name)
                log.warning("%s.%s has no effect: %s", self.__name__, name, WITHOUT_EFFECT[name][1])
            super().__setattr__(name, value)

    types.ModuleType.__setattr__(module, "__class__", Announcing)  # the module's own refuses names it does not know
