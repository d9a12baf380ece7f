"""Single operators through torch.compile, judged by PyTorch on the CPU."""

import pytest
import torch
import torch.nn.functional as F

H = torch.float16


def half(*shape):
    return torch.randn(shape, dtype=H)


def positive(*shape):
    return torch.rand(*shape, dtype=H) + 0.5


def distinct(*shape):
    """Numbers that the card's 16 bits tell apart, in no order."""
    return torch.randperm(torch.Size(shape).numel()).view(shape).to(H)


POINTWISE = {
    "abs": (torch.abs, lambda: [half(4, 100)]),
    "add": (torch.add, lambda: [half(4, 100), half(4, 100)]),
    "add_alpha": (lambda x, y: torch.add(x, y, alpha=2), lambda: [half(4, 100), half(4, 100)]),
    "add_scalar": (lambda x: x + 0.5, lambda: [half(4, 100)]),
    "addcmul": (torch.addcmul, lambda: [half(4, 100), half(4, 100), half(4, 100)]),
    "ceil": (torch.ceil, lambda: [half(4, 100)]),
    "clamp": (lambda x: torch.clamp(x, -0.5, 0.25), lambda: [half(4, 100)]),
    "clamp_max": (lambda x: x.clamp_max(0.1), lambda: [half(4, 100)]),
    "clamp_min": (lambda x: x.clamp_min(0.1), lambda: [half(4, 100)]),
    "clamp_tensor": (torch.clamp, lambda: [half(4, 100), half(4, 100) - 1, half(4, 100) + 1]),
    "div": (torch.div, lambda: [half(4, 100), positive(4, 100)]),
    "eq": (lambda x, y: torch.where(x == y, x, y), lambda: [half(4, 100), half(4, 100)]),
    "cos": (torch.cos, lambda: [half(4, 100)]),
    "erf": (torch.erf, lambda: [half(4, 100)]),
    "exp": (torch.exp, lambda: [half(4, 100)]),
    "floor": (torch.floor, lambda: [half(4, 100)]),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), lambda: [half(4, 100)]),
    "gelu": (F.gelu, lambda: [half(4, 100)]),
    "hardtanh": (F.hardtanh, lambda: [half(4, 100)]),
    "leaky_relu": (F.leaky_relu, lambda: [half(4, 100)]),
    "log": (torch.log, lambda: [positive(4, 100)]),
    "logical": (lambda x, y: ((x > 0) & (y > 0)) | ~(x > y), lambda: [half(4, 100), half(4, 100)]),
    "logical_not": (lambda x: torch.logical_not(x > 0), lambda: [half(4, 100)]),
    "masked_fill": (lambda x: x.masked_fill(x > 0, -1.0), lambda: [half(4, 100)]),
    "maximum": (torch.maximum, lambda: [half(4, 100), half(4, 100)]),
    "mul": (torch.mul, lambda: [half(4, 100), half(4, 100)]),
    "neg": (torch.neg, lambda: [half(4, 100)]),
    "pow2": (lambda x: x.pow(2), lambda: [half(4, 100)]),
    "pow3": (lambda x: x**3, lambda: [half(4, 100)]),
    "pow_half": (lambda x: x**0.5, lambda: [positive(4, 100)]),
    "reciprocal": (torch.reciprocal, lambda: [positive(4, 100)]),
    "relu": (torch.relu, lambda: [half(4, 100)]),
    "rsqrt": (torch.rsqrt, lambda: [positive(4, 100)]),
    "sigmoid": (torch.sigmoid, lambda: [half(4, 100)]),
    "sign": (torch.sign, lambda: [half(4, 100)]),
    "silu": (F.silu, lambda: [half(4, 100)]),
    "softplus": (F.softplus, lambda: [half(4, 100)]),
    "softplus_float32": (F.softplus, lambda: [torch.linspace(-30, 30, 400).view(4, 100)]),
    "softplus_beta": (lambda x: F.softplus(x, beta=2.0), lambda: [half(4, 100)]),
    "sqrt": (torch.sqrt, lambda: [positive(4, 100)]),
    "square": (torch.square, lambda: [half(4, 100)]),
    "sub": (torch.sub, lambda: [half(4, 100), half(4, 100)]),
    "tanh": (torch.tanh, lambda: [half(4, 100)]),
    "to_float32": (lambda x: x.to(torch.float32) * 2, lambda: [half(4, 100)]),
    "where_scalar": (lambda x: torch.where(x > 0, x, 0.0), lambda: [half(4, 100)]),
}

BROADCAST_AND_VIEWS = {
    "broadcast_row": (torch.add, lambda: [half(4, 100), half(100)]),
    "broadcast_column": (torch.mul, lambda: [half(4, 100), half(4, 1)]),
    "broadcast_scalar_tensor": (torch.mul, lambda: [half(4, 100), half()]),
    "flatten": (lambda x, y: x.flatten(0, 1) + y, lambda: [half(5, 10, 64), half(50, 64)]),
    "reshape_split": (lambda x: x.view(4, 2, 64) + 1, lambda: [half(8, 64)]),
    "transpose": (lambda x, y: x.t() + y, lambda: [half(64, 128), half(128, 64)]),
    "permute": (lambda x: x.permute(2, 0, 1) * 2, lambda: [half(4, 5, 64)]),
    "contiguous": (lambda x: x.transpose(0, 1).contiguous() + 0, lambda: [half(64, 128)]),
    "slice_rows": (lambda x: x[1:3] + 1, lambda: [half(4, 64)]),
    "slice_columns": (lambda x: x[:, 64:] * 2, lambda: [half(4, 128)]),
    "select": (lambda x: x[1] + x[2], lambda: [half(4, 64)]),
    "expand": (lambda x: x.expand(4, 64) + 1, lambda: [half(1, 64)]),
    "unsqueeze_squeeze": (lambda x: (x.unsqueeze(1) * 2).squeeze(1), lambda: [half(4, 64)]),
    "chunk": (lambda x: [a + 1 for a in x.chunk(2, -1)], lambda: [half(4, 128)]),
    "split": (lambda x: [a * 2 for a in x.split([1, 3])], lambda: [half(4, 64)]),
    "unbind": (lambda x: x.unbind(0)[1] + 1, lambda: [half(4, 64)]),
    "repeat": (lambda x: x.repeat(2, 1), lambda: [half(4, 64)]),
    "view_output": (lambda x: (x + 1).view(2, 2, 64).transpose(0, 1), lambda: [half(4, 64)]),
    "two_outputs": (lambda x: (x + 1, x * 2), lambda: [half(4, 64)]),
    "same_output_twice": (lambda x: (lambda y: (y, y.view(2, 128)))(x + 1), lambda: [half(4, 64)]),
}

REDUCTIONS = {
    "sum": (lambda x: x.sum(-1), lambda: [half(4, 100)]),
    "sum_first": (lambda x: x.sum(0), lambda: [half(4, 100)]),
    "sum_all": (lambda x: x.sum(), lambda: [half(4, 100)]),
    "sum_two": (lambda x: x.sum((0, 2)), lambda: [half(3, 4, 64)]),
    "mean": (lambda x: x.mean(-1, keepdim=True), lambda: [half(4, 100)]),
    "mean_all": (lambda x: x.mean(), lambda: [half(4, 100)]),
    "amax": (lambda x: x.amax(-1), lambda: [half(4, 100)]),
    "amin": (lambda x: x.amin(0), lambda: [half(4, 100)]),
    "argmax": (lambda x: x.argmax(-1), lambda: [half(4, 100)]),
    "prod": (lambda x: x.prod(0), lambda: [positive(4, 64)]),
    "any": (lambda x: (x > 1).any(-1), lambda: [half(4, 100)]),
    "all": (lambda x: (x > -1).all(), lambda: [half(4, 100)]),
    "softmax": (lambda x: torch.softmax(x, -1), lambda: [half(4, 100)]),
    "softmax_first": (lambda x: torch.softmax(x, 0), lambda: [half(4, 100)]),
    "log_softmax": (lambda x: torch.log_softmax(x, -1), lambda: [half(4, 100)]),
    "var": (lambda x: x.var(-1), lambda: [half(4, 100)]),
    "std": (lambda x: x.std(0, correction=0), lambda: [half(4, 100)]),
    "var_mean": (lambda x: torch.var_mean(x, -1), lambda: [half(4, 100)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (64,), w, b), lambda: [half(4, 64), half(64), half(64)]),
    "layer_norm_plain": (lambda x: F.layer_norm(x, (100,)), lambda: [half(3, 4, 100)]),
    "layer_norm_two": (lambda x: F.layer_norm(x, (4, 64)), lambda: [half(3, 4, 64)]),
    "rms_norm": (lambda x, w: F.rms_norm(x, (64,), w, 1e-5), lambda: [half(4, 64), half(64)]),
    "norm": (lambda x: torch.linalg.vector_norm(x, dim=-1), lambda: [half(4, 64)]),
    "group_norm": (lambda x: F.group_norm(x, 2), lambda: [half(2, 4, 64)]),
    "cumsum": (lambda x: x.cumsum(-1), lambda: [half(3, 70)]),
    "cumsum_first": (lambda x: x.cumsum(0), lambda: [half(40, 3, 64)]),
    "cumsum_of_many": (lambda x: x.cumsum(-1), lambda: [half(2, 1100) * 0.1]),
}

PRODUCTS = {
    "mm": (torch.mm, lambda: [half(4, 64), half(64, 128)]),
    "mm_transposed": (lambda x, w: x @ w.t(), lambda: [half(4, 64), half(128, 64)]),
    "bmm": (torch.bmm, lambda: [half(3, 4, 64), half(3, 64, 128)]),
    "matmul_3d_2d": (torch.matmul, lambda: [half(2, 3, 64), half(64, 128)]),
    "matmul_4d": (torch.matmul, lambda: [half(2, 3, 4, 64), half(2, 3, 64, 64)]),
    "matmul_broadcast": (torch.matmul, lambda: [half(2, 3, 4, 64), half(3, 64, 64)]),
    "matmul_vector": (torch.matmul, lambda: [half(4, 64), half(64)]),
    "linear": (F.linear, lambda: [half(2, 3, 64), half(128, 64), half(128)]),
    "linear_2d": (F.linear, lambda: [half(3, 64), half(128, 64), half(128)]),
    "linear_no_bias": (F.linear, lambda: [half(2, 3, 64), half(128, 64)]),
    "addmm": (lambda b, x, y: torch.addmm(b, x, y, beta=0.5, alpha=2), lambda: [half(128), half(4, 64), half(64, 128)]),
    "baddbmm": (torch.baddbmm, lambda: [half(3, 4, 64), half(3, 4, 64), half(3, 64, 64)]),
    "einsum": (lambda x, y: torch.einsum("bhqd,bhkd->bhqk", x, y), lambda: [half(2, 3, 4, 64), half(2, 3, 5, 64)]),
    "conv1d": (F.conv1d, lambda: [half(2, 64, 16), half(64, 64, 3) * 0.1, half(64)]),
    "conv1d_causal": (
        lambda x, w: F.conv1d(x, w, padding=3, groups=64)[..., :16],
        lambda: [half(2, 64, 16), half(64, 1, 4)],
    ),
    "conv2d": (F.conv2d, lambda: [half(1, 64, 8, 8), half(64, 64, 3, 3) * 0.1, half(64)]),
    "conv2d_depthwise": (
        lambda x, w, b: F.conv2d(x, w, b, stride=2, groups=10),
        lambda: [half(2, 10, 8, 8), half(10, 1, 3, 3), half(10)],
    ),
    "conv2d_dilated": (
        lambda x, w: F.conv2d(x, w, padding=(2, 1), dilation=(2, 1)),
        lambda: [half(1, 64, 8, 6), half(32, 64, 3, 3) * 0.1],
    ),
    "conv2d_patches": (lambda x, w: F.conv2d(x, w, stride=4), lambda: [half(2, 3, 16, 16), half(64, 3, 4, 4) * 0.1]),
    "conv2d_strided": (
        lambda x, w: F.conv2d(x, w, stride=2, padding=1),
        lambda: [half(1, 3, 9, 9), half(16, 3, 3, 3) * 0.1],
    ),
    "outer": (torch.mm, lambda: [half(4, 1), half(1, 64)]),
    "sdpa": (F.scaled_dot_product_attention, lambda: [half(2, 4, 6, 64), half(2, 4, 7, 64), half(2, 4, 7, 64)]),
    "sdpa_causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda: [half(2, 4, 6, 64), half(2, 4, 6, 64), half(2, 4, 6, 64)],
    ),
    "sdpa_mask": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
        lambda: [half(2, 4, 6, 64), half(2, 4, 7, 64), half(2, 4, 7, 64), half(2, 1, 6, 7)],
    ),
    "sdpa_bool": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m > -1),
        lambda: [half(2, 4, 6, 64), half(2, 4, 7, 64), half(2, 4, 7, 64), half(2, 1, 6, 7)],
    ),
    "sdpa_gqa": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        lambda: [half(2, 8, 6, 64), half(2, 2, 7, 64), half(2, 2, 7, 64)],
    ),
}

MOVEMENT = {
    "cat": (lambda x, y: torch.cat([x, y], 0), lambda: [half(4, 64), half(2, 64)]),
    "cat_columns": (lambda x, y: torch.cat([x * 2, y], -1), lambda: [half(4, 64), half(4, 128)]),
    "cat_then_add": (lambda x, y: torch.cat([x, y], -1) + 1, lambda: [half(4, 64), half(4, 64)]),
    "cat_of_used": (lambda x: torch.cat([x * 2, x], -1) + torch.cat([x, x * 2], -1), lambda: [half(4, 64)]),
    "stack": (lambda x, y: torch.stack([x, y], 1), lambda: [half(4, 64), half(4, 64)]),
    "pad": (lambda x: F.pad(x, (0, 64)), lambda: [half(4, 64)]),
    "pad_two": (lambda x: F.pad(x, (0, 64, 1, 2), value=3.0), lambda: [half(4, 64)]),
    "pad_crop": (lambda x: F.pad(x, (-64, 0, 0, 1)), lambda: [half(4, 128)]),
    "slice_scatter_to_the_end": (
        lambda x, y: torch.ops.aten.slice_scatter(x, y, 1, 32, 2**63 - 1),
        lambda: [half(4, 64), half(4, 32)],
    ),
    "slice_scatter": (lambda x, y: torch.slice_scatter(x, y, 0, 1, 3), lambda: [half(4, 64), half(2, 64)]),
    "select_scatter": (lambda x, y: torch.select_scatter(x, y, 0, 1), lambda: [half(4, 64), half(64)]),
    "embedding": (lambda w, i: F.embedding(i, w), lambda: [half(10, 64), torch.tensor([[1, 2], [3, 9]])]),
    "index_select": (lambda x, i: x.index_select(0, i), lambda: [half(10, 64), torch.tensor([1, 7, 3])]),
    "index": (lambda x, i: x[i] * 2, lambda: [half(10, 64), torch.tensor([1, 7, 3])]),
    "index_copy": (lambda x, i, y: x.index_copy(0, i, y), lambda: [half(10, 64), torch.tensor([1, 7]), half(2, 64)]),
    "index_put": (
        lambda x, i, y: x.index_put((i,), y),
        lambda: [half(10, 64), torch.tensor([1, 7]), half(2, 64)],
    ),
    "zeros": (lambda x: torch.maximum(x, torch.zeros(4, 64, dtype=H, device=x.device)), lambda: [half(4, 64)]),
    "full_like": (lambda x: torch.full_like(x, 3.0), lambda: [half(4, 64)]),
    "arange_half": (lambda x: x + torch.arange(64, dtype=H, device=x.device), lambda: [half(4, 64)]),
    "clone": (lambda x: x.clone(), lambda: [half(4, 64)]),
    "tril": (lambda x: x.tril(), lambda: [half(64, 64)]),
}


def whole(*shape):
    """Small whole numbers, many of them equal."""
    return torch.randint(-9, 9, shape).to(H)


def places(n, *shape):
    return torch.randint(0, n, shape)


def large(*shape):
    """Integers that float32 does not hold."""
    return torch.randint(-(2**28), 2**28, shape)


# Which elements, where, and how many: whole numbers, so the answers are exact.
SELECTION = {
    "argmax_all": (lambda x: x.argmax(), lambda: [whole(3, 4, 70)]),
    "argmin_all": (lambda x: x.argmin(keepdim=True), lambda: [whole(9, 100)]),
    "cumsum_mask": (lambda m: m.cumsum(-1) - 1, lambda: [places(2, 2, 512)]),
    "cumsum_bool": (lambda m: m.cumsum(-1), lambda: [places(2, 2, 1100) > 0]),
    "cumsum_integers": (lambda x: x.cumsum(-1), lambda: [places(2**23, 2, 200) * 2 - 2**23]),
    "cumsum_integers_first": (lambda x: x.cumsum(0), lambda: [places(2**27, 9, 70) - 2**26]),
    "sort": (lambda x: x.sort(stable=True, descending=True), lambda: [whole(3, 70)]),
    "sort_first": (lambda x: x.sort(dim=0, stable=True), lambda: [whole(40, 3)]),
    "argsort": (lambda x: x.argsort(stable=True), lambda: [whole(2, 3, 64)]),
    "topk": (lambda x: x.topk(4), lambda: [distinct(3, 100)]),
    "topk_first": (lambda x: x.topk(3, 0), lambda: [distinct(64, 5)]),
    "topk_smallest": (lambda x: x.topk(3, largest=False), lambda: [distinct(128)]),
    "topk_float32": (lambda x: x.topk(3), lambda: [torch.randn(3, 100)]),
    "topk_float32_smallest": (lambda x: x.topk(2, largest=False), lambda: [torch.randn(2, 128)]),
    "topk_of_many": (lambda x: x.topk(2), lambda: [torch.arange(1100.0).to(H).view(1, 1100) % 1000]),
    "sort_infinite": (
        lambda x: x.sort(stable=True, descending=True),
        lambda: [torch.tensor([[-torch.inf, 1.0, -torch.inf, 2.0]])],
    ),
    "topk_nan": (lambda x: x.topk(2)[1], lambda: [torch.tensor([[3.0, torch.nan, torch.inf, 2.0]])]),
    "isin": (
        lambda x, t: torch.isin(x, t),
        lambda: [places(20, 8, 100) * 100_000_007 - 2**30, torch.tensor([300_000_021 - 2**30, 5, 7 - 2**30])],
    ),
    "isin_neighbours": (
        lambda x, t: torch.isin(x, t, invert=True),
        lambda: [torch.arange(2**24 - 5, 2**24 + 5), torch.tensor([2**24 + 1, 2**24 - 3])],
    ),
    "isin_one": (lambda x, t: torch.isin(x, t), lambda: [places(9, 4, 64), torch.tensor([7])]),
    "one_hot": (lambda i: F.one_hot(i, 8), lambda: [places(8, 5)]),
    "one_hot_rows": (lambda i: F.one_hot(i, 100), lambda: [places(100, 3, 64)]),
    "flip": (lambda x: x.flip(0), lambda: [whole(8, 100)]),
    "flip_columns": (lambda x: x.flip(-1, 0), lambda: [whole(8, 100)]),
    "roll": (lambda x: x.roll(3, 0), lambda: [whole(8, 100)]),
    "roll_columns": (lambda x: x.roll((1, -5), (0, 1)), lambda: [whole(8, 100)]),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, 1), lambda: [whole(2, 3, 4, 64)]),
    "gather": (lambda x, i: x.gather(1, i), lambda: [whole(8, 100), places(100, 8, 3)]),
    "gather_float32": (lambda x, i: x.gather(1, i), lambda: [torch.randn(8, 1100), places(1100, 8, 3)]),
    "gather_integers": (lambda x, i: x.gather(-1, i), lambda: [large(2, 3, 100), places(100, 2, 3, 40)]),
    "gather_integer_rows": (lambda x, i: x.gather(0, i), lambda: [large(8, 100), places(8, 3, 70)]),
    "index_add_integers": (
        lambda x, i, y: x.index_add(0, i, y),
        lambda: [large(10, 100), torch.tensor([1, 7, 1, 1]), large(4, 100)],
    ),
    "scatter_float32": (
        lambda x, i, y: x.scatter(1, i, y),
        lambda: [torch.randn(4, 100), places(20, 4, 9), torch.randn(4, 9)],
    ),
    "scatter_integers": (lambda x, i, y: x.scatter(0, i, y), lambda: [large(9, 70), places(9, 12, 70), large(12, 70)]),
    "scatter_integer_value": (lambda x, i: x.scatter(1, i, -(2**30) + 1), lambda: [large(4, 100), places(100, 4, 5)]),
    "scatter_add_integers": (
        lambda x, i, y: x.scatter_add(1, i, y),
        lambda: [large(4, 100), places(20, 4, 6), large(4, 6)],
    ),
    "gather_bool": (lambda x, i: x.gather(1, i), lambda: [whole(8, 100) > 0, places(100, 8, 3)]),
    "index_add": (
        lambda x, i, y: x.index_add(0, i, y),
        lambda: [whole(10, 100), torch.tensor([1, 7, 1, 1]), whole(4, 100)],
    ),
    "index_add_columns": (
        lambda x, i, y: x.index_add(-1, i, y, alpha=2),
        lambda: [whole(3, 10, 70), torch.tensor([1, 69, 1]), whole(3, 10, 3)],
    ),
    "scatter": (lambda x, i, y: x.scatter(1, i, y), lambda: [whole(4, 100), places(20, 4, 9), whole(4, 9)]),
    "scatter_add": (lambda x, i, y: x.scatter_add(1, i, y), lambda: [whole(4, 100), places(20, 4, 9), whole(4, 9)]),
    "scatter_add_rows": (
        lambda x, i, y: x.scatter_add(0, i, y),
        lambda: [whole(10, 70), places(10, 15, 70), whole(20, 70)],
    ),
    "scatter_rows": (
        lambda x, i, y: x.scatter(1, i, y),
        lambda: [whole(2, 30, 64), places(30, 2, 40, 64), whole(2, 40, 64)],
    ),
    "scatter_value": (lambda x, i: x.scatter(-1, i, 7.0), lambda: [whole(4, 100), places(100, 4, 5)]),
    "gather_rows": (lambda x, i: x.gather(0, i), lambda: [whole(8, 100), places(8, 3, 70)]),
}

ALL = {**POINTWISE, **BROADCAST_AND_VIEWS, **REDUCTIONS, **PRODUCTS, **MOVEMENT}


def judged(names):
    """Every operator on the card; every third also by the evaluator, which says whether a fault lies before the
    compiler. The full run asks both about all."""
    seldom = [pytest.param("evaluator", name, marks=pytest.mark.full if i % 3 else ()) for i, name in enumerate(names)]
    return [*(("card", name) for name in names), *seldom]


@pytest.mark.parametrize("both, name", judged(ALL), indirect=["both"])
def test_compiled_operator_equals_the_cpu(both, name):
    function, make = ALL[name]
    both.check(function, *make())
    assert both.texts, "nothing was compiled for the card"


@pytest.mark.parametrize("both, name", judged(SELECTION), indirect=["both"])
def test_compiled_selection_is_the_cpus(both, name):
    function, make = SELECTION[name]
    both.check(function, *make(), rtol=0, atol=0)
    assert both.texts, "nothing was compiled for the card"


def test_32_bit_values_are_sorted_exactly(both):
    both.check(lambda x: x.sort()[0], torch.randn(2, 100), rtol=0, atol=0)
    both.check(lambda x: x.topk(2), torch.tensor([[2**24, 2**24 + 1, 5]]), rtol=0, atol=0)


def test_running_sums_have_the_bits_of_their_type(both):
    both.check(lambda x: x.cumsum(-1), torch.rand(2, 300), rtol=1e-6, atol=1e-6)
    both.check(lambda x: x.cumsum(0), torch.rand(70, 3, 64), rtol=1e-6, atol=1e-6)


def test_an_infinite_term_leaves_the_sums_before_it_alone(both):
    terms = torch.ones(2, 200)
    terms[0, 150], terms[1, 30] = torch.inf, torch.nan
    both.check(lambda x: x.cumsum(-1), terms, rtol=0, atol=0)


def test_what_is_added_by_index_has_the_bits_of_its_type(both):
    wide = torch.randn(10, 3, 70), torch.tensor([1, 7, 1, 1]), torch.randn(4, 3, 70)
    both.check(lambda x, i, y: x.index_add(0, i, y), *wide, rtol=1e-6, atol=1e-6)
    both.check(lambda x, i, y: x.scatter_add(1, i, y), wide[0][0], places(70, 3, 9), wide[2][0], rtol=1e-6, atol=1e-6)


def test_what_is_not_a_number_stays_where_it_is_written(both):
    source = torch.ones(4, 70)
    source[2, 5] = torch.nan
    both.check(lambda x, i, y: x.index_add(0, i, y), torch.ones(9, 70), torch.tensor([1, 7, 1, 1]), source, rtol=0)
