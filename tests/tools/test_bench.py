"""What bench/ does where a yardstick cannot be measured as planned."""

import sys
from pathlib import Path

import pytest

from bench.exec_vs_torch import Yardstick

ROOT = Path(__file__).resolve().parents[2]

SERVE = """
import os, signal, sys, time
sys.path.insert(0, {root!r})
from bench import exec_vs_torch

def work():
    if os.environ.get("ATEN_CPU_CAPABILITY") != "avx2" or {always}:
        os.kill(os.getpid(), signal.{signal})

exec_vs_torch.WORK["add"] = lambda: [work]
exec_vs_torch.serve(1, time.perf_counter)
"""


def pytorch_that_dies(tmp_path, signal="SIGILL", always=False):
    script = tmp_path / "serve.py"
    script.write_text(SERVE.format(root=str(ROOT), signal=signal, always=always))
    return Yardstick([sys.executable, str(script)])


def test_a_pytorch_that_dies_of_sigill_goes_on_with_avx2(tmp_path):
    pytorch = pytorch_that_dies(tmp_path)
    assert not pytorch.limited
    assert pytorch.seconds("add") > 0 and pytorch.limited
    assert pytorch.seconds("add") > 0


@pytest.mark.parametrize(("signal", "always", "status"), [("SIGILL", True, "-4"), ("SIGSEGV", False, "-11")])
def test_a_pytorch_that_dies_otherwise_is_no_number(tmp_path, signal, always, status):
    with pytest.raises(SystemExit, match=f"PyTorch's process ended with {status} in add"):
        pytorch_that_dies(tmp_path, signal, always).seconds("add")
