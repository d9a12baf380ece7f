"""One operator, called directly and through torch.compile: the same bits.

Both ways end in the same compiler, so they may differ only where one of them asks for other steps, or where one runs on
the CPU. Neither exists.

`make test` looks at every operator in one of the forms, which take turns; the full run looks at every pair.
"""

import itertools

import pytest
import torch
from test_eager import BINARY, BROADCASTS, FORMS, POSITIVE, UNARY, maker
from torch.nn import functional as f
from torch.utils import _pytree as pytree

from tests.sweeps import in_turn

DTYPES = {"float16": torch.float16, "float32": torch.float32, "int64": torch.int64, "bool": torch.bool}
VIEWS = {**FORMS, "6d": lambda make: make((2, 1, 2, 1, 3, 64))}

OF_ONE = {
    **UNARY,
    **POSITIVE,
    "all": lambda x: x.all(),
    "amax": lambda x: x.amax(-1),
    "amin_first": lambda x: x.amin(0),
    "any": lambda x: x.any(-1),
    "argmax": lambda x: x.argmax(-1),
    "cat": lambda x: torch.cat([x, x], 0),
    "contiguous": lambda x: x.contiguous(),
    "flip": lambda x: x.flip(0),
    "isnan": torch.isnan,
    "layer_norm": lambda x: f.layer_norm(x, x.shape[-1:]),
    "layer_norm_of_matrices": lambda x: f.layer_norm(x, x.shape[-2:]),
    "log_softmax": lambda x: x.log_softmax(-1),
    "matmul": lambda x: x @ x.transpose(-1, -2),
    "max_with_position": lambda x: torch.max(x, -1),
    "mean": lambda x: x.mean(-1),
    "mean_of_all": lambda x: x.mean(),
    "norm": lambda x: torch.linalg.vector_norm(x, 2, -1),
    "norm_of_all": lambda x: torch.linalg.vector_norm(x),
    "prod": lambda x: x.prod(0),
    "rms_norm": lambda x: f.rms_norm(x, x.shape[-1:]),
    "softmax": lambda x: x.softmax(-1),
    "softplus": f.softplus,
    "sort": lambda x: x.sort(stable=True),
    "stack": lambda x: torch.stack([x, x]),
    "std": lambda x: x.std(-1),
    "sum": lambda x: x.sum(-1),
    "sum_first": lambda x: x.sum(0),
    "sum_of_all": lambda x: x.sum(),
    "to_bool": lambda x: x.bool(),
    "to_float16": lambda x: x.half(),
    "to_float32": lambda x: x.float(),
    "to_int64": lambda x: x.long(),
    "topk": lambda x: x.topk(2, 0),
    "tril": torch.tril,
    "var": lambda x: x.var(-1),
    "var_of_all": lambda x: x.var(),
}


def values(dtype, seed, positive=False):
    make = maker(dtype, seed, 0.25 if positive else -2.0, 4.0 if positive else 2.0)
    return lambda shape: make(shape).to("spyre")


def run(function, inputs):
    """The results on the host, and whether the CPU helped."""
    torch.spyre.reset_metrics()
    results = function(*inputs)
    helped = bool(torch.spyre.metrics()["fallbacks"])
    return [t.cpu() for t in pytree.tree_leaves(results)], helped


def bits(tensor):
    whole = {torch.float16: torch.int16, torch.float32: torch.int32}.get(tensor.dtype)
    return tensor.contiguous().view(whole) if whole else tensor


def defined_for(function, inputs) -> bool:
    try:
        function(*(t.cpu() for t in inputs))
    except (RuntimeError, IndexError, ValueError, TypeError):
        return False  # not an operator of this dtype or shape
    return True


def same_both_ways(name, dtype, function, inputs, form):
    if not defined_for(function, inputs):
        return
    torch._dynamo.reset()
    eager, eager_helped = run(function, inputs)
    compiled, compiled_helped = run(torch.compile(function, fullgraph=True), inputs)
    who = "eager" if eager_helped else "compiled"
    assert eager_helped == compiled_helped, f"{name} {dtype} {form}: on the CPU only when {who}"
    for one, other in zip(eager, compiled, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        different = int((bits(one) != bits(other)).sum())
        assert different == 0, f"{name} {dtype} {form}: {different} of {one.numel()} elements differ"


@pytest.mark.parametrize("name,form", in_turn(OF_ONE, VIEWS))
def test_one_tensor(name, form):
    for dtype in DTYPES:
        x = VIEWS[form](values(DTYPES[dtype], 1, name in POSITIVE))
        same_both_ways(name, dtype, OF_ONE[name], [x], form)


@pytest.mark.parametrize("name,form", in_turn(BINARY, VIEWS))
def test_two_tensors_alike(name, form):
    for dtype in DTYPES:
        x, y = (VIEWS[form](values(DTYPES[dtype], seed, seed == 2)) for seed in (1, 2))
        same_both_ways(name, dtype, BINARY[name], [x, y], form)


@pytest.mark.parametrize("name,form", in_turn(BINARY, BROADCASTS))
def test_broadcasting(name, form):
    for dtype in DTYPES:
        x, y = (values(DTYPES[dtype], seed, seed == 2)(BROADCASTS[form][seed - 1]) for seed in (1, 2))
        same_both_ways(name, dtype, BINARY[name], [x, y], form)


PAIRS = list(itertools.permutations(DTYPES, 2))


@pytest.mark.parametrize("one,other", PAIRS)
def test_promotion(one, other):
    x, y = values(DTYPES[one], 1)((3, 70)), values(DTYPES[other], 2)((3, 70))
    same_both_ways("mul", f"{one} and {other}", torch.mul, [x, y], "unaligned")
