"""Settings every Python test shares; read before torch is imported, because settings are read once."""

import os
import warnings

# Tests compare results; where an operator ran is tested on its own.
os.environ.setdefault("TORCH_SPYRE_FALLBACK", "silent")
os.environ.setdefault("TORCH_SPYRE_DOWNCAST_WARN", "0")
# Two test workers share the machine; more threads than cores only slow both down.
os.environ.setdefault("OMP_NUM_THREADS", "1")

warnings.filterwarnings("ignore", message=".*is deprecated.*")
