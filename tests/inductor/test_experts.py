"""What mixtures of experts consist of: counts by expert, products of groups of rows, single elements by an index."""

import pytest
import torch

from tests.inductor.harness import assert_near

BOTH = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])


def run(function, *given, compiled):
    torch.spyre.reset_metrics()
    found = (torch.compile(function) if compiled else function)(*(x.to("spyre") for x in given))
    return found.cpu()


@BOTH
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32], ids=str)
def test_histc_counts_experts(dtype, compiled):
    """As routers call it, of integers on every device but the CPU."""
    experts = torch.randint(0, 8, (70,))
    found = run(lambda x: torch.histc(x, bins=8, min=0, max=7), experts.to(dtype), compiled=compiled)
    assert found.dtype == dtype and torch.equal(found.long(), torch.bincount(experts, minlength=8))
    assert torch.spyre.metrics()["fallbacks"] == {}


@BOTH
def test_histc_of_floats(compiled):
    x = torch.randn(300)
    for bins, low, high in ((10, -1, 1), (7, -2, 3), (64, 0, 1)):
        found = run(lambda x: torch.histc(x, bins, low, high), x, compiled=compiled)  # noqa: B023
        assert torch.equal(found, torch.histc(x, bins, low, high))


def test_histc_finds_its_own_ends():
    x = torch.randn(300)
    assert torch.equal(torch.histc(x.to("spyre"), 10).cpu(), torch.histc(x, 10))


@pytest.mark.parametrize("least", [0, 5, 30])
def test_bincount(least):
    x = torch.randint(0, 20, (100,))
    assert torch.equal(
        run(lambda x: torch.bincount(x, minlength=least), x, compiled=False), x.bincount(minlength=least)
    )
    with pytest.raises(RuntimeError):
        torch.bincount(torch.tensor([1, -1]).to("spyre"))


@BOTH
@pytest.mark.parametrize("sizes", [[3, 5, 2, 8], [0, 18, 0, 0], [1, 0, 16, 1], [0, 0, 0, 0]], ids=str)
def test_rows_are_multiplied_with_the_matrix_of_their_group(sizes, compiled):
    x, weight = torch.randn(18, 64, dtype=torch.bfloat16), torch.randn(4, 64, 72, dtype=torch.bfloat16)
    ends = torch.tensor(sizes).cumsum(0, dtype=torch.int32)
    found = run(torch._grouped_mm, x, weight, ends, compiled=compiled)
    expected, start = torch.zeros(18, 72), 0
    for w, end in zip(weight, ends.tolist(), strict=True):
        expected[start:end] = x[start:end].float() @ w.float()
        start = end
    assert_near(found.float()[:start], expected[:start], rtol=2e-2, atol=5e-2)


@BOTH
def test_sums_of_groups_of_columns(compiled):
    x, y = torch.randn(64, 24, dtype=torch.bfloat16), torch.randn(24, 72, dtype=torch.bfloat16)
    ends = torch.tensor([3, 8, 8, 24], dtype=torch.int32)
    found = run(torch._grouped_mm, x, y, ends, compiled=compiled).float()
    start = 0
    for group, end in zip(found, ends.tolist(), strict=True):
        assert_near(group, x[:, start:end].float() @ y[start:end].float(), rtol=2e-2, atol=5e-2)
        start = end


@BOTH
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64], ids=str)
def test_single_elements_by_an_index(dtype, compiled):
    x, order = torch.arange(90).to(dtype), torch.randperm(90)

    def permuted(x, order):
        back = torch.empty_like(order)
        back[order] = torch.arange(order.numel(), device=order.device)
        return x[order], back, x[order][back]

    torch.spyre.reset_metrics()
    found = (torch.compile(permuted) if compiled else permuted)(x.to("spyre"), order.to("spyre"))
    for f, e in zip(found, permuted(x, order), strict=True):
        assert torch.equal(f.cpu(), e)
    assert torch.spyre.metrics()["fallbacks"] == {}


# Steps of these forms meet layouts that only a whole kernel can choose for.
_EAGER_ON_CPU = {"aten::_grouped_mm", "aten::cumsum", "aten::gather", "aten::sort"}


def mixture(config, model, experts=4):
    sizes = dict(vocab_size=256, hidden_size=128, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4)
    routing = dict(num_key_value_heads=2, num_local_experts=experts, num_experts_per_tok=2, max_position_embeddings=128)
    torch.manual_seed(0)
    return model(config(**sizes, **routing)).eval()


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.full)], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", ["Mixtral", "GraniteMoe"])
def test_stock_models(name, compiled):
    transformers = pytest.importorskip("transformers")
    model = mixture(getattr(transformers, f"{name}Config"), getattr(transformers, f"{name}ForCausalLM"))
    ids = torch.randint(0, 256, (2, 9))
    with torch.no_grad():
        expected = model(ids).logits
        model = model.half().to("spyre")
        torch.spyre.reset_metrics()
        found = (torch.compile(model) if compiled else model)(ids.to("spyre")).logits
    assert_near(found.float(), expected, rtol=5e-2, atol=5e-2)
    on_cpu = set(torch.spyre.metrics()["fallbacks"])
    assert on_cpu <= (set() if compiled else _EAGER_ON_CPU)
