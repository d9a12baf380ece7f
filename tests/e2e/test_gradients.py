"""Gradients, of layers and of losses, and what optimizers do with them: on the card alone, eager and compiled.

The judge is PyTorch on the CPU in float32. 16-bit results are a few roundings of 2^-10 away, of values up to the
largest of a tensor: a sum of terms that are rounded before they are added is not more exact than they are.
"""

import copy

import pytest
import torch
from torch.nn import functional as f

FLOATS = (torch.float16, torch.bfloat16, torch.float32)
ALLOWED = {torch.float16: 2e-2, torch.bfloat16: 2e-2, torch.float32: 2e-4}
#: Compiling takes seconds for each, and bfloat16 goes the way of float16: in every run of the tests one type compiled
#: and one of each width called.
RUNS = [
    pytest.param(dtype, how, id=f"{how}-{dtype}", marks=[pytest.mark.full] if slow else [])
    for how in ("eager", "compiled")
    for dtype in FLOATS
    for slow in [dtype == torch.bfloat16 or (how == "compiled" and dtype != torch.float16)]
]


pytestmark = pytest.mark.usefixtures("on_the_card_only")


@pytest.fixture(autouse=True)
def nothing_compiled_before():
    torch._dynamo.reset()


def values(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def gradients(function, tensors, how):
    tensors = [t.detach().requires_grad_() if t.is_floating_point() else t for t in tensors]
    call = torch.compile(function) if how == "compiled" else function
    result = call(*tensors)
    (result.float() * 0.5).sum().backward()
    return [result.detach(), *(t.grad for t in tensors if t.is_floating_point())]


def check(function, tensors, dtype, how):
    tensors = [t.to(dtype) if t.is_floating_point() else t for t in tensors]
    expected = gradients(function, [t.float() if t.is_floating_point() else t for t in tensors], "eager")
    found = gradients(function, [t.to("spyre") for t in tensors], how)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == (dtype if one.is_floating_point() else one.dtype)
        scale = other.abs().max().clamp_min(1e-3)
        torch.testing.assert_close(one.cpu().float() / scale, other / scale, rtol=0, atol=ALLOWED[dtype])


def distance(found, expected) -> float:
    """Of all elements together: AdamW moves a weight as far for the smallest gradient as for a large one, so where a
    gradient is about nothing its sign decides."""
    found, expected = found.detach().cpu().float(), expected.detach()
    return float((found - expected).square().mean().sqrt() / expected.square().mean().sqrt())


def weighted(function, shape):
    """Multiplies by a pattern, so that the gradient that comes in is not the same everywhere."""
    pattern = values(*shape, seed=9)
    return lambda *tensors: function(*tensors) * pattern.to(tensors[0].device, tensors[0].dtype)


def convolution(shape, weight, **how):
    rank = len(shape) - 2
    transposed = how.pop("transposed", False)
    convolve = getattr(f, f"conv{'_transpose' if transposed else ''}{rank}d")
    out = weight[1] * how.get("groups", 1) if transposed else weight[0]
    tensors = [values(*shape), values(*weight, seed=1), values(out, seed=2)]
    wanted = convolve(*tensors, **how).shape
    return weighted(lambda x, w, b: convolve(x, w, b, **how), wanted), tensors


CASES = {
    "embedding": (lambda w, i: f.embedding(i, w), [values(70, 65), torch.tensor([[3, 0, 3], [69, 1, 3]])]),
    "rows": (lambda x, i: x[i], [values(7, 65), torch.tensor([[3, 0, -1], [6, 1, 3]])]),
    "single_elements": (lambda x, i: x[i, i + 2], [values(7, 65), torch.tensor([3, 0, -1, 3])]),
    "rows_of_rows": (lambda x, i: x[i, i[:, None] - 1], [values(5, 6, 33), torch.tensor([3, 0, 3, 1])]),
    "columns": (lambda x, i: x[:, :, i], [values(2, 3, 5, 33), torch.tensor([-2, 0, -2])]),
    "embedding_padding": (lambda w, i: f.embedding(i, w, padding_idx=1), [values(33, 64), torch.tensor([3, 1, 3, 32])]),
    "embedding_large": (lambda w, i: f.embedding(i, w), [values(2100, 64), torch.tensor([2099, 1024, 0, 1024, 2047])]),
    "layer_norm": (lambda x, w, b: weighted(lambda *t: f.layer_norm(t[0], [65], *t[1:]), (3, 4, 65))(x, w, b),
                   [values(3, 4, 65), values(65, seed=1), values(65, seed=2)]),
    "layer_norm_plain": (weighted(lambda x: f.layer_norm(x, [64]), (5, 64)), [values(5, 64)]),
    "rms_norm": (weighted(lambda x, w: f.rms_norm(x, [130], w, 1e-5), (4, 130)), [values(4, 130), values(130, seed=1)]),
    "rms_norm_plain": (weighted(lambda x: f.rms_norm(x, [64], None, 1e-5), (4, 64)), [values(4, 64)]),
    "cross_entropy": (f.cross_entropy, [values(6, 70), torch.tensor([3, 0, -100, 69, 1, 3])]),
    "cross_entropy_large": (f.cross_entropy, [values(4, 1100), torch.tensor([3, 1024, -100, 1099])]),
    "cross_entropy_sum": (lambda x, t: f.cross_entropy(x, t, reduction="sum", ignore_index=0),
                          [values(6, 33), torch.tensor([3, 0, 32, 0, 1, 3])]),
    "cross_entropy_weights": (lambda x, t: f.cross_entropy(x, t, values(70, seed=1).abs().to(x.device, x.dtype)),
                              [values(6, 70), torch.tensor([3, 0, -100, 69, 1, 3])]),
    "mse_loss": (f.mse_loss, [values(6, 33), values(6, 33, seed=1)]),
    "gelu": (weighted(f.gelu, (3, 65)), [values(3, 65)]),
    "gelu_tanh": (weighted(lambda x: f.gelu(x, approximate="tanh"), (3, 65)), [values(3, 65)]),
    "silu": (weighted(f.silu, (3, 65)), [values(3, 65)]),
    "softmax": (weighted(lambda x: x.softmax(-1), (3, 65)), [values(3, 65)]),
    "linear": (weighted(f.linear, (2, 5, 33)), [values(2, 5, 70), values(33, 70, seed=1), values(33, seed=2)]),
    "batch_norm": (weighted(lambda x, w, b: f.batch_norm(x, None, None, w, b, True), (4, 6, 5, 7)),
                   [values(4, 6, 5, 7), values(6, seed=1), values(6, seed=2)]),
    "group_norm": (weighted(lambda x, w, b: f.group_norm(x, 2, w, b), (3, 8, 10)),
                   [values(3, 8, 10), values(8, seed=1), values(8, seed=2)]),
    "weight_norm": (weighted(lambda v, g: torch._weight_norm(v, g, 2), (8, 6, 5)),
                    [values(8, 6, 5), values(1, 1, 5, seed=1).abs() + 0.5]),
    "weight_norm_rows": (weighted(lambda v, g: torch._weight_norm(v, g, 0), (5, 70)),
                         [values(5, 70), values(5, 1, seed=1).abs() + 0.5]),
    "max_pool": (weighted(lambda x: f.max_pool2d(x, 3, 2, 1), (2, 4, 4, 5)), [values(2, 4, 8, 9)]),
    "average_pool": (weighted(lambda x: f.adaptive_avg_pool2d(x, 1), (2, 4, 1, 1)), [values(2, 4, 6, 5)]),
    "conv2d": convolution((2, 3, 9, 10), (5, 3, 3, 3), padding=1),
    "patches_as_rows": (weighted(lambda x, w, b: f.conv2d(x, w, b, stride=8).flatten(2).mT + 1.0, (2, 4, 32)),
                        [values(2, 3, 16, 16), values(32, 3, 8, 8, seed=1), values(32, seed=2)]),
    "conv2d_patches": convolution((2, 3, 16, 16), (32, 3, 8, 8), stride=8),
    "conv2d_stride": convolution((2, 4, 9, 10), (6, 4, 3, 2), stride=(2, 3), padding=(1, 0), dilation=(1, 2)),
    "conv2d_alone": convolution((2, 6, 7, 9), (6, 1, 3, 3), padding=1, groups=6),
    "conv2d_groups": convolution((2, 6, 7, 8), (4, 3, 3, 3), groups=2),
    "conv1d": convolution((2, 3, 50), (4, 3, 5), stride=2),
    "conv1d_groups": convolution((2, 8, 20), (8, 4, 16), padding=8, groups=2),
    "conv_transpose2d": convolution((2, 4, 5, 6), (4, 3, 3, 3), stride=2, padding=1, output_padding=1, transposed=True),
    "conv_transpose1d_groups": convolution((2, 4, 9), (4, 2, 3), stride=2, groups=2, transposed=True),
}  # fmt: skip


@pytest.mark.parametrize("dtype, how", RUNS)
@pytest.mark.parametrize("case", CASES)
def test_gradients(case, dtype, how):
    function, tensors = CASES[case]
    check(function, tensors, dtype, how)


class TinyLanguageModel(torch.nn.Module):
    """Two tokens to the next: an embedding that is also the last layer, a norm, a hidden layer, a residual."""

    def __init__(self, words=33, width=64):
        super().__init__()
        self.embedding = torch.nn.Embedding(words, width)
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 70)
        self.down = torch.nn.Linear(70, width, bias=False)
        self.head = torch.nn.Linear(width, words, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens, wanted):
        x = self.embedding(tokens)
        x = x + self.down(f.gelu(self.up(self.norm(x))))
        return f.cross_entropy(self.head(x).flatten(0, 1).float(), wanted.flatten())


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3, eps=1e-4),
}


def train(model, optimizer, tokens, wanted, how):
    call = torch.compile(model) if how == "compiled" else model
    optimizer = OPTIMIZERS[optimizer](model.parameters())
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = call(tokens, wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("dtype, how", RUNS)
def test_training_steps(dtype, optimizer, how):
    torch.manual_seed(0)
    model = TinyLanguageModel()
    card = copy.deepcopy(model).to(dtype).to("spyre")
    tokens, wanted = torch.randint(33, (2, 5)), torch.randint(33, (2, 5))
    expected = train(model, optimizer, tokens, wanted, "eager")
    found = train(card, optimizer, tokens.to("spyre"), wanted.to("spyre"), how)
    # 16-bit weights move by steps of 2^-10 of their size, three times.
    assert found == pytest.approx(expected, rel=2e-2 if dtype != torch.float32 else 1e-4)
    assert distance(card.up.weight, model.up.weight) < (2e-2 if dtype != torch.float32 else 1e-4)


def test_a_tied_weight_stays_one_on_the_way_to_the_card_and_back():
    model = TinyLanguageModel().to(torch.float16).to("spyre")
    assert model.head.weight is model.embedding.weight
    assert len(list(model.parameters())) == 6
    model = model.cpu()
    assert model.head.weight is model.embedding.weight and model.head.weight.device.type == "cpu"
    linears = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    linears[1].weight = linears[0].weight
    linears.to("spyre")
    assert linears[1].weight is linears[0].weight and linears[1].bias is not linears[0].bias


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(16, 3), (3, 16), (70,), (2, 32, 2, 2), (65, 33)], ids=str)
def test_what_optimizers_compute_beside_weights_of_linear_layers(shape, dtype):
    """Weights and what is computed for them lie as they do in a training step: the weight was placed for products."""
    module = torch.nn.Linear(1, 1) if len(shape) == 2 else torch.nn.Module()
    module.weight = torch.nn.Parameter(values(*shape))
    card = copy.deepcopy(module).to(dtype).to("spyre")
    for optimizer in OPTIMIZERS:
        for m in (module, card):
            gradient = values(*shape, seed=3).to(m.weight.device, m.weight.dtype)
            expanded = torch.ones((), dtype=m.weight.dtype, device=m.weight.device).expand(shape) * 0.5
            m.weight.grad = gradient * expanded + m.weight.detach().abs().mean()
            OPTIMIZERS[optimizer]([m.weight]).step()
        assert distance(card.weight, module.weight) < (1e-2 if dtype != torch.float32 else 1e-5)


@pytest.mark.parametrize("shape", [(2, 12, 128), (3, 33), (64, 64)], ids=str)
def test_gradients_that_lie_in_different_orders_add_up(shape):
    """A norm as Llama has it: float32 between fp16, read twice, so that its gradient is a sum made in place."""

    def norm(x, weight):
        wide = x.float()
        normal = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return weight * normal.to(x.dtype)

    check(weighted(norm, shape), [values(*shape), values(shape[-1], seed=1)], torch.float16, "eager")


@pytest.mark.parametrize("shape", [(12, 128), (5, 70)], ids=str)
def test_a_widened_tensor_takes_others_in_place(shape):
    wide = values(*shape).to(torch.float16).to("spyre").float()
    view, other = wide[1:], values(*shape, seed=1)
    expected = wide.cpu() + other
    assert wide.add_(other.to("spyre")) is wide
    torch.testing.assert_close(wide.cpu(), expected, rtol=0, atol=0)
    torch.testing.assert_close(view.cpu(), expected[1:], rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32], ids=str)
@pytest.mark.parametrize("shape", [(2, 12), (3, 32), (70,)], ids=str)
def test_labels_are_padded_with_a_number(shape, dtype):
    x = (values(*shape) * 100).to(dtype)
    found = f.pad(x.to("spyre"), (1, 2), value=-100)
    assert torch.equal(found.cpu(), f.pad(x, (1, 2), value=-100))
