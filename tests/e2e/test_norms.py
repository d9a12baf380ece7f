"""Norms against float64, of the values that the card holds: rows that are constant, far from zero, tiny, or have one
large element; widths around a stick; with and without weights; eager and compiled; and what backward is given."""

import itertools

import pytest
import torch
import torch.nn.functional as F

FLOATS = [torch.float16, torch.bfloat16, torch.float32]
WAYS = ["eager", "compiled"]
WIDTHS = [1, 2, 31, 32, 33, 63, 64, 65, 100, 128, 200]
HALF_PLACE = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-10, torch.float32: 2.0**-24}


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    torch.spyre.reset_metrics()
    yield
    assert not torch.spyre.metrics()["fallbacks"]


def rows(width, dtype, constant=True):
    """One row of each kind, on the card."""
    normal = torch.randn(8, width)
    kinds = [normal[0], normal[1] + 10, normal[2] + 1000, normal[3] * 1e-4, normal[4] * 1e4]
    outlier = normal[5].clone()
    outlier[width // 2] = 3e4
    kinds.append(outlier)
    if constant:
        kinds += [torch.full((width,), value) for value in (0.0, 10.1, -1000.3, 60000.0)]
    return torch.stack(kinds).to(dtype).to("spyre")


def affine(width, dtype):
    return torch.randn(width).to(dtype).to("spyre"), torch.randn(width).to(dtype).to("spyre")


def exact(tensor):
    return None if tensor is None else tensor.float().cpu().double()


def close(found, expected, dtype, places=1.1, floor=1.0):
    """Within so many half places of the dtype, of the larger of the value and `floor`."""
    error = (exact(found) - expected).abs() / expected.abs().clamp_min(floor) / HALF_PLACE[dtype]
    assert error.max() <= places, (error.max().item(), (error == error.max()).nonzero().tolist())


def way_of(function, way):
    torch._dynamo.reset()
    return function if way == "eager" else torch.compile(function, fullgraph=True, dynamic=False)


# Results are rounded once from float32. There a row is centred twice, each time to 2^-24 of its spread; scale, weight and
# bias add a rounding each.
PLACES = {torch.float16: 1.01, torch.bfloat16: 1.01, torch.float32: 16}


def check_layer_norm(width, dtype, way, eps, given, constant=True):
    x = rows(width, dtype, constant)
    weight, bias = affine(width, dtype) if given else (None, None)
    found = way_of(lambda x, w, b: F.layer_norm(x, (width,), w, b, eps), way)(x, weight, bias)
    close(found, F.layer_norm(exact(x), (width,), exact(weight), exact(bias), eps), dtype, PLACES[dtype])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("width", WIDTHS)
def test_layer_norm_of_every_kind_of_row(width, dtype, way):
    check_layer_norm(width, dtype, way, 1e-12, given=True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_layer_norm_with_every_epsilon(dtype, way):
    check_layer_norm(70, dtype, way, 1e-5, given=False)
    check_layer_norm(64, dtype, way, 0.0, given=False, constant=False)


@pytest.mark.full
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_layer_norm_of_every_width(dtype):
    for width, eps in itertools.product(range(1, 201), (1e-12, 1e-5)):
        check_layer_norm(width, dtype, "eager", eps, given=width % 2 == 0)
        if width % 7 == 0:
            check_layer_norm(width, dtype, "compiled", eps, given=width % 2 == 1)
