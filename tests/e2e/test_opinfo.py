"""PyTorch's operator database on the card, in eager mode.

For every operator, dtype and sample: what the card computes is what the CPU computes from the same inputs, after both
went through the card's number format once. What the CPU refuses, the card refuses. Exceptions are in
expectations.toml and nowhere else.

`make test` looks at every operator in every dtype; its samples take turns, so that each dtype sees the first one and
others than its neighbours. Without `-m "not full"`, as in `make test-full`, every dtype sees all of them.
"""

import random
import unittest
import warnings

import expectations
import numpy as np
import pytest
import torch
from torch.testing._internal import common_utils
from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase
from torch.testing._internal.opinfo import core as opinfo_core
from torch.utils import _pytree as pytree

DTYPES = (torch.float16, torch.float32, torch.bool, torch.int64)
REFUSALS = (RuntimeError, ValueError, TypeError, IndexError, AssertionError)
TURNS = 3


def _is_dense(tensor: torch.Tensor) -> bool:
    return torch.ops.aten.is_non_overlapping_and_dense(tensor)


def _rebuild(tensor: torch.Tensor, move) -> torch.Tensor:
    """Moves a tensor together with its strides: one with gaps or overlaps travels as a view of a whole base."""
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.numel() == 0 or _is_dense(tensor):
        return move(tensor)
    places = torch.zeros((), dtype=torch.int64)
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        places = places[..., None] + torch.arange(size) * stride
    base = torch.zeros(int(places.max()) + 1, dtype=tensor.dtype)
    base[places.flatten()] = tensor.flatten()
    return move(base).as_strided(tensor.shape, tensor.stride())


def _map(tree, on_tensor, device):
    """Applies a function to every tensor; what names a device names the new one. A tensor given twice stays one."""
    seen = {}

    def leaf(value):
        if isinstance(value, torch.Tensor):
            if id(value) not in seen:
                seen[id(value)] = on_tensor(value)
            return seen[id(value)]
        if isinstance(value, torch.device) or value == "cpu":
            return torch.device(device)
        return value

    return pytree.tree_map(leaf, tree)


def _is_finite(tree) -> bool:
    tensors = [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor) and t.is_floating_point()]
    return all(bool(t.isfinite().all()) for t in tensors)


def seed(number: int = common_utils.SEED) -> None:
    """What draws samples, and what draws on the card; torch.manual_seed knows more devices, and takes longer."""
    torch.default_generator.manual_seed(number)
    torch.spyre.manual_seed_all(number)
    random.seed(number)
    np.random.seed(number)


class Call:
    """One sample, ready to run on the card and, with inputs rounded by the card, on the CPU."""

    def __init__(self, sample, device):
        inputs = (sample.input, sample.args, sample.kwargs)
        self.device = device
        self.card = _map(inputs, lambda t: _rebuild(t.detach(), lambda base: base.to(device)), device)
        self.host = _map(inputs, lambda t: _rebuild(t.detach(), lambda base: base.to(device).cpu()), "cpu")

    def run(self, function, inputs, **extra):
        first, args, kwargs = inputs
        seed(7)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(first, *args, **kwargs, **extra)

    def rounded(self, tree):
        """What the results are after a stay on the card."""
        return _map(tree, lambda t: _rebuild(t, lambda base: base.to(self.device).cpu()), "cpu")


def _to_host(tree):
    return _map(tree, lambda t: t.cpu(), "cpu")


def _describe(inputs) -> str:
    def leaf(value):
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype)[6:]}{list(value.shape)}"
        return value

    return str(pytree.tree_map(leaf, inputs))[:300]


def outcome(run):
    """(result, None) or (None, error)."""
    try:
        return run(), None
    except REFUSALS as error:
        return None, error


def _close(actual, expected) -> bool:
    try:
        torch.testing.assert_close(actual, expected, equal_nan=True)
    except AssertionError:
        return False
    return True


class Judge:
    """Compares results, and sorts failures into the expected and the unexpected."""

    def __init__(self, case: TestCase, op, variant: str, dtype: torch.dtype):
        self.case = case
        self.name = (op.formatted_name, variant, str(dtype)[6:])
        self.refusals = expectations.refusals(*self.name)
        self.values = not expectations.values_are_unspecified(*self.name)
        self.places = not expectations.places_are_unspecified(*self.name)
        self.special_values = not expectations.special_values_differ(*self.name)
        self.tolerance = expectations.tolerance(*self.name)
        self.samples = 0
        self.refused = set()

    def equal(self, call, actual, expected) -> None:
        """Compares what the card computed with what the CPU did."""
        actual = _to_host(actual)
        expected = call.rounded(expected) if self.values else expected
        actual_leaves, actual_spec = pytree.tree_flatten(actual)
        expected_leaves, expected_spec = pytree.tree_flatten(expected)
        self.case.assertEqual(str(actual_spec), str(expected_spec))
        for which, (have, want) in enumerate(zip(actual_leaves, expected_leaves, strict=True)):
            if not isinstance(want, torch.Tensor):
                self.case.assertEqual(have, want)
                continue
            self.case.assertEqual((have.shape, have.dtype), (want.shape, want.dtype))
            if not self.special_values:
                compared = want.isfinite() & _is_finite(call.host)
                have, want = have[compared], want[compared]
            if self.values and (self.places or which == 0):
                torch.testing.assert_close(
                    have, want, rtol=self.tolerance.rtol, atol=self.tolerance.atol, equal_nan=True
                )

    def compare(self, call, on_host, on_card, trusted=lambda result: True) -> None:
        """Runs both; what the CPU refuses the card must refuse."""
        expected, error = outcome(on_host)
        if error is not None:
            with self.case.assertRaises(REFUSALS, msg=f"the CPU raises {error!r}"):
                on_card()
        elif trusted(expected):
            self.equal(call, on_card(), expected)

    def sample(self, sample, check) -> None:
        """Runs one sample's check; an error that an expectation explains is noted, any other is raised."""
        self.samples += 1
        try:
            check(sample)
        except unittest.SkipTest:
            raise
        except Exception as error:
            reason = next((refusal for refusal in self.refusals if refusal.explains(error)), None)
            if reason is None:
                where = f"sample {self.samples - 1}: {_describe((sample.input, sample.args, sample.kwargs))}"
                raise AssertionError(f"{':'.join(self.name)} {where}\n{type(error).__name__}: {error}") from error
            self.refused.add(reason)

    def verdict(self, every_sample: bool) -> None:
        unused = [refusal.name for refusal in self.refusals if refusal not in self.refused]
        if unused and self.samples and every_sample:
            self.case.fail(f"{':'.join(self.name)}: expectations.toml lists it under {unused}, but no sample fails so")
        if self.refused:
            pytest.xfail("; ".join(sorted(refusal.why for refusal in self.refused)))


def in_turn(samples, dtype: torch.dtype):
    """The first sample, and of the others those whose turn it is with this dtype."""
    turn = DTYPES.index(dtype) % TURNS
    return (sample for i, sample in enumerate(samples) if i == 0 or i % TURNS == turn)


class TestOperators(TestCase):
    @pytest.fixture(autouse=True)
    def _how_many_samples(self, request):
        self.every_sample = request.config.option.markexpr != "not full"

    @pytest.fixture(autouse=True)
    def _short_ways(self, monkeypatch):
        """PyTorch's suites look for the running test three times, with the sources of the whole stack, and before every
        sample seed devices that are not there, which formats it. That takes three times as long as a small operator."""
        running = getattr(self, self._testMethodName).__func__  # its name is the seed of its samples
        for module in (common_utils, opinfo_core):
            monkeypatch.setattr(module, "extract_test_fn", lambda: running)
        monkeypatch.setattr(common_utils, "set_rng_seed", seed)

    def _judge(self, device, dtype, op, variant, check):
        judge = Judge(self, op, variant, dtype)
        if reason := expectations.skip_reason(*judge.name):
            self.skipTest(reason)
        samples = op.sample_inputs("cpu", dtype)
        for sample in samples if self.every_sample else in_turn(samples, dtype):
            judge.sample(sample, lambda s: check(judge, Call(s, device), s))
        judge.verdict(self.every_sample)

    @ops(op_db, allowed_dtypes=DTYPES)
    def test_function(self, device, dtype, op):
        def check(judge, call, sample):
            judge.compare(call, lambda: call.run(op, call.host), lambda: call.run(op, call.card))

        self._judge(device, dtype, op, "function", check)

    @ops([op for op in op_db if op.get_inplace() is not None], allowed_dtypes=DTYPES)
    def test_inplace(self, device, dtype, op):
        def check(judge, call, sample):
            def on(inputs):
                first, args, kwargs = inputs
                target = first.clone()
                result = call.run(op.get_inplace(), (target, args, kwargs))
                self.assertIs(result, target)
                return result

            if not sample.broadcasts_input:
                judge.compare(call, lambda: on(call.host), lambda: on(call.card))

        self._judge(device, dtype, op, "inplace", check)

    @ops([op for op in op_db if op.supports_out], allowed_dtypes=DTYPES)
    def test_out(self, device, dtype, op):
        # No element starts as what it must become, so that one left unwritten shows.
        def right_size(t):
            return t.logical_not().to(t.dtype)

        def too_small(t):
            return torch.zeros(0, dtype=t.dtype)

        def with_gaps(t):
            return torch.stack([right_size(t)] * 2, dim=-1)[..., 1]

        def check(judge, call, sample):
            expected, error = outcome(lambda: call.run(op, call.host))
            if error is not None:  # test_function looks at these
                return

            def on(inputs, make, move):
                out = pytree.tree_map_only(torch.Tensor, lambda t: _rebuild(make(t), move), expected)
                call.run(op, inputs, out=out)
                return out

            for make in (right_size, too_small, with_gaps):
                judge.compare(
                    call,
                    lambda make=make: on(call.host, make, lambda base: base),
                    lambda make=make: on(call.card, make, lambda base: base.to(device)),
                    # A few CPU kernels ignore the strides of `out`; what they write then is nobody's reference.
                    trusted=lambda out, make=make: make is not with_gaps or _close(out, expected),
                )

        self._judge(device, dtype, op, "out", check)


instantiate_device_type_tests(TestOperators, globals(), only_for="spyre")
