"""Norms against float64, of the values that the card holds: rows that are constant, far from zero, tiny, or have one
large element; widths around a stick; with and without weights; eager and compiled; and what backward is given."""

import itertools

import pytest
import torch
import torch.nn.functional as F

FLOATS = [torch.float16, torch.bfloat16, torch.float32]
WAYS = ["eager", "compiled"]
WIDTHS = [1, 2, 31, 32, 64, 65, 200]
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


def close(found, expected, dtype, places, floor=1.0):
    """Within so many half places of the dtype, of the larger of the value and `floor`."""
    error = (exact(found) - expected).abs() / expected.abs().clamp_min(floor) / HALF_PLACE[dtype]
    assert error.max() <= places, (error.max().item(), (error == error.max()).nonzero().tolist())


def way_of(function, way):
    torch._dynamo.reset()
    return function if way == "eager" else torch.compile(function, fullgraph=True, dynamic=False)


# Results are rounded once from float32. There a row is centred twice, each time to 2^-24 of its spread; scale, weight
# and bias add a rounding each.
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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("inner", [(33,), (5, 33)], ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_backward_of_layer_norm(dtype, inner, way):
    x = (torch.randn(4, 5, 33) + 1000).to(dtype).to("spyre")
    weight, bias = torch.randn(inner).to(dtype).to("spyre"), torch.randn(inner).to(dtype).to("spyre")
    slope = torch.randn(4, 5, 33).to(dtype).to("spyre")

    def gradients(x, weight, bias, slope, run):
        x, weight, bias = (t.detach().clone().requires_grad_() for t in (x, weight, bias))
        run(x, weight, bias).backward(slope)
        return x.grad, weight.grad, bias.grad

    def norm(x, weight, bias):
        return F.layer_norm(x, inner, weight, bias, 1e-12)

    found = gradients(x, weight, bias, slope, way_of(norm, way))
    expected = gradients(*(exact(t) for t in (x, weight, bias, slope)), norm)
    # Backward takes means of 16-bit products: a few roundings of values up to the largest.
    for have, want in zip(found, expected, strict=True):
        close(have, want, dtype, 64, floor=want.abs().max())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_statistics_of_layer_norm(dtype):
    x = rows(70, dtype)
    _, mean, rstd = torch.native_layer_norm(x, [70], None, None, 1e-5)
    wide = exact(x)
    close(mean, wide.mean(-1, keepdim=True), dtype, 4)
    close(rstd, torch.rsqrt(wide.var(-1, keepdim=True, correction=0) + 1e-5), dtype, 4)


@pytest.mark.parametrize("way", WAYS)
def test_operands_in_other_orders(way):
    """Widened values lie in another order than those that came as float32."""
    plain, widened = torch.randn(8, 64), torch.randn(8, 64).half()
    for x, w, b in itertools.product((plain, widened), repeat=3):
        args = [x.to("spyre").float(), w[0].to("spyre").float(), b[1].to("spyre").float()]
        found = way_of(lambda x, w, b: F.layer_norm(x, (64,), w, b), way)(*args)
        close(found, F.layer_norm(exact(args[0]), (64,), exact(args[1]), exact(args[2])), torch.float32, 16)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("eps", [None, 1e-5, 1e-12])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rms_norm(dtype, eps, way):
    for width in (1, 32, 70):
        x, (weight, _) = rows(width, dtype), affine(width, dtype)
        found = way_of(lambda x, w, width=width: F.rms_norm(x, (width,), w, eps), way)(x, weight)
        used = torch.finfo(dtype).eps if eps is None else eps
        close(found, F.rms_norm(exact(x), (width,), exact(weight), used), dtype, PLACES[dtype])


# These keep the dtype of their input between the steps: each of about five is rounded, and a weight scales what
# was before it.
STEPS = 24


def channels(shape, dtype, mean):
    x = torch.randn(shape) + mean
    x[:, 0] = mean + 0.1  # constant
    return x.to(dtype).to("spyre")


CASES = [("eager", 0), ("eager", 10), ("eager", 1000), ("compiled", 1000)]


@pytest.mark.parametrize("way,mean", CASES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_group_norm(dtype, way, mean):
    shapes = [((2, 12, 5, 5), 3), ((4, 64), 8), ((2, 64, 14, 14), 32), ((2, 6, 70), 6)]
    for shape, groups in shapes if way == "eager" else shapes[:2]:
        x, (weight, bias) = channels(shape, dtype, mean), affine(shape[1], dtype)
        found = way_of(lambda x, w, b, g=groups: F.group_norm(x, g, w, b, 1e-5), way)(x, weight, bias)
        close(found, F.group_norm(exact(x), groups, exact(weight), exact(bias), 1e-5), dtype, STEPS)


@pytest.mark.parametrize("way,mean", CASES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_batch_norm_in_training(dtype, way, mean):
    shapes = [(8, 32), (4, 12, 70), (2, 64, 14, 14)]
    for shape in shapes if way == "eager" else shapes[:2]:
        x, (weight, bias) = channels(shape, dtype, mean), affine(shape[1], dtype)
        running = [torch.randn(shape[1]).to(dtype).to("spyre"), torch.rand(shape[1]).to(dtype).to("spyre")]
        wanted = [exact(t) for t in running]
        norm = way_of(lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b, True, 0.1, 1e-5), way)
        close(
            norm(x, weight, bias, *running),
            F.batch_norm(exact(x), *wanted, exact(weight), exact(bias), True, 0.1, 1e-5),
            dtype,
            STEPS,
        )
        for have, want in zip(running, wanted, strict=True):
            close(have, want, dtype, 4)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_variances(dtype, way):
    for x, dim in ((rows(70, dtype)[:-1], -1), (rows(64, dtype)[:-1], 0), (rows(33, dtype).reshape(2, 5, 33), (1, 2))):
        for op in (torch.var, torch.std):
            found = way_of(lambda x, op=op, dim=dim: op(x, dim), way)(x)
            close(found, op(exact(x), dim), dtype, 4)
