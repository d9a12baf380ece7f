"""Graphs inside graphs: regions that PyTorch compiles once and runs several times, branches, loops, checkpoints."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

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
    from torch_spyre._inductor import kernels

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
