"""Eager operators written in terms of others, and eager writes by index: what they compute, and that all of it is on
the card. The judge is PyTorch on the CPU in float32, as in test_eager.py.
"""

import math
import os
import subprocess
import sys
import warnings

import pytest
import torch
from test_eager import close, fallbacks_allowed, maker
from torch.nn import functional as f

pytestmark = pytest.mark.usefixtures("on_the_card_only")

# Scores are a sum of 64 products, rounded, and the exponent of what is lost is lost again; a group is centred, scaled,
# scaled and shifted. Half of what the compiled forms are allowed.
SEVERAL_STEPS = dict(rtol=1e-2, atol=1e-2)

SHAPES = [(4, 128), (3, 70), (2, 3, 70), (2, 4, 64)]


def fp16(*shape, seed=0):
    return maker(torch.float16, seed)(shape).to("spyre")


def on_the_host(values):
    return [v.cpu().float() if v.is_floating_point() else v.cpu() for v in values]


def same_as_on_the_cpu(function, *inputs, several=False):
    results, expected = function(*inputs), function(*on_the_host(inputs))
    if isinstance(results, torch.Tensor):
        results, expected = [results], [expected]
    for result, wanted in zip(results, expected, strict=True):
        if several:
            torch.testing.assert_close(result.cpu().float(), wanted, **SEVERAL_STEPS)
        else:
            close(result, wanted)


STATISTICS = {
    "norm": lambda x, dim: torch.linalg.vector_norm(x, 2, dim),
    "norm_1": lambda x, dim: torch.linalg.vector_norm(x, 1, dim),
    "norm_inf": lambda x, dim: torch.linalg.vector_norm(x, math.inf, dim),
    "norm_minus_inf": lambda x, dim: torch.linalg.vector_norm(x, -math.inf, dim),
    "std": torch.std,
    "std_mean": lambda x, dim: torch.std_mean(x, dim, keepdim=True),
    "var": torch.var,
    "var_mean": lambda x, dim: torch.var_mean(x, dim, correction=0),
}


@pytest.mark.parametrize("dim", [0, -1, (0, 1)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("op", STATISTICS)
def test_statistics(op, shape, dim):
    same_as_on_the_cpu(lambda x: STATISTICS[op](x, dim), fp16(*shape))


@pytest.mark.parametrize("shape,groups", [((2, 8, 64), 4), ((2, 8, 5, 7), 2), ((2, 128), 2)], ids=str)
def test_group_norm(shape, groups):
    weight, bias = fp16(shape[1], seed=1), fp16(shape[1], seed=2)
    same_as_on_the_cpu(lambda x, w, b: f.group_norm(x, groups, w, b), fp16(*shape), weight, bias, several=True)
    same_as_on_the_cpu(lambda x: f.group_norm(x, groups), fp16(*shape), several=True)


TAKEN_APART = {
    "aminmax": lambda x: torch.aminmax(x, dim=-1),
    "celu": lambda x: f.celu(x, 0.5),
    "count_nonzero": lambda x: torch.count_nonzero(x, 0),
    "elu": f.elu,
    "expm1": torch.expm1,
    "floor_divide": lambda x: x // 0.75,
    "frac": torch.frac,
    "glu": f.glu,
    "hardshrink": f.hardshrink,
    "hardsigmoid": f.hardsigmoid,
    "hardswish": f.hardswish,
    "huber_loss": lambda x: f.huber_loss(x, x * 0.5),
    "log1p": lambda x: torch.log1p(x.abs()),
    "log_sigmoid": f.logsigmoid,
    "logit": lambda x: torch.logit(x, 0.25),
    "mish": f.mish,
    "mse_loss": lambda x: f.mse_loss(x, x * 0.5),
    "mse_loss_of_each": lambda x: f.mse_loss(x, x * 0.5, reduction="none"),
    "prelu": lambda x: f.prelu(x, x.new_full((1,), 0.25)),
    "selu": f.selu,
    "smooth_l1_loss": lambda x: f.smooth_l1_loss(x, x * 0.5),
    "softshrink": f.softshrink,
    "threshold": lambda x: f.threshold(x, 0.5, -1.0),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("op", TAKEN_APART)
def test_what_pytorch_takes_apart(op, shape):
    same_as_on_the_cpu(TAKEN_APART[op], fp16(*shape), several=op != "count_nonzero")


IN_PLACE = {
    "celu": lambda x: f.celu(x, 0.5, inplace=True),
    "elu": lambda x: f.elu(x, inplace=True),
    "expm1": lambda x: x.expm1_(),
    "floor_divide": lambda x: x.floor_divide_(0.75),
    "hardsigmoid": lambda x: f.hardsigmoid(x, inplace=True),
    "hardswish": lambda x: f.hardswish(x, inplace=True),
    "masked_fill": lambda x: x.masked_fill_(x > 0.5, x.amax()),
    "mish": lambda x: f.mish(x, inplace=True),
    "selu": lambda x: f.selu(x, inplace=True),
    "threshold": lambda x: f.threshold(x, 0.5, -1.0, inplace=True),
}


@pytest.mark.parametrize("op", IN_PLACE)
def test_what_pytorch_takes_apart_in_place(op):
    x = fp16(5, 70)[1:4]
    expected = IN_PLACE[op](x.cpu().float())
    result = IN_PLACE[op](x)
    assert result.data_ptr() == x.data_ptr()
    torch.testing.assert_close(x.cpu().float(), expected, **SEVERAL_STEPS)


@pytest.mark.parametrize("size", [(3, 70), (0,)], ids=str)
@pytest.mark.parametrize("op", [torch.expm1, torch._C._nn.mish, torch._C._nn.elu, torch.frac, torch._C._nn.hardsigmoid])
def test_what_pytorch_takes_apart_into_a_tensor(op, size):
    x, out = fp16(3, 70), torch.empty(size, dtype=torch.float16, device="spyre")
    assert op(x, out=out) is out
    torch.testing.assert_close(out.cpu().float(), op(x.cpu().float()), **SEVERAL_STEPS)


def test_halves_are_computed_in_halves_on_the_threads_that_said_so():
    from threading import Thread

    from torch_spyre._patches import sixteen_bits_stay

    found = []
    ask = lambda: found.append(torch._prims_common.get_computation_dtype(torch.float16))  # noqa: E731
    with sixteen_bits_stay():
        ask()
        elsewhere = Thread(target=ask)
        elsewhere.start()
        elsewhere.join()
    ask()
    assert found == [torch.float16, torch.float32, torch.float32]


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm(training):
    x, scale, shift, mean = fp16(4, 8, 64), fp16(8, seed=1), fp16(8, seed=2), fp16(8, seed=3)
    var = fp16(8, seed=4).abs() + 1
    inputs = (x, mean, var, scale, shift)
    expected = on_the_host(inputs)
    wanted = f.batch_norm(*expected, training=training)
    torch.testing.assert_close(f.batch_norm(*inputs, training=training).cpu().float(), wanted, **SEVERAL_STEPS)
    torch.testing.assert_close(mean.cpu().float(), expected[1], **SEVERAL_STEPS)
    torch.testing.assert_close(var.cpu().float(), expected[2], **SEVERAL_STEPS)


@pytest.mark.parametrize("function", [f.softmax, f.log_softmax])
def test_a_softmax_of_halves_in_float32(function):
    x = fp16(3, 100)
    result = function(x, -1, dtype=torch.float32)
    torch.testing.assert_close(result.cpu(), function(x.cpu(), -1, dtype=torch.float32), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("ignored", [-100, 3])
def test_cross_entropy(ignored):
    scores, classes = fp16(4, 100), torch.tensor([1, 99, 3, 50]).to("spyre")
    same_as_on_the_cpu(lambda x, c: f.cross_entropy(x, c, ignore_index=ignored), scores, classes, several=True)


@pytest.mark.parametrize("window", [2, (4, 2)], ids=str)
def test_pools(window):
    x = fp16(2, 64, 8, 8)
    same_as_on_the_cpu(lambda x: f.avg_pool2d(x, window), x, several=True)
    same_as_on_the_cpu(lambda x: f.max_pool2d(x, window, return_indices=True), x)


ORDERS = {
    "argsort": lambda x: x.argsort(stable=True),
    "flip": lambda x: x.flip(0),
    "flip_last": lambda x: x.flip(-1),
    "roll": lambda x: x.roll(2, 0),
    "sort": lambda x: x.sort(stable=True),
    "sort_first": lambda x: x.sort(stable=True, dim=0, descending=True),
    "topk": lambda x: x.topk(2),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("op", ORDERS)
def test_orders(op, shape):
    distinct = torch.randperm(math.prod(shape), generator=torch.Generator().manual_seed(0)).reshape(shape)
    same_as_on_the_cpu(ORDERS[op], distinct.half().to("spyre"))


def test_classes_and_sets():
    index = torch.tensor([[1, 2, 6], [0, 3, 5]]).to("spyre")
    same_as_on_the_cpu(lambda i: f.one_hot(i, 7), index)
    same_as_on_the_cpu(torch.isin, index, torch.tensor([3, 2**20 + 1, 5]).to("spyre"))
    same_as_on_the_cpu(lambda i, t: torch.isin(i, t, invert=True), index, torch.tensor([3]).to("spyre"))
    same_as_on_the_cpu(torch.isin, fp16(3, 70).round(), fp16(4, seed=1).round())
    same_as_on_the_cpu(lambda m: m.cumsum(-1), fp16(3, 70) > 0)


@pytest.mark.parametrize("shape,dim", [((5,), 0), ((3, 70), -1), ((70, 3), 0), ((2, 300), -1), ((2, 5, 64), 1)])
def test_running_sums(shape, dim):
    close(fp16(*shape).cumsum(dim), fp16(*shape).cpu().float().cumsum(dim))
    wide = maker(torch.float32)(shape)
    torch.testing.assert_close(wide.to("spyre").cumsum(dim).cpu(), wide.cumsum(dim), rtol=1e-6, atol=1e-5)
    whole = torch.randint(-(2**23), 2**23, shape)
    assert torch.equal(whole.to("spyre").cumsum(dim).cpu(), whole.cumsum(dim))
    assert torch.equal((whole > 0).to("spyre").cumsum(dim).cpu(), (whole > 0).cumsum(dim))


CONVOLUTIONS = {
    "3x3": ((1, 64, 8, 8), (64, 64, 3, 3), {}),
    "depthwise": ((2, 10, 8, 8), (10, 1, 3, 3), {"stride": 2, "groups": 10}),
    "dilated": ((1, 64, 8, 6), (32, 64, 3, 3), {"padding": (2, 1), "dilation": (2, 1)}),
    "line": ((2, 64, 16), (64, 64, 3), {}),
    "patches": ((2, 3, 16, 16), (64, 3, 4, 4), {"stride": 4}),
}


@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_convolutions(kind):
    image, filters, options = CONVOLUTIONS[kind]
    convolve = f.conv1d if len(image) == 3 else f.conv2d
    inputs = fp16(*image), fp16(*filters, seed=1) * 0.1, fp16(filters[0], seed=2)
    same_as_on_the_cpu(lambda *t: convolve(*t, **options), *inputs, several=True)


# ---- attention ---------------------------------------------------------------------------------------------------


def attention_inputs(length, shared=4):
    return [fp16(2, heads, length, 64, seed=seed) for seed, heads in enumerate((4, shared, shared))]


ATTENTION = {
    "plain": {},
    "causal": {"is_causal": True},
    "scaled": {"scale": 0.25},
    "allowed": {"attn_mask": lambda n: torch.rand((n, n), generator=torch.Generator().manual_seed(5)) > 0.3},
    "added": {"attn_mask": lambda n: maker(torch.float16, 6)((2, 1, n, n))},
}


@pytest.mark.parametrize("shared", [4, 2])
@pytest.mark.parametrize("length", [64, 70])
@pytest.mark.parametrize("kind", ATTENTION)
def test_attention(kind, length, shared):
    options = {**ATTENTION[kind], "enable_gqa": shared != 4}
    mask = [options.pop("attn_mask")(length).to("spyre")] if "attn_mask" in options else []
    same_as_on_the_cpu(
        lambda *t: f.scaled_dot_product_attention(*t, **options),
        *attention_inputs(length, shared),
        *mask,
        several=True,
    )


def test_attention_in_inference_mode():
    with torch.inference_mode():
        same_as_on_the_cpu(f.scaled_dot_product_attention, *attention_inputs(64), several=True)


def test_attention_with_dropout_is_pytorchs():
    q, k, v = attention_inputs(64)
    with fallbacks_allowed():
        out = f.scaled_dot_product_attention(q, k, v, dropout_p=1.0)
    assert torch.equal(out.cpu(), torch.zeros_like(out.cpu()))


# ---- reads and writes by index -----------------------------------------------------------------------------------


def at(index, dim):
    return (slice(None),) * dim + (index,)


@pytest.mark.parametrize("index", [[1, -1, 0], [[1, -1, 0], [0, 1, 1]], 1], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reads_by_one_index(shape, index):
    positions = torch.tensor(index).to("spyre")
    for dim in range(len(shape)):
        same_as_on_the_cpu(lambda x, i, dim=dim: torch.ops.aten.index(x, [None] * dim + [i]), fp16(*shape), positions)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_writes_by_one_index(shape):
    for dim in range(len(shape)):
        part = list(shape)
        part[dim] = 2
        values, positions = fp16(*part, seed=1), torch.tensor([1, 0]).to("spyre")

        def put(x, i, v, dim=dim):
            x = x.clone()
            x[at(i - x.shape[dim], dim)] = v
            return x

        x = fp16(*shape)
        same_as_on_the_cpu(put, x, positions, values)
        same_as_on_the_cpu(lambda x, i, v, dim=dim: x.index_copy(dim, i, v), x, positions, values)
        same_as_on_the_cpu(lambda x, i, v, dim=dim: x.clone().index_copy_(dim, i, v), x, positions, values)
        same_as_on_the_cpu(lambda x, v, dim=dim: x.slice_scatter(v, dim, 0, 2), x, values)
        same_as_on_the_cpu(lambda x, v, dim=dim: x.slice_scatter(v, dim, -2, 2**63 - 1), x, values)
        same_as_on_the_cpu(lambda x, v, dim=dim: x.select_scatter(v.select(dim, 0), dim, 1), x, values)


def test_a_written_number_is_repeated():
    def put(x, i):
        x = x.clone()
        x[i] = x[0, 0].clone()
        return x

    same_as_on_the_cpu(put, fp16(5, 70), torch.tensor([3, 1]).to("spyre"))


def test_a_cache_is_written_in_place():
    cache, step = fp16(1, 2, 8, 64), fp16(1, 2, 1, 64, seed=1)
    expected = cache.cpu()
    expected[:, :, 5:6] = step.cpu()
    result = cache.index_copy_(2, torch.tensor([5]).to("spyre"), step)
    assert result is cache
    assert torch.equal(cache.cpu(), expected)


def test_indices_the_card_does_not_take_are_the_cpus():
    x = fp16(4, 70)
    one, two = torch.tensor([0, 3]).to("spyre"), torch.tensor([1, 69]).to("spyre")
    for index in ((one, two), (x > 0,), (one.cpu(),)):
        with fallbacks_allowed():
            assert torch.equal(x[index].cpu(), x.cpu()[tuple(i.cpu() for i in index)])
    with fallbacks_allowed():
        twice = torch.zeros(4, dtype=torch.float16, device="spyre")
        twice.index_put_((torch.tensor([1, 1]).to("spyre"),), torch.ones(2).half().to("spyre"), accumulate=True)
        assert twice.cpu().tolist() == [0, 2, 0, 0]


@pytest.mark.parametrize("dim", [0, 1])
def test_elements_by_index(dim):
    x, y = fp16(8, 70).round(), fp16(8, 70, seed=1).round()
    index = torch.randint(0, 5, (8, 70), generator=torch.Generator().manual_seed(2)).to("spyre")
    row = index[0].clone()[: x.shape[dim]]
    # From the host: what is widened on the card lies in another order, which the index has not.
    wide = [t.cpu().float().to("spyre") for t in (x, y)]
    whole = [(t.cpu().long() * 2**24 + 1).to("spyre") for t in (x, y)]
    for values in ((x, y), (x > 0, y > 0), whole, wide):
        same_as_on_the_cpu(lambda x, y, i: x.scatter(dim, i, y), *values, index)
        same_as_on_the_cpu(lambda x, y, i: x.scatter(dim, i, 1), *values, index)
        same_as_on_the_cpu(lambda x, y, i: x.gather(dim, i), *values, index)
    for values in ((x, y), whole, wide):
        same_as_on_the_cpu(lambda x, y, i: x.scatter_add(dim, i, y), *values, index)
        same_as_on_the_cpu(lambda x, y, i: x.index_add(dim, i, y, alpha=2), *values, row)


def test_an_index_that_does_not_exist_is_pytorchs_error():
    x, index = fp16(3, 4), torch.tensor([[0, 4]]).to("spyre")
    with fallbacks_allowed():
        calls = (lambda: x.gather(1, index), lambda: x.scatter(1, index, 1.0), lambda: x.index_add(0, index[0], x[:2]))
        for call in calls:
            with pytest.raises(RuntimeError, match="index 4 is out of bounds for dimension"):
                call()
        with pytest.raises(RuntimeError, match="Class values must be smaller than num_classes."):
            f.one_hot(index, 4)


# ---- in steps ----------------------------------------------------------------------------------------------------

IN_STEPS = {
    "flip": lambda x, **k: torch.ops.aten.flip(x, [0, -1], **k),
    "glu": lambda x, **k: torch._C._nn.glu(x, -1, **k),
    "histc": lambda x, **k: torch.histc(x, 5, **k),
    "masked_select": lambda x, **k: torch.masked_select(x, x > 0.5, **k),
    "pad": lambda x, **k: torch.ops.aten.constant_pad_nd(x, [1, 2, 1, 0], 1.5, **k),
    "select_scatter": lambda x, **k: torch.ops.aten.select_scatter(x, x[:, 2].clone(), -1, -3, **k),
    "slice_scatter": lambda x, **k: torch.ops.aten.slice_scatter(x, x[:, :5].clone(), 1, 7, 12, **k),
    "slice_scatter_with_steps": lambda x, **k: torch.ops.aten.slice_scatter(x, x[:, :5].clone(), 1, 0, 10, 2, **k),
}


@pytest.mark.parametrize("width", [64, 70, 130])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("op", IN_STEPS)
def test_operators_in_steps_and_into_a_tensor(op, dtype, width):
    x = maker(dtype)((3, width))
    expected = IN_STEPS[op](x.float())
    found = IN_STEPS[op](x.to("spyre"))
    out = torch.empty(0, dtype=dtype, device="spyre")
    if op.startswith("slice_scatter_with"):  # one kernel writes the steps, and another one copies them
        out = torch.empty_like(found)
    assert IN_STEPS[op](x.to("spyre"), out=out) is out
    for result in (found, out):
        close(result, expected)


def test_what_a_mask_keeps_into_tensors_of_other_sizes_and_types():
    x, mask = torch.arange(140.0).view(2, 70), torch.arange(140).view(2, 70) % 3 == 0
    card, card_mask = x.to("spyre"), mask.to("spyre")
    into = torch.empty(2, 70, device="spyre")
    assert card.clone().masked_scatter_(card_mask, card).cpu().equal(x.clone().masked_scatter_(mask, x))
    assert torch.masked_select(card, card_mask, out=into[:0].clone()).cpu().equal(x[mask])
    torch.ops.aten.masked_scatter.out(card, card_mask, card, out=into)
    assert into.cpu().equal(x.masked_scatter(mask, x))
    counts = torch.empty(0, dtype=torch.int64, device="spyre")
    whole = torch.tensor([3, 1, 3])
    assert torch.ops.aten.bincount.out(whole.to("spyre"), None, 6, out=counts).cpu().equal(whole.bincount(minlength=6))
    with fallbacks_allowed(), pytest.raises(RuntimeError, match="type"):
        torch.masked_select(card, card_mask, out=torch.empty(0, dtype=torch.int64, device="spyre"))


# ---- what a form that is refused leaves behind -------------------------------------------------------------------


def counted():
    return {name: entry["calls"] for name, entry in torch.spyre.metrics()["fallbacks"].items()}


def test_an_operator_without_a_form_for_its_arguments_is_one_fallback():
    x = maker(torch.float32)((3, 70)).to("spyre")
    torch.spyre.reset_metrics()
    with fallbacks_allowed():
        close(torch.linalg.vector_norm(x, 3), torch.linalg.vector_norm(x.cpu(), 3))
    assert counted() == {"aten::linalg_vector_norm": 1}


def test_a_form_that_fails_midway_is_one_fallback_of_the_operator():
    x = (torch.arange(210) % 3).to(torch.int8)  # which the card stores, but does not scatter
    card, mask = x.to("spyre"), (x > 1).to("spyre")
    torch.spyre.reset_metrics()
    with fallbacks_allowed():
        assert torch.equal(card.masked_select(mask).cpu(), x.masked_select(x > 1))
    assert counted() == {"aten::masked_select": 1}
    (reason,) = torch.spyre.metrics()["fallbacks"]["aten::masked_select"]["reasons"]
    assert reason.startswith("aten::scatter")


def test_wrong_arguments_raise_what_the_cpu_raises():
    with fallbacks_allowed():
        with pytest.raises(RuntimeError, match="selected index k out of range"):
            fp16(3, 4).topk(9)
        with pytest.raises(IndexError, match="Dimension out of range"):
            fp16(3, 4).var(5)


def test_a_warning_names_the_callers_line():
    torch.spyre.set_fallback_mode("warn")
    x = maker(torch.float32)((3, 70)).to("spyre")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.linalg.vector_norm(x, 3)
    assert [(os.path.basename(w.filename), "aten::linalg_vector_norm" in str(w.message)) for w in seen] == [
        (os.path.basename(__file__), True)
    ]


def test_the_setting_sends_forms_to_the_cpu():
    program = """
import torch
x = torch.ones(2, 3, dtype=torch.float16, device="spyre")
x.var(-1), x.topk(2), x.flip(0), x.slice_scatter(x[:1], 0, 0, 1)
counts = torch.spyre.metrics()["fallbacks"]
print(sorted(counts), {reason for entry in counts.values() for reason in entry["reasons"]})
"""
    environment = {**os.environ, "SPYRE_EAGER": "0", "TORCH_SPYRE_FALLBACK": "silent"}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    names = "['aten::flip', 'aten::slice_scatter', 'aten::topk', 'aten::var.correction']"
    assert result.stdout.strip() == names + " {'eager kernels are switched off (SPYRE_EAGER=0)'}", result.stderr


# ---- gradients ---------------------------------------------------------------------------------------------------


def gradients_agree(function, *shapes):
    card = [fp16(*shape, seed=seed).requires_grad_() for seed, shape in enumerate(shapes)]
    host = [t.detach().cpu().float().requires_grad_() for t in card]
    for inputs in (card, host):
        out = function(*inputs)
        weights = maker(torch.float16, 9)(tuple(out.shape)).to(out.device, out.dtype)
        (out * weights).sum().backward()
    for c, h in zip(card, host, strict=True):
        torch.testing.assert_close(c.grad.cpu().float(), h.grad, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("kind", ["plain", "causal", "allowed"])
@pytest.mark.parametrize("shared", [4, 2])
def test_gradients_of_attention(kind, shared):
    options = {**ATTENTION[kind], "enable_gqa": shared != 4}
    mask = options.pop("attn_mask", lambda n: None)(70)

    def attend(q, k, v):
        return f.scaled_dot_product_attention(q, k, v, None if mask is None else mask.to(q.device), **options)

    gradients_agree(attend, (1, 4, 70, 64), (1, shared, 70, 64), (1, shared, 70, 64))


@pytest.mark.parametrize("op", ["var", "std", "norm"])
def test_gradients_of_statistics(op):
    gradients_agree(lambda x: STATISTICS[op](x, -1), (3, 70))


def test_gradients_of_writes():
    gradients_agree(lambda x, y: x.slice_scatter(y, 0, 1, 3), (3, 70), (2, 70))


def test_a_class_that_does_not_exist_has_no_loss():
    scores, target = fp16(3, 70), torch.tensor([1, 70, -100]).to("spyre")
    with fallbacks_allowed(), pytest.raises(IndexError, match="out of bounds"):
        torch.nn.functional.nll_loss(scores, target)


STRIDED = {
    "cumsum": lambda x: x.cumsum(0),
    "flip": lambda x: x.flip(0),
    "index_add": lambda x: x.index_add(0, torch.tensor([1, 0], device=x.device), torch.ones_like(x[:2])),
    "roll": lambda x: x.roll(1, 0),
    "select_scatter": lambda x: torch.select_scatter(x, torch.ones_like(x[:, 0]), 1, 0),
    "slice_scatter": lambda x: torch.slice_scatter(x, torch.ones_like(x[:2]), 0, 1, 5, 2),
    "sort": lambda x: torch.sort(x, stable=True, dim=-1)[0],
    "std": lambda x: x.std(-1, keepdim=True),
    "topk": lambda x: torch.topk(x, 2)[0],
}


@pytest.mark.parametrize("shape", [(2, 7, 32), (3, 5, 6), (1, 8, 70)], ids=str)
@pytest.mark.parametrize("name", STRIDED)
def test_results_lie_as_pytorch_promises(name, shape):
    x = fp16(*shape).transpose(0, 1)
    promised = STRIDED[name](torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta"))
    found = STRIDED[name](x)
    assert torch._prims_common.check_significant_strides(found, promised, only_cuda=False)[0], found.stride()
    same_as_on_the_cpu(STRIDED[name], x, several=True)
