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
from test_eager import close, fallbacks_allowed, maker, on_the_card_only  # noqa: F401 - the fixture is for this file, too
from torch.nn import functional as f

# Scores are a sum of 64 products, rounded, and the exponent of what is lost is lost again; a group is centred, scaled,
# scaled and shifted. Half of what the compiled forms are allowed.
SEVERAL_STEPS = dict(rtol=1e-2, atol=1e-2)

SHAPES = [(4, 128), (3, 70), (2, 3, 70), (2, 4, 64)]


def halves(*shape, seed=0):
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
    same_as_on_the_cpu(lambda x: STATISTICS[op](x, dim), halves(*shape))


@pytest.mark.parametrize("shape,groups", [((2, 8, 64), 4), ((2, 8, 5, 7), 2), ((2, 128), 2)], ids=str)
def test_group_norm(shape, groups):
    weight, bias = halves(shape[1], seed=1), halves(shape[1], seed=2)
    same_as_on_the_cpu(lambda x, w, b: f.group_norm(x, groups, w, b), halves(*shape), weight, bias, several=True)
    same_as_on_the_cpu(lambda x: f.group_norm(x, groups), halves(*shape), several=True)


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
    same_as_on_the_cpu(torch.isin, halves(3, 70).round(), halves(4, seed=1).round())
    same_as_on_the_cpu(lambda m: m.cumsum(-1), halves(3, 70) > 0)


@pytest.mark.parametrize("shape,dim", [((5,), 0), ((3, 70), -1), ((70, 3), 0)])
def test_running_sums(shape, dim):
    close(halves(*shape).cumsum(dim), halves(*shape).cpu().float().cumsum(dim))


# ---- attention ---------------------------------------------------------------------------------------------------


def attention_inputs(length, shared=4):
    return [halves(2, heads, length, 64, seed=seed) for seed, heads in enumerate((4, shared, shared))]


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
        same_as_on_the_cpu(lambda x, i, dim=dim: torch.ops.aten.index(x, [None] * dim + [i]), halves(*shape), positions)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_writes_by_one_index(shape):
    for dim in range(len(shape)):
        part = list(shape)
        part[dim] = 2
        values, positions = halves(*part, seed=1), torch.tensor([1, 0]).to("spyre")

        def put(x, i, v, dim=dim):
            x = x.clone()
            x[at(i - x.shape[dim], dim)] = v
            return x

        x = halves(*shape)
        same_as_on_the_cpu(put, x, positions, values)
        same_as_on_the_cpu(lambda x, i, v, dim=dim: x.index_copy(dim, i, v), x, positions, values)
        same_as_on_the_cpu(lambda x, i, v, dim=dim: x.clone().index_copy_(dim, i, v), x, positions, values)
        same_as_on_the_cpu(lambda x, v, dim=dim: x.slice_scatter(v, dim, 0, 2), x, values)
        same_as_on_the_cpu(lambda x, v, dim=dim: x.select_scatter(v.select(dim, 0), dim, 1), x, values)


def test_a_written_number_is_repeated():
    def put(x, i):
        x = x.clone()
        x[i] = x[0, 0].clone()
        return x

    same_as_on_the_cpu(put, halves(5, 70), torch.tensor([3, 1]).to("spyre"))


def test_a_cache_is_written_in_place():
    cache, step = halves(1, 2, 8, 64), halves(1, 2, 1, 64, seed=1)
    expected = cache.cpu()
    expected[:, :, 5:6] = step.cpu()
    result = cache.index_copy_(2, torch.tensor([5]).to("spyre"), step)
    assert result is cache
    assert torch.equal(cache.cpu(), expected)


def test_indices_the_card_does_not_take_are_the_cpus():
    x = halves(4, 70)
    one, two = torch.tensor([0, 3]).to("spyre"), torch.tensor([1, 69]).to("spyre")
    for index in ((one, two), (x > 0,), (one.cpu(),)):
        with fallbacks_allowed():
            assert torch.equal(x[index].cpu(), x.cpu()[tuple(i.cpu() for i in index)])
    for index in ((one, two), (x > 0,)):
        with pytest.raises(RuntimeError, match="more than one index tensor|a mask as index|results are unknown"):
            x[index]
    with fallbacks_allowed():
        twice = torch.zeros(4, dtype=torch.float16, device="spyre")
        twice.index_put_((torch.tensor([1, 1]).to("spyre"),), torch.ones(2).half().to("spyre"), accumulate=True)
        assert twice.cpu().tolist() == [0, 2, 0, 0]


# ---- what a form that is refused leaves behind -------------------------------------------------------------------


def counted():
    return {name: entry["calls"] for name, entry in torch.spyre.metrics()["fallbacks"].items()}


def test_an_operator_without_a_form_for_its_arguments_is_one_fallback():
    x = maker(torch.float32)((3, 70)).to("spyre")
    torch.spyre.reset_metrics()
    with fallbacks_allowed():
        close(x.cumsum(-1), x.cpu().cumsum(-1))
    assert counted() == {"aten::cumsum": 1}


def test_a_form_that_fails_midway_is_one_fallback_of_the_operator():
    x = maker(torch.float32)((3, 70)).to("spyre")
    wanted = x[0, :3].clone()
    torch.spyre.reset_metrics()
    with fallbacks_allowed():
        found = torch.isin(x, wanted)
    assert torch.equal(found.cpu(), torch.isin(x.cpu(), wanted.cpu()))
    assert counted() == {"aten::isin.Tensor_Tensor": 1}
    (reason,) = torch.spyre.metrics()["fallbacks"]["aten::isin.Tensor_Tensor"]["reasons"]
    assert reason.startswith("aten::")


def test_wrong_arguments_raise_what_the_cpu_raises():
    with fallbacks_allowed():
        with pytest.raises(RuntimeError, match="selected index k out of range"):
            halves(3, 4).topk(9)
        with pytest.raises(IndexError, match="Dimension out of range"):
            halves(3, 4).var(5)


def test_a_warning_names_the_callers_line():
    torch.spyre.set_fallback_mode("warn")
    x = maker(torch.float32)((3, 70)).to("spyre")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        x.cumsum(-1)
    assert [(os.path.basename(w.filename), "aten::cumsum" in str(w.message)) for w in seen] == [
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
    card = [halves(*shape, seed=seed).requires_grad_() for seed, shape in enumerate(shapes)]
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
