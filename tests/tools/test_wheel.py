"""The wheel stands alone: it installs where there is torch and nothing else, and runs what the README shows."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.full
def test_a_wheel_installs_beside_torch_alone_and_runs_the_readmes_first_program(tmp_path):
    # Into a folder of its own, with the objects of the last wheel: building one anew takes minutes.
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "-w", tmp_path, ROOT]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("torch_spyre-*.whl")
    check = [sys.executable, ROOT / "scripts" / "check_wheel.py", wheel]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
