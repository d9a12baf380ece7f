"""Sizes that an operator finds out while a program runs: how many elements are not zero, say."""

import pytest
import torch
from torch._dynamo.utils import counters

pytestmark = pytest.mark.usefixtures("on_the_card_only")

#: None, one, and around the ends of sticks; of 300.
COUNTS = (37, 0, 1, 65, 300)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    counters.clear()


def mask_of(count: int, length: int) -> torch.Tensor:
    mask = torch.zeros(length, dtype=torch.bool)
    mask[torch.randperm(length)[:count]] = True
    return mask


def put(x, mask):
    return x.clone().index_put((mask.nonzero().squeeze(1),), x[mask] * 2)


PROGRAMS = {
    "rows": lambda x, m: (x[m] * 2).relu() + 1,
    "sum of rows": lambda x, m: (x[m] * 2).float().sum(0),
    "columns": lambda x, m: torch.softmax(x[m].t(), -1),
    "both kinds": lambda x, m: torch.cat([x[m], x[~m]]) * 2,
    "products": lambda x, m: x[m] @ x[m].t(),
    "positions": lambda x, m: m.nonzero() * 2,
    "written back": put,
    "added back": lambda x, m: torch.zeros_like(x).index_add(0, m.nonzero().squeeze(1), x[m] * 2),
    "elements": lambda x, m: torch.masked_select(x[:, 0], m) * 2 + 1,
}


@pytest.mark.parametrize("name", PROGRAMS)
@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_one_program_for_all_counts(name):
    """There is room for as many as there are elements to count."""
    torch.spyre.reset_metrics()
    torch.spyre.set_fallback_mode("silent")  # `nonzero` itself runs on the CPU
    compiled = torch.compile(PROGRAMS[name], fullgraph=True)
    x = (torch.randn(300, 64) / 4).half()
    for count in COUNTS:
        mask = mask_of(count, 300)
        with torch.no_grad():
            found = compiled(x.to("spyre"), mask.to("spyre")).cpu().float()
        expected = PROGRAMS[name](x.float(), mask).float()
        torch.testing.assert_close(found, expected, rtol=1e-2, atol=2e-2)
    assert counters["stats"]["unique_graphs"] == 1
    assert not set(torch.spyre.metrics()["fallbacks"]) - {"aten::nonzero"}


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_what_is_counted_may_change_in_length():
    """More than the usual room: what is counted of an open length has its capacity."""
    torch.spyre.set_fallback_mode("silent")  # a long mask is read on the CPU
    compiled = torch.compile(lambda x, m: (x[m] * 2).float().sum(0), fullgraph=True, dynamic=True)
    for length, count in ((300, 37), (5, 5), (2500, 1250), (2500, 2500)):
        x, mask = torch.randint(-3, 4, (length, 64)).half(), mask_of(count, length)
        with torch.no_grad():
            assert torch.equal(compiled(x.to("spyre"), mask.to("spyre")).cpu(), (x[mask] * 2).float().sum(0))
    assert counters["stats"]["unique_graphs"] <= 2


@pytest.mark.parametrize("name", ["rows", "elements", "positions"])
def test_pytorch_breaks_the_graph_by_default(name):
    """What follows is compiled for sizes that change."""
    torch.spyre.set_fallback_mode("silent")
    compiled = torch.compile(PROGRAMS[name], dynamic=True)
    x = (torch.randn(300, 64) / 4).half()
    for count in (37, 5, 130):
        mask = mask_of(count, 300)
        with torch.no_grad():
            found = compiled(x.to("spyre"), mask.to("spyre")).cpu().float()
        torch.testing.assert_close(found, PROGRAMS[name](x.float(), mask).float(), rtol=1e-2, atol=2e-2)
    assert counters["stats"]["unique_graphs"] <= 2 and counters["graph_break"]


@torch._dynamo.config.patch(capture_scalar_outputs=True)
def test_a_size_without_an_end_is_no_size_of_the_card():
    """Operators on such tensors run on the CPU, and the report says why."""
    compiled = torch.compile(lambda x, m: torch.zeros(m.sum().item(), 64, dtype=x.dtype, device=x.device) + x[0])
    x = torch.randint(-3, 4, (300, 64)).half()
    for count in (37, 5):
        found = compiled(x.to("spyre"), mask_of(count, 300).to("spyre"))
        assert torch.equal(found.cpu(), x[:1].expand(count, 64))
    assert "could be any" in torch.spyre.compile_report()
