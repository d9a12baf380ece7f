"""Training steps whose sizes change: forward and backward are compiled once, gradients are those of PyTorch."""

import copy

import pytest
import torch
from torch._dynamo.utils import counters
from torch.nn import functional as f

pytestmark = pytest.mark.usefixtures("on_the_card_only")

#: Two of one range, one of the next.
LENGTHS = (37, 5, 70)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)


class Attention(torch.nn.Module):
    """What a decoder layer is made of, in small."""

    def __init__(self, width=64, heads=2, words=128):
        super().__init__()
        self.shape = heads, width // heads
        self.words = torch.nn.Embedding(words, width)
        self.norm = torch.nn.LayerNorm(width)
        self.parts = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(3))
        self.out, self.head = torch.nn.Linear(width, width), torch.nn.Linear(width, words)

    def forward(self, tokens, wanted):
        x = self.words(tokens)
        rows = self.norm(x)
        query, key, value = (part(rows).view(*rows.shape[:2], *self.shape).transpose(1, 2) for part in self.parts)
        seen = f.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
        return f.cross_entropy(self.head(f.gelu(x)).flatten(0, 1), wanted.flatten())


class Rows(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 64))

    def forward(self, x, wanted):
        return (self.steps(x) - wanted).pow(2).mean()


def tokens_of(length):
    return torch.randint(0, 128, (1, length)), torch.randint(0, 128, (1, length))


def rows_of(length):
    return torch.randn(length, 64), torch.randn(length, 64)


@pytest.mark.parametrize(
    ("kind", "make", "marked"),
    [(Rows, rows_of, False), (Rows, rows_of, True), (Attention, tokens_of, False)],
    ids=["rows", "marked rows", "attention"],
)
def test_a_step_is_compiled_once(kind, make, marked):
    torch.spyre.reset_metrics()
    judge = kind()
    model = copy.deepcopy(judge).to("spyre")
    step = torch.compile(model, dynamic=None if marked else True)
    for length in LENGTHS:
        given = make(length)
        on_card = [g.to("spyre") for g in given]
        for tensor in on_card if marked else ():
            torch._dynamo.mark_dynamic(tensor, given[0].shape.index(length), min=2, max=128)
        judge.zero_grad()
        model.zero_grad()
        expected, found = judge(*given), step(*on_card)
        expected.backward()
        found.backward()
        torch.testing.assert_close(found.detach().cpu(), expected.detach(), rtol=1e-5, atol=1e-6)
        most = max(p.grad.abs().max().item() for p in judge.parameters())
        for parameter, other in zip(model.parameters(), judge.parameters(), strict=True):
            torch.testing.assert_close(parameter.grad.cpu(), other.grad, rtol=1e-4, atol=1e-5 * most)
    assert counters["stats"]["unique_graphs"] == 1
    metrics = torch.spyre.metrics()
    assert metrics["fallbacks"] == {} and metrics["interpreted_executes"] == 0
