"""A bundle that torch.compile saved computes, on its own, what the program computed: spyre-run gives the same bytes.

Programs of the corpus are run again by a judge of tests/programs.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch_spyre import _C
from torch_spyre._inductor import kernels

from tests.programs import generator
from tests.programs.replay import array, difference

ROOT = Path(__file__).resolve().parents[2]
H = torch.float16


@pytest.fixture
def replayed(monkeypatch, tmp_path):
    """Every kernel that runs inside the test is saved, run again by spyre-run, and compared."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    run, count = kernels.LoadedKernel.run, [0]

    def run_twice(self, inputs, outputs, sizes=()):
        before = [array(t) for t in inputs]
        for output in outputs:  # of a result that others write too, this kernel's part
            output.zero_()
        run(self, inputs, outputs, sizes)
        here = tmp_path / str(count[0])
        count[0] += 1
        self._kernel.save(str(here), self.text)
        plan = json.loads(self._kernel.plan_facts())
        assert plan["compulsory"] <= plan["moved"] and (not plan["optimal"] or plan["bound"] == plan["saved"])
        assert not (text := difference(here, before, [array(t) for t in (*inputs, *outputs)])), text

    monkeypatch.setattr(kernels.LoadedKernel, "run", run_twice)
    return count


def half(*shape):
    return torch.randn(shape, dtype=H)


PROGRAMS = {
    "a scalar": (lambda x: x + 1.5, [half(4, 100)]),
    "infinity and minus zero": (lambda x: torch.where(x > 0, x * -0.0, float("-inf")), [half(3, 65)]),
    "a NaN": (lambda x: x * float("nan"), [half(64)]),
    "a ramp": (lambda x: x + torch.arange(100, device=x.device), [half(4, 100)]),
    "a ramp of integers": (lambda x: torch.arange(7, device=x.device) * 3 - x, [torch.arange(7, dtype=torch.int32)]),
    "padding of a product": (lambda x, y: x @ y, [half(33, 70), half(70, 65)]),
    "a masked softmax": (lambda x: x.masked_fill(x < 0, float("-inf")).softmax(-1), [half(5, 70)]),
    "float32": (lambda x: x * 0.1 + 3, [torch.randn(3, 50)]),
    "bfloat16": (lambda x: x * 2 - 0.5, [half(3, 50).bfloat16()]),
    "booleans": (lambda x, y: (x > y) & (x > 0.25), [half(4, 70), half(4, 70)]),
    "words that move as half-words": (lambda x: x.t().contiguous(), [torch.randint(-9, 9, (40, 70))]),
    "float32 that moves as half-words": (lambda x: F.pad(x, (3, 2)), [torch.randn(4, 37)]),
    "an embedding": (lambda i, w: F.embedding(i, w) * 2, [torch.tensor([3, 0, 2]), half(5, 64)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_saved_bundle_has_all_it_needs(replayed, name):
    function, args = PROGRAMS[name]
    torch.compile(function, fullgraph=True)(*[a.to("spyre") for a in args])
    assert replayed[0] == 1


def test_views_say_where_they_lie(replayed):
    base = half(6, 4, 70).to("spyre")
    function = torch.compile(lambda x, y: x + y * 2, fullgraph=True)
    function(base[2:4], base[1:3])
    function(base[0].t(), base[1].t())
    function(base[:, 1], base[:, 3])
    assert replayed[0] == 3


def test_changed_inputs_come_back(replayed):
    def step(cache, new):
        cache[:, 2:4] = new
        return cache.sum(-1) + 0.5

    torch.compile(step)(half(3, 8, 64).to("spyre"), half(3, 2, 64).to("spyre"))
    assert replayed[0] == 1


def compiled(function):
    return torch.compile(function, fullgraph=True)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(replayed, seed):
    generator.generate(seed).run("spyre", compiled)


def filled(spec: dict, generator: np.random.Generator) -> torch.Tensor:
    dtype = getattr(torch, spec["dtype"])
    if dtype.is_floating_point:
        return torch.from_numpy(generator.uniform(-1, 1, spec["shape"])).to(dtype)
    return torch.from_numpy(generator.integers(0, 2 if dtype == torch.bool else 4, spec["shape"])).to(dtype)


@pytest.mark.parametrize("path", sorted((ROOT / "tests/corpus/graphs").glob("*.ir")), ids=lambda p: p.stem)
def test_every_graph_of_the_corpus(path, tmp_path):
    text = path.read_text()
    kernel = _C.compile_graph(text)
    kernel.save(str(tmp_path / "bundle"), text)
    spec = json.loads((tmp_path / "bundle" / "spyreCodeDir" / "launch_spec.json").read_text())["args"]
    generator = np.random.default_rng(0)
    tensors = []
    for arg in spec[: len(kernel.inputs) + len(kernel.outputs)]:
        layout = arg["layout"]
        fields = (layout["device_size"], layout["stride_map"], layout["device_dtype"], layout["element_arrangement"])
        stride = arg.get("stride", torch.empty(arg["shape"], device="meta").stride())
        dtype = getattr(torch, arg["dtype"])
        tensor = kernels.empty_with_layout(arg["shape"], stride, dtype, fields, "spyre")
        tensors.append(tensor.copy_(filled(arg, generator)) if arg["role"] != "output" else tensor)
    inputs, outputs = tensors[: len(kernel.inputs)], tensors[len(kernel.inputs) :]
    before = [array(t) for t in inputs]
    kernel.run(inputs, outputs)
    assert not (text := difference(tmp_path / "bundle", before, [array(t) for t in tensors])), text
    # The same directory through the door of the runtime: its plan brings its own constants.
    again = [kernels.empty_with_layout(t.shape, t.stride(), t.dtype, _fields(t), "spyre") for t in outputs]
    plan = _C.prepare_kernel(str(tmp_path / "bundle" / "spyreCodeDir"))
    _C.launch_jobplan(plan, [*inputs, *again])
    for first, second in zip(outputs, again, strict=True):
        assert array(first).tobytes() == array(second).tobytes()


def _fields(tensor: torch.Tensor) -> tuple:
    layout = tensor.device_tensor_layout()
    names = [str(e).split(".")[-1] for e in (layout.device_dtype, layout.element_arrangement)]
    return list(layout.device_size), list(layout.stride_map), *names
