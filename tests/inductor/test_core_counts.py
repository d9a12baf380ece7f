"""Every operator over many shapes, on 1, 2, 7 and 32 cores: one answer, and it is the CPU's.

Each kernel is compiled once per core count and run on the same tensors. Pointwise results must agree bit for bit: a
core does the same steps on its slice as it would on the whole. Folds may be split over cores, which adds partial
results in another order: two units of the last place of the largest value are allowed there.

Operators of one kind are compiled as one function, so that the whole matrix takes seconds.
"""

import pytest
import torch
from torch_spyre._inductor import config, kernels

H, F, L, B = torch.float16, torch.float32, torch.int64, torch.bool
CORES = (1, 2, 7, 32)
LAST_PLACE = 2.0**-9


class OnEveryCoreCount:
    """Stands in for a compiled kernel and compares what it gives on other core counts."""

    def __init__(self, text: str, compiler):
        self.text, self.compared = text, 0
        self._kernels = {}
        for cores in CORES:
            with config.patch(sencores=cores):
                self._kernels[cores] = compiler(text)
        self._main = self._kernels[CORES[-1]]
        self.inputs, self.outputs, self.output_layout = self._main.inputs, self._main.outputs, self._main.output_layout
        self._mutated = self._main.written_inputs

    def run(self, inputs, outputs, facts=None) -> None:
        before = [t.cpu() for t in inputs]
        found = {}
        for cores, kernel in self._kernels.items():
            for name, tensor, was in zip(self.inputs, inputs, before, strict=True):
                if name in self._mutated:
                    tensor.copy_(was)
            kernel.run(inputs, outputs)
            changed = [t for n, t in zip(self.inputs, inputs, strict=True) if n in self._mutated]
            found[cores] = [t.cpu() for t in (*outputs, *changed)]
        for cores in CORES[:-1]:
            for one, other in zip(found[cores], found[CORES[-1]], strict=True):
                self._compare(one, other, cores)

    def _compare(self, one, other, cores) -> None:
        self.compared += 1
        if "reduce." not in self.text or not one.is_floating_point():
            assert torch.equal(one.nan_to_num(), other.nan_to_num()), (
                f"{cores} cores differ from {CORES[-1]}\n{self.text}"
            )
            return
        largest = other[other.isfinite()].abs().max().item() if other.isfinite().any() else 0.0
        torch.testing.assert_close(one, other, rtol=0, atol=2 * LAST_PLACE * largest, equal_nan=True)

    def save(self, directory, text) -> None:
        pass

    def plan(self):
        return self._main.plan()


@pytest.fixture
def sweep(monkeypatch):
    """Compiles a function, runs it on every core count, compares with the CPU; returns the operators left to it."""
    made = []
    compiler = kernels.compile_graph

    def compile_graph(text):
        made.append(OnEveryCoreCount(text, compiler))
        return made[-1]

    monkeypatch.setattr(kernels, "compile_graph", compile_graph)
    monkeypatch.setattr(kernels, "compiler_id", lambda: "every core count")

    def run(function, *given, views=lambda *t: t, tolerance=1e-2):
        expected = function(*views(*(t.float() if t.dtype == H else t for t in given)))
        torch.spyre.reset_metrics()
        found = torch.compile(function, fullgraph=True)(*views(*(t.to("spyre") for t in given)))
        assert sum(k.compared for k in made) > 0, "no kernel ran"
        for name, value in expected.items():
            card = found[name].cpu()
            want = value.to(card.dtype)
            assert card.shape == want.shape, name
            torch.testing.assert_close(
                card, want, rtol=tolerance, atol=tolerance, equal_nan=True, msg=lambda m, name=name: f"{name}: {m}"
            )
        return set(torch.spyre.metrics()["fallbacks"])

    return run


def pointwise(x, y):
    return {
        "abs": x.abs(),
        "add": x + y,
        "ceil": torch.ceil(x * 1.5),
        "clamp": x.clamp(-0.5, 0.75),
        "cos": torch.cos(x),
        "div": x / (y.abs() + 1),
        "exp": torch.exp(x),
        "floor": torch.floor(x * 1.5),
        "gelu": torch.nn.functional.gelu(x, approximate="tanh"),
        "log": torch.log(x.abs() + 1),
        "maximum": torch.maximum(x, y),
        "minimum": torch.minimum(x, y),
        "mul": x * y,
        "neg": -x,
        "reciprocal": torch.reciprocal(x.abs() + 1),
        "relu": torch.relu(x),
        "rsqrt": torch.rsqrt(x.abs() + 1),
        "sigmoid": torch.sigmoid(x),
        "silu": torch.nn.functional.silu(x),
        "sqrt": torch.sqrt(x.abs()),
        "square": x.square(),
        "sub": x - y,
        "tanh": torch.tanh(x),
        "where": torch.where(x > y, x, y),
    }


def comparisons(x, y):
    return {
        "eq": x == y,
        "ne": x != y,
        "lt": x < y,
        "le": x <= y,
        "gt": x > y,
        "ge": x >= y,
        "and": (x > 0) & (y > 0),
        "or": (x > 0) | (y > 0),
        "not": ~(x > 0),
    }


def fp16(*shape, dtype=H):
    """Multiples of 1/4: the same number in every format."""
    return (torch.randint(-8, 9, shape) / 4).to(dtype)


SHAPES = {
    "aligned": (4, 128),
    "unaligned": (3, 100),
    "one_element": (1,),
    "no_axes": (),
    "vector": (130,),
    "rank3": (2, 5, 65),
    "rank4": (2, 3, 4, 33),
    "rank5": (2, 1, 3, 2, 64),
    "rank6": (2, 1, 3, 2, 2, 40),
    "many_rows": (130, 64),
}


#: Of the rest the views below have the like.
QUICK = ("aligned", "unaligned", "no_axes", "rank3", "rank6")


@pytest.mark.parametrize("shape", [s if s in QUICK else pytest.param(s, marks=pytest.mark.full) for s in SHAPES])
def test_pointwise_results_do_not_depend_on_cores(sweep, shape):
    assert not sweep(pointwise, fp16(*SHAPES[shape]), fp16(*SHAPES[shape]))


@pytest.mark.parametrize("shape", ("aligned", "unaligned", "rank4", "no_axes"))
def test_comparisons_do_not_depend_on_cores(sweep, shape):
    assert not sweep(comparisons, fp16(*SHAPES[shape]), fp16(*SHAPES[shape]))


VIEWS = {
    "broadcast_rows": ((4, 100), (100,), lambda x, y: (x, y)),
    "broadcast_columns": ((4, 100), (4, 1), lambda x, y: (x, y)),
    "broadcast_both": ((4, 1, 64), (5, 1), lambda x, y: (x, y)),
    "expanded": ((1, 64), (4, 64), lambda x, y: (x.expand(4, 64), y)),
    "transposed": ((128, 64), (64, 128), lambda x, y: (x.t(), y)),
    "both_transposed": ((100, 7), (100, 7), lambda x, y: (x.t(), y.t())),
    "rows_sliced": ((9, 70), (4, 70), lambda x, y: (x[2:6], y)),
    "columns_sliced": ((4, 192), (4, 64), lambda x, y: (x[:, 64:128], y)),
    "every_second_row": ((8, 64), (4, 64), lambda x, y: (x[::2], y)),
    "permuted": ((4, 5, 64), (5, 4, 64), lambda x, y: (x.permute(1, 0, 2), y)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_inputs_do_not_depend_on_cores(sweep, name):
    first, second, views = VIEWS[name]
    assert not sweep(
        few := lambda x, y: {"add": x + y, "mul": y * x, "relu": torch.relu(x)},
        fp16(*first),
        fp16(*second),
        views=views,
    ), few


def arithmetic(x, y):
    return {
        "add": x + y,
        "sub": x - y,
        "mul": x * y,
        "maximum": torch.maximum(x, y),
        "neg": -x,
        "where": torch.where(x > y, x, y),
    }


@pytest.mark.parametrize("dtype", (F, L), ids=("float32", "int64"))
@pytest.mark.parametrize("shape", ("aligned", "unaligned", "rank4"))
def test_wide_types_are_exact_on_every_core_count(sweep, shape, dtype):
    x, y = ((fp16(*SHAPES[shape]) * 4).to(dtype) for _ in range(2))
    assert not sweep(arithmetic, x, y, tolerance=0)


@pytest.mark.parametrize("shape", ("aligned", "unaligned"))
def test_truth_values_do_not_depend_on_cores(sweep, shape):
    def logic(x, y):
        return {"and": x & y, "or": x | y, "xor": x ^ y, "not": ~x, "any": x.any(-1), "all": y.all(0)}

    assert not sweep(logic, fp16(*SHAPES[shape]) > 0, fp16(*SHAPES[shape]) > 0)


def folds(x):
    last = x.dim() - 1
    return {
        "sum": x.sum(last),
        "sum_first": x.sum(0),
        "sum_all": x.sum(),
        "mean": x.mean(last, keepdim=True),
        "mean_first": x.mean(0),
        "amax": x.amax(last),
        "amin": x.amin(0),
        "softmax": torch.softmax(x, last),
        "softmax_first": torch.softmax(x, 0),
    }


@pytest.mark.parametrize("shape", ("aligned", "unaligned", "vector", "rank3", "rank4", "many_rows"))
def test_folds_agree_within_two_places(sweep, shape):
    assert not sweep(folds, fp16(*SHAPES[shape]))


PRODUCTS = {
    "square": ((64, 64), (64, 64)),
    "ragged": ((7, 70), (70, 100)),
    "one_row": ((1, 128), (128, 192)),
    "tall": ((130, 64), (64, 64)),
    "batched": ((3, 4, 64), (3, 64, 65)),
    "two_batches": ((2, 3, 4, 64), (2, 3, 64, 64)),
    "broadcast": ((2, 3, 4, 64), (3, 64, 64)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_agree_within_two_places(sweep, name):
    first, second = PRODUCTS[name]
    assert not sweep(lambda x, y: {"product": x @ y}, fp16(*first), fp16(*second))
