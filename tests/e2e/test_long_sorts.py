"""Orders of more elements than the card counts in 16 bits: ranks and positions in 32."""

import pytest
import torch

pytestmark = pytest.mark.usefixtures("on_the_card_only")


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64], ids=str)
@pytest.mark.parametrize("shape", [(1025,), (2, 2047), (4000,), (3, 1500)], ids=str)
def test_long_rows_are_sorted(shape, dtype):
    if dtype == torch.float16 and len(shape) > 1:
        pytest.skip("all pairs of several widened rows are more than a core reaches: the CPU sorts them, counted")
    generator = torch.Generator().manual_seed(shape[-1])
    x = torch.randint(-100, 100, shape, generator=generator).to(dtype)  # many are equal
    for descending in (False, True):
        found = x.to("spyre").sort(stable=True, descending=descending)
        expected = x.sort(stable=True, descending=descending)
        assert torch.equal(found.values.cpu(), expected.values)
        assert torch.equal(found.indices.cpu(), expected.indices)
    values, positions = torch.topk(x.to("spyre"), 50)
    assert torch.equal(values.cpu(), x.topk(50).values)
    assert torch.equal(x.gather(-1, positions.cpu()), values.cpu())
    if x.dim() == 1:
        found = torch.unique(x.to("spyre"), return_inverse=True, return_counts=True)
        expected = x.unique(return_inverse=True, return_counts=True)
        assert all(torch.equal(f.cpu(), e) for f, e in zip(found, expected, strict=True))


def test_nan_is_the_largest_of_many():
    x = torch.randn(3000, generator=torch.Generator().manual_seed(0))
    x[::7] = float("nan")
    for dtype in (torch.float16, torch.float32):
        given = x.to(dtype).to("spyre")
        assert torch.equal(given.argsort(stable=True).cpu(), given.cpu().argsort(stable=True))
