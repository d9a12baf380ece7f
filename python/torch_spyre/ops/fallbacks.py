"""The warning of operators that run on the CPU, where scripts import it from."""

from torch_spyre.fallback import FallbackWarning

__all__ = ["FallbackWarning"]
