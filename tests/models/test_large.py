"""Weights of large models are made within little more than their own memory."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PEAK = """
import re, torch
from pathlib import Path
from tests.models import large

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

weights = large.seeded(torch.float16)
weights("a small one", torch.Size([large.DRAWN + 64]))
before = peak()
made = weights("an embedding", torch.Size([2**15, 2**12]))
print((peak() - before) / (made.numel() * made.element_size()))
"""


def test_an_embedding_is_drawn_in_the_memory_it_needs():
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run([sys.executable, "-c", PEAK], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1.2  # at once, in float32 and then in float16, it would be 3
