"""Settings every Python test shares; read before torch is imported, because settings are read once."""

import atexit
import os
import shutil
import tempfile
import warnings

import pytest

# Tests compare results; where an operator ran is tested on its own.
os.environ.setdefault("TORCH_SPYRE_FALLBACK", "silent")
os.environ.setdefault("TORCH_SPYRE_DOWNCAST_WARN", "0")
# Two test workers share the machine; more threads than cores only slow both down.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Without this, sums in MKL depend on how buffers happen to be aligned, and exact comparisons fail now and then.
os.environ.setdefault("MKL_CBWR", "COMPATIBLE")

# A cache of this process only: a hit from another run would hide what a test watches. Set here, because importing
# Inductor fills in its default.
os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="torchinductor-test-")
atexit.register(shutil.rmtree, os.environ["TORCHINDUCTOR_CACHE_DIR"], ignore_errors=True)

# Tests count compilations, also after `torch._dynamo.reset()`; tests/inductor/test_traces.py is about what is kept.
os.environ.setdefault("SPYRE_TRACE_CACHE", "0")

warnings.filterwarnings("ignore", message=".*is deprecated.*")


@pytest.fixture
def on_the_card_only():
    """A fallback is an error here, with the reason in its message."""
    import torch  # after the settings above

    before = torch.spyre.get_fallback_mode()
    torch.spyre.set_fallback_mode("error")
    yield
    torch.spyre.set_fallback_mode(before)
