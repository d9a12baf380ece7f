"""Graphs inside graphs: regions that PyTorch compiles once and runs several times, branches, loops, checkpoints."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint
from torch_spyre._inductor import kernels, regions

pytestmark = pytest.mark.usefixtures("on_the_card_only")


class Block(torch.nn.Module):
    """A layer as in models: what it adds to, and a product beside it."""

    def __init__(self, width: int):
        super().__init__()
        self.norm, self.up = torch.nn.LayerNorm(width), torch.nn.Linear(width, width)

    def forward(self, x):
        return x + torch.nn.functional.gelu(self.up(self.norm(x)))


class Stack(torch.nn.Module):
    def __init__(self, width: int, call):
        super().__init__()
        torch.manual_seed(0)
        self.layers, self.call = torch.nn.ModuleList(Block(width) for _ in range(3)), call

    def forward(self, x):
        for layer in self.layers:
            x = self.call(layer, x)
        return x.sum(-1)


@torch.compiler.nested_compile_region
def as_region(layer, x):
    return layer(x)


def near(found, expected):
    torch.testing.assert_close(found.float().cpu(), expected.float(), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("width", (64, 100))
@pytest.mark.parametrize("dtype", (torch.float16, torch.float32))
def test_a_region_is_compiled_once(width, dtype):
    x = torch.randn(5, width, dtype=dtype)
    model = Stack(width, as_region).to(dtype).eval()
    expected = model(x)
    compiled = torch.compile(model.to("spyre"), fullgraph=True)
    with torch.no_grad():
        near(compiled(x.to("spyre")), expected)
    assert len({k.text for k in _loaded() if "layer_norm" in k.text}) == 1


def _loaded():
    return list(kernels.loaded)


@pytest.mark.parametrize("call", (as_region, lambda layer, x: checkpoint(layer, x, use_reentrant=False)))
def test_gradients_of_regions(call):
    x = torch.randn(5, 64)
    model = Stack(64, call)
    model(x).sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model = model.to("spyre")
    torch.compile(model)(x.to("spyre")).sum().backward()
    for p, e in zip(model.parameters(), expected, strict=True):
        near(p.grad, e)


def test_a_region_whose_inputs_lie_otherwise_the_second_time():
    def twice(x, y):
        return as_region(torch.nn.functional.silu, x) + as_region(torch.nn.functional.silu, y)

    x, y = torch.randn(4, 100, dtype=torch.float16), torch.randn(4, 100, dtype=torch.float16)
    # The second one's rows are a part of longer ones.
    wide = torch.zeros(4, 130, dtype=torch.float16)
    wide[:, :100] = y
    near(torch.compile(twice)(x.to("spyre"), wide.to("spyre")[:, :100].clone()), twice(x, y))
    near(torch.compile(twice)(x.to("spyre"), y.t().contiguous().to("spyre").t()), twice(x, y))


@pytest.mark.parametrize("taken", (True, False))
def test_a_branch(taken):
    def branch(p, x):
        return torch.cond(p, lambda x: x.sin() + 1, lambda x: x.cos() * 2, (x,))

    x = torch.randn(3, 70, dtype=torch.float16)
    p = torch.tensor(taken)
    near(torch.compile(branch)(p, x.to("spyre")), branch(p, x))
    near(torch.compile(branch)(p.to("spyre"), x.to("spyre")), branch(p, x))


def test_a_loop():
    from torch._higher_order_ops import while_loop

    def loop(n, x):
        return while_loop(lambda n, x: n < 5, lambda n, x: (n + 1, x * 2), (n, x))

    x = torch.ones(3, 70, dtype=torch.float16)
    found = torch.compile(loop)(torch.tensor(2), x.to("spyre"))
    assert int(found[0]) == 5
    near(found[1], x * 8)


class Norm(torch.nn.Module):
    """Written out, as in models."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(64) + 0.5)

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.weight * wide.to(x.dtype)


class Layer(torch.nn.Module):
    """A decoder layer of few numbers."""

    def __init__(self):
        super().__init__()
        self.before, self.between = Norm(), Norm()
        self.query, self.key, self.value, self.out = (torch.nn.Linear(64, 64) for _ in range(4))
        self.gate, self.up, self.down = torch.nn.Linear(64, 128), torch.nn.Linear(64, 128), torch.nn.Linear(128, 64)

    def forward(self, x):
        y = self.before(x)
        heads = [f(y).view(*y.shape[:2], 4, 16).transpose(1, 2) for f in (self.query, self.key, self.value)]
        y = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        y = self.between(x)
        return x + self.down(torch.nn.functional.silu(self.gate(y)) * self.up(y))


def _layers(count: int) -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(*(Layer() for _ in range(count))).half().eval()


@pytest.mark.parametrize("train", (False, True))
def test_layers_that_repeat_are_compiled_once(train):
    x, model = torch.randn(2, 10, 64, dtype=torch.float16), _layers(regions.LEAST_TIMES)

    def run(x, compiled):
        model.zero_grad()
        if not train:
            with torch.no_grad():
                return [compiled(x)]
        out = compiled(x)
        out.float().square().mean().backward()
        return [out.detach(), *(p.grad.clone() for p in model.parameters())]

    expected = run(x, model)
    model.to("spyre")
    before = {k.number for k in _loaded()}
    for found, e in zip(run(x.to("spyre"), torch.compile(model, fullgraph=True)), expected, strict=True):
        near(found, e)
    new = [k for k in _loaded() if k.number not in before]
    layers = sum(k.text.count("attention.default") for k in new)
    assert layers == (len(model) if train else 1)  # PyTorch takes the regions of a training step apart again


def test_few_layers_are_one_kernel():
    x, model = torch.randn(2, 10, 64, dtype=torch.float16), _layers(2)
    expected = model(x)
    before = {k.number for k in _loaded()}
    with torch.no_grad():
        near(torch.compile(model.to("spyre"))(x.to("spyre")), expected)
    assert len([k for k in _loaded() if k.number not in before]) == 1


def test_graphs_of_the_cpu_stay_as_they_are():
    seen = []

    def look(graph, inputs):
        seen.append([n.target for n in graph.graph.nodes])
        return graph.forward

    torch.compile(_layers(regions.LEAST_TIMES).float(), backend=look)(torch.randn(2, 10, 64))
    assert seen and torch.ops.higher_order.invoke_subgraph not in seen[0]


def _forward(model, x) -> dict:
    """What one pass of a model that is compiled counts."""
    torch._dynamo.reset()
    compiled = torch.compile(model)
    with torch.no_grad():
        compiled(x)
        torch.spyre.synchronize()
        torch.spyre.reset_metrics()
        compiled(x)
        torch.spyre.synchronize()
    return torch.spyre.metrics()


def test_layers_that_are_compiled_once_read_what_they_are_given(monkeypatch):
    """Weights lie as products read them, results as the kernel before left them: nothing is copied in between."""
    x, count = torch.randn(2, 10, 64, dtype=torch.float16).to("spyre"), regions.LEAST_TIMES + 2
    model = _layers(count).to("spyre")
    found = _forward(model, x)
    monkeypatch.setattr(regions, "LEAST_TIMES", count + 1)
    whole = _forward(model, x)
    assert whole["launches"] == 1
    assert found["launches"] <= count + 1

    def moved(counted):
        return counted["hbm_bytes_read"] + counted["hbm_bytes_written"]

    assert moved(found) <= 1.05 * moved(whole)
