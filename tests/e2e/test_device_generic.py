"""PyTorch's device-generic behaviour on the card: views, indexing, copies, storage, serialization, random numbers,
streams and events, the accelerator API, modules and autograd.

The judge is PyTorch on the CPU: values are small integers or multiples of 0.5, which every format of the card holds
exactly, so results must be equal bit for bit.
"""

import copy
import io
import itertools
import os
import pickle
import subprocess
import sys
import textwrap

import torch
from torch import nn
from torch.testing._internal.common_device_type import dtypes, instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase

FLOATS = (torch.float16, torch.bfloat16, torch.float32)
INTEGERS = (torch.int8, torch.int32, torch.int64)
COMMON = (torch.float16, torch.float32, torch.bool, torch.int64)
STORABLE = (*FLOATS, torch.bool, *INTEGERS, torch.uint8)
REFUSED = (torch.float64, torch.complex64, torch.complex128)


def counting(shape, dtype) -> torch.Tensor:
    """A CPU tensor whose neighbours differ and whose values every format holds exactly."""
    numel = torch.Size(shape).numel()
    values = torch.arange(numel) % 97
    return (values % 3 == 0 if dtype == torch.bool else values.to(dtype)).reshape(shape)


class SpyreTestCase(TestCase):
    """assertEqual between the card and the CPU is exact."""

    exact_dtype = True

    def assert_same(self, actual, expected):
        self.assertEqual(actual.device.type, "spyre")
        self.assertEqual(actual.dtype, expected.dtype)
        self.assertEqual(actual.cpu(), expected, rtol=0, atol=0)

    def pair(self, shape, dtype, device):
        host = counting(shape, dtype)
        return host, host.to(device)


# Every view operator, by name, on a tensor of three dimensions.
VIEWS = {
    "alias": lambda t: torch.ops.aten.alias(t),
    "as_strided": lambda t: t.as_strided((3, 2), (2, 5), 4),
    "chunk": lambda t: t.chunk(3, dim=1)[1],
    "detach": lambda t: t.detach(),
    "diagonal": lambda t: t.diagonal(1, 1, 2),
    "diagonal_negative": lambda t: t.diagonal(-2, 0, 1),
    "dsplit": lambda t: torch.dsplit(t, [1, 3])[1],
    "expand": lambda t: t[:, :1].expand(-1, 4, -1),
    "expand_new_dim": lambda t: t.expand(2, *t.shape),
    "expand_as": lambda t: t[:1].expand_as(t),
    "flatten": lambda t: t.flatten(1),
    "hsplit": lambda t: torch.hsplit(t, [2])[1],
    "movedim": lambda t: t.movedim(0, 2),
    "moveaxis": lambda t: t.moveaxis((0, 1), (2, 0)),
    "mT": lambda t: t.mT,
    "narrow": lambda t: t.narrow(2, 1, 3),
    "permute": lambda t: t.permute(2, 0, 1),
    "ravel": lambda t: t.ravel(),
    "reshape": lambda t: t.reshape(t.shape[0] * t.shape[1], -1),
    "select": lambda t: t.select(1, 2),
    "select_negative": lambda t: t.select(-1, -1),
    "slice": lambda t: t[1:, ::2, 1:4],
    "split": lambda t: t.split(2, dim=2)[1],
    "split_sizes": lambda t: t.split([1, 2], dim=0)[1],
    "squeeze": lambda t: t[:, :1].squeeze(1),
    "squeeze_all": lambda t: t[:1, :, :1].squeeze(),
    "swapaxes": lambda t: t.swapaxes(0, 2),
    "t": lambda t: t[0].t(),
    "T": lambda t: t[1].T,
    "tensor_split": lambda t: torch.tensor_split(t, 3, dim=2)[1],
    "transpose": lambda t: t.transpose(0, 1),
    "unbind": lambda t: t.unbind(1)[3],
    "unflatten": lambda t: t.unflatten(1, (2, 2)),
    "unfold": lambda t: t.unfold(2, 3, 1),
    "unfold_steps": lambda t: t.unfold(1, 2, 2),
    "unsqueeze": lambda t: t.unsqueeze(1),
    "view": lambda t: t.view(-1),
    "view_as": lambda t: t.view_as(t),
    "view_inferred": lambda t: t.view(2, -1, 2),
    "view_same_dtype": lambda t: t.view(t.dtype),
    "vsplit": lambda t: torch.vsplit(t, [1])[1],
}
OVERLAPPING = {"expand", "expand_new_dim", "expand_as", "unfold"}
SHAPE = (3, 4, 6)


class TestViews(SpyreTestCase):
    @dtypes(*COMMON)
    def test_each_view_reads_what_the_cpu_reads(self, device, dtype):
        host, card = self.pair(SHAPE, dtype, device)
        for name, view in VIEWS.items():
            with self.subTest(view=name):
                expected, actual = view(host), view(card)
                self.assert_same(actual, expected)
                self.assertEqual(actual.stride(), expected.stride())
                self.assertEqual(actual.storage_offset(), expected.storage_offset())
                self.assertEqual(actual.untyped_storage().data_ptr(), card.untyped_storage().data_ptr())
                self.assertEqual(actual._is_view(), expected._is_view())

    @dtypes(*COMMON)
    def test_a_write_through_each_view_reaches_the_base(self, device, dtype):
        for name, view in VIEWS.items():
            if name in OVERLAPPING:
                continue
            with self.subTest(view=name):
                host, card = self.pair(SHAPE, dtype, device)
                new = counting(view(host).shape, dtype).flip(0).logical_not().to(dtype)
                view(host).copy_(new)
                view(card).copy_(new)
                self.assert_same(card, host)

    @dtypes(torch.float16, torch.float32, torch.int64)
    def test_in_place_arithmetic_on_each_view_changes_the_base(self, device, dtype):
        for name, view in VIEWS.items():
            if name in OVERLAPPING:
                continue
            with self.subTest(view=name):
                host, card = self.pair(SHAPE, dtype, device)
                view(host).add_(1).mul_(2)
                view(card).add_(1).mul_(2)
                self.assert_same(card, host)

    @dtypes(torch.float16)
    def test_fill_and_zero_touch_only_the_view(self, device, dtype):
        for name, view in VIEWS.items():
            with self.subTest(view=name):
                host, card = self.pair(SHAPE, dtype, device)
                view(host).fill_(5)
                view(card).fill_(5)
                self.assert_same(card, host)
                view(host).zero_()
                view(card).zero_()
                self.assert_same(card, host)

    @dtypes(torch.float16, torch.float32)
    def test_views_of_views_compose(self, device, dtype):
        host, card = self.pair((4, 6, 8), dtype, device)
        chains = [
            lambda t: t.transpose(0, 2)[1:5, ::2].select(2, 1),
            lambda t: t[1:].permute(2, 1, 0).narrow(0, 2, 4)[:, 3],
            lambda t: t.view(24, 8)[::3].t()[2:].unsqueeze(0),
            lambda t: t.unfold(1, 3, 2).transpose(1, 3)[2],
            lambda t: t.diagonal(0, 0, 1)[2:].t().expand(2, 4, 6)[1],
            lambda t: t[..., 1].flatten()[::5].view(5, 1).expand(5, 3),
        ]
        for index, chain in enumerate(chains):
            with self.subTest(chain=index):
                self.assert_same(chain(card), chain(host))
                self.assert_same(chain(card).clone(), chain(host))
                self.assert_same(chain(card).contiguous(), chain(host))

    @dtypes(torch.float16)
    def test_rows_that_end_inside_a_stick(self, device, dtype):
        # 64 fp16 values fill a stick: lengths around it, and views that start and end inside one.
        for columns in (1, 63, 64, 65, 127, 128, 130):
            host, card = self.pair((5, columns), dtype, device)
            for view in (
                lambda t: t[:, -1],
                lambda t: t.t()[-1],
                lambda t: t[1:4, t.shape[1] // 2 :],
                lambda t: t.view(-1)[t.shape[1] - 1 : t.shape[1] + 2],
                lambda t: t[::2, ::3],
            ):
                self.assert_same(view(card), view(host))
                view(card).neg_()
                view(host).neg_()
                self.assert_same(card, host)

    @dtypes(torch.float32)
    def test_impossible_views_are_refused(self, device, dtype):
        card = counting((3, 4), dtype).to(device)
        impossible = [
            lambda: card.t().view(-1),
            lambda: card.view(5, -1),
            lambda: card.as_strided((100,), (1,)),
            lambda: card.as_strided((2,), (-1,)),
            lambda: card.unfold(0, 4, 1),
            lambda: card.narrow(0, 2, 2),
            lambda: card.select(0, 3),
            lambda: card.expand(4, 4),
            lambda: card.view(torch.int32),
        ]
        for index, attempt in enumerate(impossible):
            with self.subTest(attempt=index), self.assertRaises((RuntimeError, IndexError)):
                attempt()

    @dtypes(torch.float32)
    def test_versions_count_writes_through_views(self, device, dtype):
        base = torch.zeros(4, dtype=dtype, device=device)
        version = base._version
        base[1:].add_(1)
        self.assertGreater(base._version, version)


# Getters and setters, as (name, index); masks and index tensors are made on the device they are used on.
INDICES = {
    "int": lambda d: 1,
    "negative": lambda d: -1,
    "ints": lambda d: (1, 2, -3),
    "slice": lambda d: slice(1, 3),
    "step": lambda d: (slice(None), slice(0, 5, 2)),
    "ellipsis": lambda d: (..., 2),
    "ellipsis_between": lambda d: (0, ..., slice(1, None)),
    "none": lambda d: (None, 1),
    "true": lambda d: True,
    "full_mask": lambda d: (torch.arange(120).reshape(4, 5, 6) % 7 == 0).to(d),
    "row_mask": lambda d: torch.tensor([True, False, True, True], device=d),
    "inner_mask": lambda d: (slice(None), torch.tensor([True, False, False, True, True], device=d)),
    "empty_mask": lambda d: torch.zeros(4, dtype=torch.bool, device=d),
    "index": lambda d: torch.tensor([3, 0, 1], device=d),
    "negative_index": lambda d: torch.tensor([-1, -4], device=d),
    "matrix_index": lambda d: torch.tensor([[0, 1], [2, 3]], device=d),
    "two_indices": lambda d: (torch.tensor([0, 3], device=d), torch.tensor([1, 4], device=d)),
    "index_and_slice": lambda d: (slice(1, 3), torch.tensor([4, 0], device=d), slice(None, None, 2)),
    "index_after_gap": lambda d: (torch.tensor([0, 3], device=d), slice(None), torch.tensor([5, 2], device=d)),
    "int_and_index": lambda d: (2, torch.tensor([4, 0], device=d)),
    "empty_index": lambda d: torch.tensor([], dtype=torch.int64, device=d),
    "list": lambda d: [0, 2],
    "cpu_index": lambda d: torch.tensor([1, 2]),
    "cpu_mask": lambda d: torch.tensor([True, False, True, True]),
    "scalar_index": lambda d: torch.tensor(2, device=d),
    "int32_index": lambda d: torch.tensor([1, 2], dtype=torch.int32, device=d),
}


class TestIndexing(SpyreTestCase):
    @dtypes(*COMMON)
    def test_reading(self, device, dtype):
        host, card = self.pair((4, 5, 6), dtype, device)
        for name, index in INDICES.items():
            with self.subTest(index=name):
                self.assert_same(card[index(device)], host[index("cpu")])

    @dtypes(*COMMON)
    def test_writing_a_number(self, device, dtype):
        for name, index in INDICES.items():
            with self.subTest(index=name):
                host, card = self.pair((4, 5, 6), dtype, device)
                host[index("cpu")] = 1
                card[index(device)] = 1
                self.assert_same(card, host)

    @dtypes(*COMMON)
    def test_writing_a_tensor_from_the_card(self, device, dtype):
        for name, index in INDICES.items():
            with self.subTest(index=name):
                host, card = self.pair((4, 5, 6), dtype, device)
                value = counting(host[index("cpu")].shape, dtype).logical_not().to(dtype)
                host[index("cpu")] = value
                card[index(device)] = value.to(device)
                self.assert_same(card, host)

    @dtypes(torch.float32)
    def test_writing_a_tensor_from_the_cpu(self, device, dtype):
        host, card = self.pair((4, 5, 6), dtype, device)
        host[1:, 2] = torch.ones(6)
        card[1:, 2] = torch.ones(6)
        self.assert_same(card, host)

    @dtypes(torch.float16, torch.float32)
    def test_writing_broadcasts(self, device, dtype):
        host, card = self.pair((4, 5, 6), dtype, device)
        row = counting((6,), dtype) + 3
        host[1:, ::2] = row
        card[1:, ::2] = row.to(device)
        self.assert_same(card, host)
        host[:, 1] *= 2
        card[:, 1] *= 2
        self.assert_same(card, host)

    @dtypes(torch.float32)
    def test_index_operators(self, device, dtype):
        host, card = self.pair((5, 4), dtype, device)
        rows_host = torch.tensor([4, 0, 2])
        rows = rows_host.to(device)
        source_host = counting((3, 4), dtype) + 10
        source = source_host.to(device)
        self.assert_same(card.index_select(0, rows), host.index_select(0, rows_host))
        self.assert_same(card.index_add(0, rows, source), host.index_add(0, rows_host, source_host))
        self.assert_same(card.index_copy(0, rows, source), host.index_copy(0, rows_host, source_host))
        self.assert_same(card.index_fill(0, rows, 7), host.index_fill(0, rows_host, 7))
        self.assert_same(card.masked_fill(card > 5, -1), host.masked_fill(host > 5, -1))
        self.assert_same(card.masked_select(card > 5), host.masked_select(host > 5))
        self.assert_same(torch.where(card > 5, card, -card), torch.where(host > 5, host, -host))
        self.assert_same(card.take(rows), host.take(rows_host))
        self.assert_same(card.gather(0, rows[None, :3].expand(2, 3)), host.gather(0, rows_host[None, :3].expand(2, 3)))
        self.assert_same(card.nonzero(), host.nonzero())
        host.index_put_((rows_host,), torch.ones(()), accumulate=True)
        card.index_put_((rows,), torch.ones((), device=device), accumulate=True)
        self.assert_same(card, host)

    @dtypes(torch.float32)
    def test_out_of_range_is_an_index_error(self, device, dtype):
        card = torch.zeros(3, 4, dtype=dtype, device=device)
        for index in (3, -4, (0, 4), (0, 0, 0), torch.tensor([3], device=device)):
            with self.subTest(index=str(index)), self.assertRaises(IndexError):
                card[index]

    @dtypes(*COMMON)
    def test_items_and_lists(self, device, dtype):
        host, card = self.pair((2, 3), dtype, device)
        self.assertEqual(card.tolist(), host.tolist())
        self.assertEqual([[value.item() for value in row] for row in card], host.tolist())
        self.assertEqual(len(card), 2)
        self.assertEqual(bool(card[1, 0].cpu()), bool(host[1, 0]))


class TestCopies(SpyreTestCase):
    @dtypes(*STORABLE)
    def test_to_the_card_and_back(self, device, dtype):
        for shape in ((), (1,), (0,), (3, 0, 2), (5,), (64,), (65,), (3, 130), (2, 3, 4, 5), (1, 1, 1)):
            with self.subTest(shape=shape):
                host = counting(shape, dtype)
                self.assert_same(host.to(device), host)

    @dtypes(*REFUSED)
    def test_dtypes_the_card_has_not_are_refused_by_name(self, device, dtype):
        with self.assertRaisesRegex(RuntimeError, "Spyre backend does not support dtype"):
            torch.ones(2, dtype=dtype).to(device)
        with self.assertRaisesRegex(RuntimeError, "Spyre backend does not support dtype"):
            torch.empty(2, dtype=dtype, device=device)
        with self.assertRaisesRegex(RuntimeError, "Spyre backend does not support dtype"):
            torch.ones(2, device=device).to(dtype)

    @dtypes(*COMMON)
    def test_sources_of_every_shape(self, device, dtype):
        host = counting(SHAPE, dtype)
        for name, view in {**VIEWS, "flip": lambda t: t.flip(0)}.items():
            with self.subTest(source=name):
                source = view(host)
                self.assert_same(source.to(device), source)
                target = torch.zeros(source.shape, dtype=dtype, device=device)
                self.assert_same(target.copy_(source), source)
                self.assertEqual(target.copy_(source.to(device)).cpu(), source)

    @dtypes(*COMMON)
    def test_targets_of_every_shape(self, device, dtype):
        for name, view in VIEWS.items():
            if name in OVERLAPPING:
                continue
            with self.subTest(target=name):
                card = torch.zeros(SHAPE, dtype=dtype, device=device)
                host = torch.zeros(SHAPE, dtype=dtype)
                source = counting(view(host).shape, dtype)
                view(card).copy_(source)
                view(host).copy_(source)
                self.assert_same(card, host)
                # And out of the card into a view of host memory.
                again = torch.zeros(SHAPE, dtype=dtype)
                view(again).copy_(view(card))
                self.assertEqual(again, host)

    def test_every_pair_of_dtypes(self, device):
        for source, target in itertools.product(STORABLE, STORABLE):
            with self.subTest(source=source, target=target):
                host = counting((3, 5), source)
                expected = host.to(target)
                self.assert_same(host.to(device).to(target), expected)
                self.assert_same(host.to(device, target), expected)
                self.assertEqual(host.to(device).to("cpu", target), expected)
                card = torch.zeros(3, 5, dtype=target, device=device)
                self.assert_same(card.copy_(host), expected)
                self.assert_same(card.copy_(host.to(device)), expected)
                self.assertEqual(torch.zeros(3, 5, dtype=target).copy_(host.to(device)), expected)

    @dtypes(torch.float16, torch.float32)
    def test_broadcasting_copies(self, device, dtype):
        row = counting((5,), dtype)
        expected = torch.zeros(3, 5, dtype=dtype).copy_(row)
        self.assert_same(torch.zeros(3, 5, dtype=dtype, device=device).copy_(row), expected)
        self.assert_same(torch.zeros(3, 5, dtype=dtype, device=device).copy_(row.to(device)), expected)
        self.assertEqual(torch.zeros(3, 5, dtype=dtype).copy_(row.to(device)), expected)

    @dtypes(*COMMON)
    def test_non_blocking_copies_arrive(self, device, dtype):
        host = counting((33, 70), dtype)
        expected = host.clone()
        card = host.to(device, non_blocking=True)
        host.zero_()  # the queued copy has its own
        self.assert_same(card, expected)
        back = card.to("cpu", non_blocking=True)
        torch.accelerator.synchronize()
        self.assertEqual(back, expected)
        pinned = torch.empty_like(expected).pin_memory(device)
        pinned.copy_(card, non_blocking=True)
        torch.accelerator.synchronize()
        self.assertEqual(pinned, expected)

    @dtypes(torch.float32)
    def test_pinned_memory(self, device, dtype):
        host = counting((100,), dtype)
        self.assertFalse(host.is_pinned())
        pinned = host.pin_memory()
        self.assertTrue(pinned.is_pinned())
        self.assertTrue(pinned[10:20].is_pinned())
        self.assertEqual(pinned, host)
        self.assert_same(pinned.to(device, non_blocking=True), host)
        self.assertTrue(torch.empty(3, pin_memory=True).is_pinned())
        with self.assertRaises(RuntimeError):
            host.to(device).pin_memory()

    @dtypes(*COMMON)
    def test_copies_within_the_card(self, device, dtype):
        host, card = self.pair((4, 6), dtype, device)
        self.assert_same(card.clone(), host)
        self.assert_same(card.t().clone(), host.t())
        self.assertEqual(card.t().clone().stride(), host.t().clone().stride())
        self.assert_same(card.copy_(card), host)
        card[:2].copy_(card[2:])
        host[:2].copy_(host[2:])
        self.assert_same(card, host)
        self.assertIs(card.to(device), card)
        self.assertIsNot(card.to(device, copy=True), card)
        self.assertIs(card.contiguous(), card)

    @dtypes(torch.float16)
    def test_halves_are_rounded_to_the_card_once(self, device, dtype):
        values = torch.tensor([1025.0, 65504.0, 1 / 3, -1.0, float("inf"), -0.0], dtype=dtype)
        expected = torch.tensor([1026.0, 65472.0, 0.33349609375, -1.0, float("inf"), -0.0], dtype=dtype)
        once = values.to(device).cpu()
        self.assertEqual(once, expected, rtol=0, atol=0)
        self.assertEqual(once.to(device).clone().cpu(), expected, rtol=0, atol=0)

    @dtypes(torch.int64)
    def test_integers_that_do_not_fit_are_refused(self, device, dtype):
        fits = torch.tensor([2**31 - 1, -(2**31), 0])
        self.assert_same(fits.to(device), fits)
        with self.assertRaises(RuntimeError):
            torch.tensor([2**31]).to(device)

    @dtypes(torch.float32)
    def test_memory_formats(self, device, dtype):
        host, card = self.pair((2, 3, 4, 5), dtype, device)
        for memory_format in (torch.contiguous_format, torch.channels_last, torch.preserve_format):
            expected = host.clone(memory_format=memory_format)
            actual = card.clone(memory_format=memory_format)
            self.assert_same(actual, expected)
            self.assertEqual(actual.stride(), expected.stride())
        self.assertEqual(card.to(memory_format=torch.channels_last).stride(), (60, 1, 15, 3))

    @dtypes(torch.float32)
    def test_sizes_must_agree(self, device, dtype):
        with self.assertRaises(RuntimeError):
            torch.zeros(3, dtype=dtype, device=device).copy_(torch.zeros(4))

    def test_between_two_cards(self, device):
        # A process sees the cards it was started with, so two cards need a process of their own.
        program = """
            import torch
            host = torch.arange(300.).reshape(3, 100)
            for dtype in (torch.float16, torch.float32, torch.bool, torch.int64):
                expected = (host % 3).to(dtype)
                first = expected.to("spyre:0")
                second = first.to("spyre:1")
                assert second.device == torch.device("spyre:1"), second.device
                assert torch.equal(second.cpu(), expected)
                assert torch.equal(first.t().to("spyre:1").cpu(), expected.t())
                target = torch.zeros(100, 3, dtype=dtype, device="spyre:0")
                target.t().copy_(second)
                assert torch.equal(target.cpu(), expected.t())
                assert torch.equal(second.to("spyre:0", torch.float32).cpu(), expected.float())
            with torch.spyre.device(1):
                assert torch.empty(1, device="spyre").device.index == 1
                assert torch.accelerator.current_device_index() == 1
            assert torch.spyre.current_device() == 0
            assert torch.accelerator.device_count() == 2
            one, other = torch.zeros(2, device="spyre:0"), torch.zeros(2, device="spyre:1")
            # A kernel of the card, and an operator that the CPU runs.
            for operator in (torch.add, torch.atan2):
                try:
                    operator(one, other)
                except RuntimeError as error:
                    assert "Expected all tensors to be on the same device" in str(error), error
                else:
                    raise AssertionError(f"{operator} took tensors of two cards")
        """
        environment = {**os.environ, "AIU_WORLD_SIZE": "2"}
        result = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.assertEqual(result.returncode, 0, result.stderr)


class TestStorage(SpyreTestCase):
    def test_sizes_of_storages(self, device):
        self.assertEqual(torch.empty(1, 2, dtype=torch.float16, device=device).untyped_storage().nbytes(), 128)
        self.assertEqual(torch.empty(100, dtype=torch.int64, device=device).untyped_storage().nbytes(), 800)
        self.assertEqual(torch.empty(0, device=device).untyped_storage().nbytes(), 0)
        self.assertEqual(torch.empty(0, device=device).data_ptr(), 0)

    @dtypes(*COMMON)
    def test_views_share_a_storage_and_clones_do_not(self, device, dtype):
        card = counting((4, 6), dtype).to(device)
        self.assertTrue(card[1:].t().untyped_storage()._cdata == card.untyped_storage()._cdata)
        self.assertEqual(card.data_ptr(), card.view(-1).data_ptr())
        self.assertNotEqual(card.data_ptr(), card.clone().data_ptr())
        self.assertNotEqual(card.data_ptr(), card[1:].data_ptr())
        self.assertEqual(card.untyped_storage().device, torch.device(device))

    @dtypes(torch.float16, torch.float32, torch.int64)
    def test_set_shares(self, device, dtype):
        host, card = self.pair((4, 6), dtype, device)
        other = torch.empty(0, dtype=dtype, device=device)
        other.set_(card)
        self.assertTrue(other.is_set_to(card))
        other.fill_(3)
        self.assert_same(card, host.fill_(3))
        other.set_(card.untyped_storage(), 6, (2, 6), (6, 1))
        self.assert_same(other, host[1:3])
        other.zero_()
        host[1:3] = 0
        self.assert_same(card, host)
        other.set_()
        self.assertEqual(other.numel(), 0)

    @dtypes(torch.float16, torch.float32, torch.int64, torch.bool)
    def test_resize_keeps_what_fits(self, device, dtype):
        host, card = self.pair((2, 3), dtype, device)
        for shape in ((3, 2), (6,), (2, 2), (1, 4)):
            with self.subTest(shape=shape):
                self.assert_same(card.resize_(shape), host.resize_(shape))
        grown = card.resize_(4, 4)
        self.assertEqual(grown.shape, (4, 4))
        self.assertEqual(grown.view(-1)[:6].cpu(), counting((2, 3), dtype).view(-1))
        self.assertEqual(card.resize_(0).numel(), 0)
        self.assertEqual(torch.empty(0, dtype=dtype, device=device).resize_(3).shape, (3,))

    @dtypes(torch.float16, torch.float32)
    def test_resizing_a_storage_is_seen_by_its_tensors(self, device, dtype):
        host, card = self.pair((8,), dtype, device)
        storage = card.untyped_storage()
        storage.resize_(1024)
        self.assertEqual(storage.nbytes(), 1024)
        self.assert_same(card, host)
        storage.resize_(0)
        self.assertEqual(storage.nbytes(), 0)
        with self.assertRaises(RuntimeError):
            card.cpu()

    @dtypes(torch.float16, torch.float32, torch.int64, torch.bool)
    def test_storages_clone_and_copy(self, device, dtype):
        host, card = self.pair((3, 70), dtype, device)
        clone = card.untyped_storage().clone()
        self.assertNotEqual(clone.data_ptr(), card.untyped_storage().data_ptr())
        again = torch.empty(0, dtype=dtype, device=device).set_(clone, 0, (3, 70))
        self.assert_same(again, host)
        target = torch.zeros(3, 70, dtype=dtype, device=device)
        target.untyped_storage().copy_(card.untyped_storage())
        self.assert_same(target, host)
        on_host = card.untyped_storage().cpu()
        logical = torch.empty(0, dtype=dtype).set_(on_host, 0, (3, 70))
        self.assertEqual(logical, host)

    def test_untyped_bytes(self, device):
        storage = torch.UntypedStorage(256, device=device)
        self.assertEqual((storage.nbytes(), storage.device.type), (256, "spyre"))
        tensor = torch.empty(0, device=device).set_(storage, 0, (64,))
        tensor.fill_(2)
        self.assert_same(tensor, torch.full((64,), 2.0))

    @dtypes(torch.float16)
    def test_a_storage_holds_one_dtype(self, device, dtype):
        card = counting((8,), dtype).to(device)
        with self.assertRaisesRegex(RuntimeError, "cannot be viewed as"):
            torch.empty(0, dtype=torch.float32, device=device).set_(card.untyped_storage(), 0, (2,))

    @dtypes(torch.float32)
    def test_data_assignment_swaps_the_tensor(self, device, dtype):
        card = torch.zeros(2, dtype=dtype, device=device)
        card.data = torch.ones(3, dtype=dtype, device=device)
        self.assert_same(card, torch.ones(3, dtype=dtype))
        self.assertFalse(card.data.requires_grad)

    def test_memory_comes_back(self, device):
        torch.accelerator.synchronize()
        before = torch.accelerator.memory.memory_allocated()
        tensors = [torch.zeros(1000, device=device) for _ in range(5)]
        self.assertEqual(torch.accelerator.memory.memory_allocated() - before, 5 * 4096)
        view = tensors[0][1:]
        del tensors
        self.assertEqual(torch.accelerator.memory.memory_allocated() - before, 4096)
        del view
        self.assertEqual(torch.accelerator.memory.memory_allocated(), before)


def saved(value) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return buffer


class TestSerialization(SpyreTestCase):
    @dtypes(*STORABLE)
    def test_save_and_load(self, device, dtype):
        for shape in ((), (0,), (3,), (4, 70), (2, 3, 4)):
            with self.subTest(shape=shape):
                host, card = self.pair(shape, dtype, device)
                for weights_only in (True, False):
                    self.assert_same(torch.load(saved(card), weights_only=weights_only), host)
                there = torch.load(saved(card), map_location="cpu")
                self.assertEqual((there.device.type, there.dtype), ("cpu", dtype))
                self.assertEqual(there, host)
                self.assert_same(torch.load(saved(host), map_location=device), host)
                self.assertEqual(torch.load(saved(card), map_location="meta").shape, shape)

    @dtypes(torch.float16, torch.float32)
    def test_strides_survive(self, device, dtype):
        host, card = self.pair((4, 6), dtype, device)
        for view in (lambda t: t.t(), lambda t: t[1:, ::2], lambda t: t[:, 3], lambda t: t[:1].expand(3, 6)):
            loaded = torch.load(saved(view(card)))
            self.assert_same(loaded, view(host))
            self.assertEqual(loaded.stride(), view(host).stride())

    @dtypes(torch.float16, torch.float32)
    def test_views_that_share_a_storage_still_share_it(self, device, dtype):
        card = counting((4, 6), dtype).to(device)
        base, row = torch.load(saved([card, card[1]]))
        row.fill_(9)
        self.assertEqual(base.cpu()[1], torch.full((6,), 9, dtype=dtype))
        self.assertEqual(base.untyped_storage().data_ptr(), row.untyped_storage().data_ptr())

    def test_modules_and_optimizers(self, device):
        model = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.Linear(7, 2)).to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        model(torch.ones(3, 5, device=device)).sum().backward()
        optimizer.step()
        state = torch.load(saved({"model": model.state_dict(), "optimizer": optimizer.state_dict()}))
        fresh = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.Linear(7, 2)).to(device)
        fresh.load_state_dict(state["model"])
        for name, parameter in model.named_parameters():
            self.assertEqual(fresh.get_parameter(name).cpu(), parameter.cpu(), rtol=0, atol=0)
        restored = torch.optim.Adam(fresh.parameters(), lr=0.1)
        restored.load_state_dict(state["optimizer"])
        average = restored.state_dict()["state"][0]["exp_avg"]
        self.assertEqual(average.device.type, "spyre")
        whole = torch.load(saved(model), weights_only=False)
        self.assertEqual(whole[0].weight.device.type, "spyre")
        on_cpu = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.Linear(7, 2))
        on_cpu.load_state_dict(torch.load(saved(model.state_dict()), map_location="cpu"))
        self.assertEqual(on_cpu[0].weight, model[0].weight.cpu(), rtol=0, atol=0)

    @dtypes(*COMMON)
    def test_deepcopy_and_pickle(self, device, dtype):
        host, card = self.pair((4, 6), dtype, device)
        for twin in (copy.deepcopy(card), pickle.loads(pickle.dumps(card)), copy.copy(card)):
            self.assert_same(twin, host)
        twin = copy.deepcopy(card.t())
        self.assert_same(twin, host.t())
        twin.zero_()
        self.assert_same(card, host)
        base, row = copy.deepcopy([card, card[1]])
        row.zero_()
        self.assertFalse(base.cpu()[1].any())

    def test_parameters_keep_requires_grad(self, device):
        parameter = nn.Parameter(torch.ones(2, device=device))
        for twin in (copy.deepcopy(parameter), torch.load(saved(parameter))):
            self.assertIsInstance(twin, nn.Parameter)
            self.assertTrue(twin.requires_grad)
            self.assert_same(twin.detach(), torch.ones(2))


RANDOM = {
    "rand": lambda **k: torch.rand(40, **k),
    "randn": lambda **k: torch.randn(40, **k),
    "randint": lambda **k: torch.randint(-5, 50, (40,), **k),
    "randperm": lambda **k: torch.randperm(40, **k),
}
FILLS = {
    "uniform_": lambda t, **k: t.uniform_(-1, 2, **k),
    "normal_": lambda t, **k: t.normal_(1, 2, **k),
    "bernoulli_": lambda t, **k: t.bernoulli_(0.3, **k),
    "exponential_": lambda t, **k: t.exponential_(**k),
    "random_": lambda t, **k: t.random_(0, 10, **k),
    "cauchy_": lambda t, **k: t.cauchy_(**k),
    "log_normal_": lambda t, **k: t.log_normal_(**k),
    "geometric_": lambda t, **k: t.geometric_(0.4, **k),
}


class TestRandom(SpyreTestCase):
    def test_a_seed_gives_the_cpu_numbers(self, device):
        for name, draw in RANDOM.items():
            with self.subTest(draw=name):
                torch.manual_seed(11)
                expected = draw()
                torch.manual_seed(11)
                self.assert_same(draw(device=device), expected)
        for name, fill in FILLS.items():
            with self.subTest(fill=name):
                torch.manual_seed(12)
                expected = fill(torch.empty(30))
                torch.manual_seed(12)
                self.assert_same(fill(torch.empty(30, device=device)), expected)

    def test_numbers_that_are_drawn_are_no_fallback(self, device):
        x = torch.empty(30, device=device)
        torch.spyre.reset_metrics()
        for fill in FILLS.values():
            fill(x)
        metrics = torch.spyre.metrics()
        self.assertEqual(metrics["fallbacks"], {})
        self.assertEqual(metrics["bytes_to_host"], 0)  # what was there is not read

    def test_numbers_go_on(self, device):
        torch.manual_seed(1)
        self.assertNotEqual(torch.rand(9, device=device).cpu(), torch.rand(9, device=device).cpu())

    def test_state_is_saved_and_restored(self, device):
        state = torch.spyre.get_rng_state()
        first = torch.rand(9, device=device).cpu()
        torch.spyre.set_rng_state(state)
        self.assertEqual(torch.rand(9, device=device).cpu(), first)
        self.assertEqual(len(torch.spyre.get_rng_state_all()), torch.spyre.device_count())

    def test_fork_rng_restores(self, device):
        torch.manual_seed(2)
        with torch.random.fork_rng(devices=[0], device_type="spyre"):
            inside = torch.rand(5, device=device).cpu()
        self.assertEqual(torch.rand(5, device=device).cpu(), inside)

    def test_generators(self, device):
        generator = torch.Generator(device).manual_seed(5)
        self.assertEqual(generator.device.type, "spyre")
        self.assertEqual(generator.initial_seed(), 5)
        expected = torch.rand(9, generator=torch.Generator().manual_seed(5))
        default = torch.spyre.get_rng_state()
        self.assert_same(torch.rand(9, device=device, generator=generator), expected)
        self.assertEqual(torch.spyre.get_rng_state(), default)
        twin = torch.Generator(device)
        twin.set_state(generator.get_state())
        self.assertEqual(
            torch.randn(5, device=device, generator=twin).cpu(),
            torch.randn(5, device=device, generator=generator).cpu(),
        )
        self.assertEqual(
            torch.rand(3, generator=generator.clone_state(), device=device).cpu(),
            torch.rand(3, generator=generator, device=device).cpu(),
        )
        host = torch.Generator().manual_seed(5)  # which draws what it draws for the CPU
        self.assert_same(torch.rand(9, device=device, generator=host), expected)

    def test_the_cards_and_the_cpu_draw_apart(self, device):
        torch.manual_seed(3)
        torch.rand(100, device=device)
        after = torch.rand(5)
        torch.manual_seed(3)
        self.assertEqual(torch.rand(5), after)

    def test_dropout(self, device):
        torch.manual_seed(4)
        expected = nn.functional.dropout(torch.ones(64), 0.5)
        torch.manual_seed(4)
        self.assert_same(nn.functional.dropout(torch.ones(64, device=device), 0.5), expected)
        self.assert_same(nn.functional.dropout(torch.ones(9, device=device), 0.5, training=False), torch.ones(9))

    def test_sampling(self, device):
        weights = torch.tensor([0.1, 0.0, 0.9, 0.5])
        torch.manual_seed(6)
        expected = torch.multinomial(weights, 20, replacement=True)
        torch.manual_seed(6)
        self.assert_same(torch.multinomial(weights.to(device), 20, replacement=True), expected)
        torch.manual_seed(7)
        expected = torch.bernoulli(weights)
        torch.manual_seed(7)
        self.assert_same(torch.bernoulli(weights.to(device)), expected)

    def test_seeding_everything(self, device):
        torch.spyre.manual_seed_all(8)
        self.assertEqual(torch.spyre.initial_seed(), 8)
        torch.spyre.seed()
        torch.spyre.manual_seed(9)
        self.assertEqual(torch.spyre.initial_seed(), 9)


class TestStreams(SpyreTestCase):
    def test_streams_are_entered_and_left(self, device):
        outside = torch.accelerator.current_stream()
        stream = torch.Stream(device)
        with stream:
            self.assertEqual(torch.accelerator.current_stream(), stream)
            card = torch.ones(1000, device=device)
        self.assertEqual(torch.accelerator.current_stream(), outside)
        stream.synchronize()
        self.assertTrue(stream.query())
        self.assert_same(card, torch.ones(1000))

    def test_set_stream(self, device):
        outside = torch.accelerator.current_stream()
        stream = torch.Stream(device)
        torch.accelerator.set_stream(stream)
        try:
            self.assertEqual(torch.accelerator.current_stream(), stream)
        finally:
            torch.accelerator.set_stream(outside)
        self.assertNotEqual(stream, outside)

    def test_events_order_streams(self, device):
        producer, consumer = torch.Stream(device), torch.Stream(device)
        host = counting((500,), torch.float32)
        with producer:
            card = host.pin_memory().to(device, non_blocking=True)
            done = producer.record_event()
        consumer.wait_event(done)
        with consumer:
            doubled = card * 2
        consumer.wait_stream(producer)
        consumer.synchronize()
        self.assertTrue(done.query())
        self.assert_same(doubled, host * 2)

    def test_events(self, device):
        start, end = torch.Event(device, enable_timing=True), torch.Event(device, enable_timing=True)
        start.record()
        torch.ones(100, device=device)
        end.record()
        end.synchronize()
        self.assertTrue(start.query() and end.query())
        self.assertGreaterEqual(start.elapsed_time(end), 0)
        untouched = torch.Event(device)
        self.assertTrue(untouched.query())
        untouched.synchronize()
        untouched.wait(torch.Stream(device))
        self.assertEqual(start.device.type, "spyre")
        with self.assertRaises(ValueError):
            torch.Event(device, enable_timing=True).elapsed_time(end)

    def test_record_stream(self, device):
        card = torch.ones(4, device=device)
        card.record_stream(torch.Stream(device))
        self.assert_same(card, torch.ones(4))

    def test_names_of_torch_cuda(self, device):
        stream = torch.spyre.Stream()
        event = torch.spyre.Event(enable_timing=True)
        with torch.spyre.stream(stream):
            self.assertEqual(torch.spyre.current_stream(), stream)
            event.record()
        event.synchronize()
        self.assertNotEqual(torch.spyre.default_stream(), stream)
        torch.spyre.synchronize()
        for thing in (stream, event):
            self.assertIn("torch_spyre", repr(thing))


class TestAccelerator(SpyreTestCase):
    def test_the_accelerator_is_spyre(self, device):
        self.assertTrue(torch.accelerator.is_available())
        self.assertEqual(torch.accelerator.current_accelerator(), torch.device("spyre"))
        self.assertEqual(torch.accelerator.current_accelerator(check_available=True), torch.device("spyre"))
        self.assertEqual(torch.accelerator.device_count(), torch.spyre.device_count())
        self.assertEqual(torch.accelerator.current_device_index(), 0)
        self.assertEqual(torch.get_device_module(), torch.spyre)
        self.assertTrue(torch.spyre.is_available())

    def test_devices_are_chosen_by_index(self, device):
        torch.accelerator.set_device_index(0)
        with torch.accelerator.device_index(0):
            self.assertEqual(torch.accelerator.current_device_index(), 0)
        with torch.accelerator.device_index(None):
            self.assertEqual(torch.accelerator.current_device_index(), 0)
        with self.assertRaises(RuntimeError):
            torch.accelerator.set_device_index(torch.accelerator.device_count())
        with self.assertRaises(RuntimeError):
            torch.empty(1, device=f"spyre:{torch.accelerator.device_count()}")

    def test_torch_device_as_a_context(self, device):
        with torch.device(device):
            self.assertEqual(torch.ones(2).device.type, "spyre")
            self.assertEqual(nn.Linear(2, 2).weight.device.type, "spyre")

    def test_capability_lists_dtypes(self, device):
        supported = torch.accelerator.get_device_capability()["supported_dtypes"]
        self.assertIn(torch.float16, supported)
        self.assertNotIn(torch.float64, supported)

    def test_synchronize(self, device):
        torch.accelerator.synchronize()
        torch.accelerator.synchronize(0)
        torch.accelerator.synchronize(device)

    def test_memory_figures(self, device):
        memory = torch.accelerator.memory
        memory.reset_peak_memory_stats()
        before = memory.memory_allocated()
        card = torch.zeros(4096, device=device)
        self.assertEqual(memory.memory_allocated() - before, 16384)
        self.assertGreaterEqual(memory.max_memory_allocated(), before + 16384)
        self.assertGreaterEqual(memory.memory_reserved(), memory.memory_allocated())
        del card
        self.assertEqual(memory.memory_allocated(), before)
        self.assertGreaterEqual(memory.max_memory_allocated(), before + 16384)
        memory.reset_peak_memory_stats()
        self.assertEqual(memory.max_memory_allocated(), before)
        memory.reset_accumulated_memory_stats()
        self.assertIn("allocated_bytes.all.current", memory.memory_stats())
        free, total = memory.get_memory_info()
        self.assertGreater(total, 0)
        self.assertGreaterEqual(total, free)
        memory.empty_cache()

    def test_asking_for_too_much_is_out_of_memory(self, device):
        with self.assertRaises(torch.OutOfMemoryError):
            torch.empty(2**50, dtype=torch.float16, device=device)
        self.assert_same(torch.ones(2, device=device), torch.ones(2))

    def test_tensor_attributes(self, device):
        card = torch.ones(2, device=device)
        self.assertTrue(card.is_spyre)
        self.assertEqual(card.get_device(), 0)
        self.assertEqual(card.device, torch.device("spyre", 0))
        self.assertEqual(torch.ones(2).spyre().device.type, "spyre")
        self.assertEqual(card.layout, torch.strided)
        self.assertFalse(card.is_cpu or card.is_cuda or card.is_sparse or card.is_quantized)


class TestModulesAndAutograd(SpyreTestCase):
    @dtypes(torch.float16, torch.float32)
    def test_modules_move(self, device, dtype):
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 2))
        host = copy.deepcopy(model)
        model.to(device, dtype)
        for parameter in model.parameters():
            self.assertEqual((parameter.device.type, parameter.dtype), ("spyre", dtype))
            self.assertTrue(parameter.is_leaf)
        self.assertEqual(model[2].running_mean.device.type, "spyre")
        self.assertEqual(model[2].num_batches_tracked.dtype, torch.int64)
        model.eval()
        rounded = copy.deepcopy(model).cpu().eval()
        x = torch.ones(3, 4, dtype=dtype)
        tolerance = {"rtol": 0, "atol": 0} if dtype == torch.float32 else {"rtol": 4e-3, "atol": 1e-3}
        self.assertEqual(model(x.to(device)).cpu(), rounded(x), **tolerance)
        model.cpu()
        self.assertEqual(model[0].weight.device.type, "cpu")
        self.assertEqual(nn.Module.spyre(host)[0].weight.device.type, "spyre")

    def test_gradients_match_the_cpu(self, device):
        torch.manual_seed(0)
        host = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))
        model = copy.deepcopy(host).to(device)
        x = torch.randn(5, 4)
        labels = torch.tensor([0, 2, 1, 1, 0])
        card_input = x.to(device).requires_grad_()
        host_input = x.clone().requires_grad_()
        nn.functional.cross_entropy(model(card_input), labels.to(device)).backward()
        nn.functional.cross_entropy(host(host_input), labels).backward()
        self.assertEqual(card_input.grad.device.type, "spyre")
        self.assertEqual(card_input.grad.cpu(), host_input.grad, rtol=1e-5, atol=1e-6)
        for card, cpu in zip(model.parameters(), host.parameters(), strict=True):
            self.assertEqual(card.grad.cpu(), cpu.grad, rtol=1e-5, atol=1e-6)

    @dtypes(torch.float32)
    def test_gradients_through_each_view(self, device, dtype):
        for name, view in VIEWS.items():
            if name in ("detach", "view_same_dtype"):  # not differentiable on any device
                continue
            with self.subTest(view=name):
                host = counting(SHAPE, dtype).requires_grad_()
                card = counting(SHAPE, dtype).to(device).requires_grad_()
                weights = counting(view(host).shape, dtype) + 1
                (view(host) * weights).sum().backward()
                (view(card) * weights.to(device)).sum().backward()
                self.assert_same(card.grad, host.grad)

    def test_gradients_of_in_place_writes(self, device):
        def loss(leaf):
            x = leaf * 2
            x[1:].mul_(3)
            x[:, 0] = 0
            return (x * x).sum()

        host = counting((3, 4), torch.float32).requires_grad_()
        card = counting((3, 4), torch.float32).to(device).requires_grad_()
        loss(host).backward()
        loss(card).backward()
        self.assert_same(card.grad, host.grad)

    def test_gradients_flow_between_devices(self, device):
        host = torch.ones(3, requires_grad=True)
        (host.to(device) * 2).cpu().sum().backward()
        self.assertEqual(host.grad, torch.full((3,), 2.0))

    def test_autograd_grad_hooks_and_checkpoints(self, device):
        card = torch.ones(3, device=device, requires_grad=True)
        seen = []
        card.register_hook(lambda grad: seen.append(grad.device.type))
        (first,) = torch.autograd.grad((card**3).sum(), card, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), card)
        self.assert_same(second, torch.full((3,), 6.0))
        self.assertIn("spyre", seen)
        out = torch.utils.checkpoint.checkpoint(lambda t: (t * t).sum(), card, use_reentrant=False)
        out.backward()
        self.assert_same(card.grad, torch.full((3,), 2.0))
        with torch.no_grad():
            self.assertFalse((card * 2).requires_grad)
        with torch.inference_mode():
            self.assertTrue((card * 2).is_inference())

    def test_optimizers_step_like_on_the_cpu(self, device):
        makers = {
            "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
            "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
            "adam": lambda p: torch.optim.Adam(p, lr=0.1),
            "adamw": lambda p: torch.optim.AdamW(p, lr=0.1),
            "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
            "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.1),
        }
        for name, make in makers.items():
            with self.subTest(optimizer=name):
                host = nn.Parameter(counting((3, 4), torch.float32))
                card = nn.Parameter(counting((3, 4), torch.float32).to(device))
                on_host, on_card = make([host]), make([card])
                for _ in range(3):
                    for parameter, optimizer in ((host, on_host), (card, on_card)):
                        optimizer.zero_grad()
                        (parameter * parameter).mean().backward()
                        nn.utils.clip_grad_norm_([parameter], 1.0)
                        optimizer.step()
                self.assertEqual(card.detach().cpu(), host.detach(), rtol=1e-6, atol=1e-6)

    def test_autocast(self, device):
        card = torch.ones(2, 3, device=device)
        with torch.autocast("spyre"):
            self.assertEqual((card @ card.t()).dtype, torch.get_autocast_dtype("spyre"))
        with torch.autocast("spyre", dtype=torch.bfloat16):
            self.assertEqual((card @ card.t()).dtype, torch.bfloat16)
            self.assertEqual((card + card).dtype, torch.float32)
        with torch.autocast("spyre", enabled=False):
            self.assertEqual((card @ card.t()).dtype, torch.float32)
        with torch.amp.autocast("spyre", dtype=torch.float16):
            self.assert_same(nn.functional.linear(card, card), torch.full((2, 2), 3.0, dtype=torch.float16))

    def test_fallbacks_are_counted(self, device):
        def calls():
            return sum(entry["calls"] for entry in torch.spyre.metrics()["fallbacks"].values())

        card = torch.ones(3, device=device)
        before = calls()
        card.erfinv()
        self.assertEqual(calls(), before + 1)


class TestPrinting(SpyreTestCase):
    @dtypes(*STORABLE, torch.int16)
    def test_every_kind_of_tensor_prints(self, device, dtype):
        for shape in ((), (0,), (1,), (3, 4), (2, 0, 3), (2000,), (2, 3, 4)):
            card = torch.zeros(shape, dtype=dtype, device=device)
            for tensor in (card, card.expand(2, *shape), card.flatten()[::2]):
                self.assertIn("spyre", repr(tensor))
                self.assertIn("spyre", str(tensor))
                self.assertTrue(f"{tensor}")

    def test_special_values_and_grad(self, device):
        values = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e-30, 1e30], device=device)
        for text in ("nan", "inf", "1.0000e+30"):
            self.assertIn(text, repr(values))
        leaf = torch.ones(2, device=device, requires_grad=True)
        self.assertIn("requires_grad=True", repr(leaf))
        self.assertIn("grad_fn=<MulBackward0>", repr(leaf * 2))
        self.assertIn("Parameter containing", repr(nn.Parameter(torch.ones(2, device=device))))
        self.assertIn("device='spyre:0'", repr(torch.ones(2, device=device)))
        self.assertEqual(f"{torch.tensor(2.5, device=device):.2f}", "2.50")

    def test_storages_generators_and_devices_print(self, device):
        card = torch.ones(2, device=device)
        for thing in (
            card.untyped_storage(),
            card.storage(),
            torch.Generator(device),
            torch.device(device),
            torch.Stream(device),
            torch.Event(device),
            torch.spyre.get_device_properties(),
        ):
            self.assertTrue(repr(thing))

    def test_an_unreadable_tensor_prints(self, device):
        card = torch.ones(2, device=device)
        card.untyped_storage().resize_(0)
        self.assertIn("unreadable", repr(card))


for suite in (
    TestViews,
    TestIndexing,
    TestCopies,
    TestStorage,
    TestSerialization,
    TestRandom,
    TestStreams,
    TestAccelerator,
    TestModulesAndAutograd,
    TestPrinting,
):
    instantiate_device_type_tests(suite, globals(), only_for="spyre")
del suite
