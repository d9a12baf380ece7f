"""Two judges for compiled programs: PyTorch on the CPU for values, and an independent reader of the graph text."""

import pytest
import torch
from torch_spyre._inductor import kernels

from tests.inductor import harness


@pytest.fixture(autouse=True)
def fresh_compiler_state():
    torch._dynamo.reset()
    kernels.loaded.clear()  # cached code keeps kernels of other tests alive, also those of the evaluator
    torch.manual_seed(0)
    yield


@pytest.fixture
def compiled(monkeypatch):
    """Compiles with the evaluator in place of the C++ compiler and records every graph text."""
    return harness.use_evaluator(monkeypatch)


@pytest.fixture(params=["evaluator", "card"])
def both(request, monkeypatch):
    """The same test twice: with the evaluator, and with the C++ compiler and the emulated card."""
    return (harness.use_evaluator if request.param == "evaluator" else harness.use_compiler)(monkeypatch)
