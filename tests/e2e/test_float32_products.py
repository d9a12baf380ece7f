"""Products of float32 on the card: sums of products of 16-bit parts, called directly and through torch.compile.

The judge is float64, the yardstick what PyTorch on the CPU is off by in float32: errors are counted in units of 2^-24
of the sum of the products' magnitudes, which is what float32 itself can promise.
"""

import pytest
import torch

UNIT = 2.0**-24


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.spyre.reset_metrics()
    torch.manual_seed(0)
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


def rand(*shape, scale=1.0):
    return torch.randn(shape) * scale


def units(found, x, y):
    """The largest error of a product, in units of the last place of what was added up."""
    x, y = x.double(), y.double()
    most = (x.abs() @ y.abs()).clamp_min(torch.finfo(torch.float32).tiny)
    return ((found.cpu().double() - x @ y).abs() / most).max().item() / UNIT


def on_card(function, *args, compiled):
    run = torch.compile(function, fullgraph=True) if compiled else function
    torch.spyre.reset_metrics()
    result = run(*[a.to("spyre") for a in args])
    assert not torch.spyre.metrics()["fallbacks"]
    return result


SHAPES = {
    "whole_sticks": ((4, 64), (64, 128)),
    "short_depth": ((5, 16), (16, 64)),
    "ragged": ((3, 70), (70, 100)),
    "one_row": ((1, 128), (128, 64)),
    "one_column": ((65, 65), (65, 1)),
    "small": ((2, 3), (3, 2)),
    "stack": ((3, 5, 70), (3, 70, 33)),
    "heads": ((2, 3, 4, 64), (2, 3, 64, 32)),
    "shared": ((2, 3, 4, 64), (64, 96)),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_product_is_as_good_as_float32(name, compiled):
    x, y = (rand(*shape) for shape in SHAPES[name])
    found = on_card(torch.matmul, x, y, compiled=compiled)
    assert found.dtype == torch.float32 and units(found, x, y) <= 2 * max(units(x @ y, x, y), 1)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("size", [(64, 128, 64), (5, 70, 33), (16, 16, 3)], ids=str)
@pytest.mark.parametrize("transposed", ["left", "right", "both"])
def test_transposed_operands(transposed, size, compiled):
    m, k, n = size
    x = rand(k, m).t() if transposed != "right" else rand(m, k)
    y = rand(n, k).t() if transposed != "left" else rand(k, n)
    args = (x.t() if transposed != "right" else x, y.t() if transposed != "left" else y)

    def multiply(x, y):
        return (x.t() if transposed != "right" else x) @ (y.t() if transposed != "left" else y)

    found = on_card(multiply, *(a.contiguous() for a in args), compiled=compiled)
    assert units(found, x, y) <= 2 * max(units(x @ y, x, y), 1)


def test_ill_scaled_rows_columns_and_elements():
    x, y = rand(33, 64), rand(64, 40)
    rows, columns = 10.0 ** torch.linspace(-15, 15, 33)[:, None], 10.0 ** torch.linspace(-15, 15, 40)
    spread = [10.0 ** (torch.rand(t.shape) * 10 - 5) for t in (x, y)]
    for a, b in ((x * rows, y * columns), (x * spread[0], y * spread[1]), (x * 1e-30, y * 1e30), (x * 1e35, y * 1e-20)):
        found = on_card(torch.matmul, a, b, compiled=False)
        assert units(found, a, b) <= 2 * max(units(a @ b, a, b), 2)


def test_cancellation():
    x = rand(8, 64)
    a, b = torch.cat([x, -x], 1), rand(64, 16).repeat(2, 1) * (1 + 2.0**-20 * rand(128, 16))
    found = on_card(torch.matmul, a, b, compiled=False)
    assert units(found, a, b) <= 2 * max(units(a @ b, a, b), 1)


def test_what_is_not_finite_stays_so_and_where_it_belongs():
    x, y = rand(4, 64), rand(64, 64)
    x[1, 3], y[5, 2], x[2, 7] = float("nan"), float("nan"), float("inf")
    found = on_card(torch.matmul, x, y, compiled=False).cpu()
    expected = x @ y
    assert torch.equal(found.isfinite(), expected.isfinite())
    assert torch.equal(found.isnan()[[0, 1, 3]], expected.isnan()[[0, 1, 3]])
    assert torch.equal(
        on_card(torch.matmul, torch.zeros(4, 64), torch.ones(64, 64), compiled=False).cpu(), torch.zeros(4, 64)
    )
    huge = on_card(torch.matmul, torch.full((2, 64), 3e38), torch.full((64, 64), 2.0), compiled=False)
    assert torch.equal(huge.cpu(), torch.full((2, 64), float("inf")))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_precision_follows_the_setting(compiled):
    x, y = rand(16, 64), rand(64, 64)
    errors = []
    for precision in ("highest", "high", "medium"):
        torch.set_float32_matmul_precision(precision)
        torch._dynamo.reset()
        errors.append(units(on_card(torch.matmul, x, y, compiled=compiled), x, y))
    assert errors[0] < 4 and errors[1] < 32 and 256 < errors[2] < 2**15


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_relatives_of_the_product(compiled):
    x, w, b, v = rand(6, 70), rand(40, 70), rand(40), rand(70)
    heads = [rand(1, 2, 64, 64) for _ in range(3)]
    near = dict(rtol=1e-5, atol=1e-5)
    for function, args in (
        (torch.nn.functional.linear, (x, w, b)),
        (lambda b, x, w: torch.addmm(b, x, w.t(), beta=0.5, alpha=2), (b, x, w)),
        (torch.mv, (x, v)),
        (torch.dot, (v, v)),
        (lambda x, w: torch.einsum("ik,jk->ij", x, w), (x, w)),
        (torch.baddbmm, (rand(2, 4, 5), rand(2, 4, 64), rand(2, 64, 5))),
        (torch.nn.functional.scaled_dot_product_attention, heads),
    ):
        torch.testing.assert_close(on_card(function, *args, compiled=compiled).cpu(), function(*args), **near)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_gradients(compiled):
    x, w = rand(16, 70), rand(40, 70)

    def loss(x, w):
        return (x @ w.t()).square().sum()

    def gradients(x, w):
        x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
        loss(x, w).backward()
        return x.grad, w.grad

    on = [t.to("spyre").requires_grad_() for t in (x, w)]
    torch.spyre.reset_metrics()
    (torch.compile(loss) if compiled else loss)(*on).backward()
    assert not torch.spyre.metrics()["fallbacks"]
    for mine, expected in zip(on, gradients(x, w), strict=True):
        torch.testing.assert_close(mine.grad.cpu(), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("width,columns", [(64, 64), (64, 70), (128, 33)])
def test_a_norm_and_a_product(width, columns, compiled):
    """What a norm makes lies in its sticks as its input does; the parts that are multiplied are narrowed from it."""
    x, weight, gain = rand(2, 5, width), rand(columns, width), rand(width)

    def function(x, weight, gain):
        normal = torch.nn.functional.layer_norm(x, [width], gain)
        return torch.nn.functional.linear(normal, weight) + torch.nn.functional.rms_norm(x, [width], gain)[..., :1]

    found = on_card(function, x, weight, gain, compiled=compiled)
    torch.testing.assert_close(found.cpu(), function(x, weight, gain), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("terms", [1, 64, 1008])
def test_integer_products_are_exact_and_wrap_as_pytorchs(terms):
    generator = torch.Generator().manual_seed(0)
    for most in (100, 2**31 - 1):
        a = torch.randint(-most, most, (3, terms), dtype=torch.int32, generator=generator)
        b = torch.randint(-most, most, (terms, 5), dtype=torch.int32, generator=generator)
        torch.spyre.reset_metrics()
        found = a.to("spyre") @ b.to("spyre")
        assert not torch.spyre.metrics()["fallbacks"]
        assert torch.equal(found.cpu(), a @ b)
