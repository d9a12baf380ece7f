"""SpyreTensorLayout: every layout that upstream publishes, and its behaviour as a Python value."""

import copy
import pickle

import pytest
import torch
from torch_spyre._C import (
    DataFormats,
    ElementArrangement,
    SpyreTensorLayout,
    get_device_dtype,
    get_elem_in_stick,
)

# host size, dim order (None: default), device size, stride map, device bytes
ROWS = [
    ((), None, [1, 64], [-1, -1], 128),
    ((1,), None, [1, 64], [-1, -1], 128),
    ((60,), None, [1, 64], [64, 1], 128),
    ((64,), None, [1, 64], [64, 1], 128),
    ((120,), None, [2, 64], [64, 1], 256),
    ((128,), None, [2, 64], [64, 1], 256),
    ((512, 240), None, [4, 512, 64], [64, 240, 1], 262144),
    ((1024, 256), None, [4, 1024, 64], [64, 256, 1], 524288),
    ((4, 128), None, [2, 4, 64], [64, 128, 1], 1024),
    ((512, 1), None, [1, 512, 64], [-1, 1, -1], 65536),
    ((1, 512), None, [8, 1, 64], [64, -1, 1], 1024),
    ((50, 10, 200), None, [10, 4, 50, 64], [200, 64, 2000, 1], 256000),
    ((5, 100, 150), None, [100, 3, 5, 64], [150, 64, 15000, 1], 192000),
    ((5, 100, 150), [1, 0, 2], [5, 3, 100, 64], [15000, 64, 150, 1], 192000),
    ((512, 8, 256), None, [8, 4, 512, 64], [256, 64, 2048, 1], 2097152),
    ((512, 8, 256), [0, 2, 1], [256, 1, 512, 64], [1, 16384, 2048, 256], 16777216),
    ((512, 8, 256), [1, 2, 0], [256, 8, 8, 64], [1, 131072, 256, 2048], 2097152),
    ((512, 8, 256), [2, 0, 1], [512, 1, 256, 64], [2048, 16384, 1, 256], 16777216),
    ((512, 8, 256), [2, 1, 0], [8, 8, 256, 64], [256, 131072, 1, 2048], 2097152),
    ((512, 256), [1, 0], [8, 256, 64], [16384, 1, 256], 262144),
    ((512, 256), [0, 1, -1], [256, 1, 512, 64], [1, -1, 256, -1], 16777216),
    ((512, 256, 1), [0, 1, 2], [256, 1, 512, 64], [1, -1, 256, -1], 16777216),
    ((512, 1, 256), None, [1, 4, 512, 64], [-1, 64, 256, 1], 262144),
    ((2, 3, 4, 100), None, [3, 4, 2, 2, 64], [400, 100, 64, 1200, 1], 6144),
    ((2, 8, 512, 128), None, [8, 512, 2, 2, 64], [65536, 128, 64, 524288, 1], 2097152),
    ((2, 3, 4, 5, 70), None, [3, 4, 5, 2, 2, 64], [1400, 350, 70, 64, 4200, 1], 30720),
]


def make(size, order, dtype=torch.float16):
    if order is None:
        return SpyreTensorLayout(list(size), dtype)
    return SpyreTensorLayout(list(size), list(torch.empty(size).stride()), dtype, order)


@pytest.mark.parametrize("size, order, device_size, stride_map, nbytes", ROWS)
def test_worked_rows(size, order, device_size, stride_map, nbytes):
    layout = make(size, order)
    assert (layout.device_size, layout.stride_map, layout.device_bytes()) == (device_size, stride_map, nbytes)


@pytest.mark.parametrize("size, order, device_size, stride_map, nbytes", ROWS)
def test_tensors_in_every_worked_layout_come_back(size, order, device_size, stride_map, nbytes):
    x = torch.randn(size).half().to("spyre").cpu()  # values the card holds exactly
    y = x.to("spyre", device_layout=make(size, order))
    assert y.device_tensor_layout().device_size == device_size
    assert torch.equal(y.cpu(), x)


@pytest.mark.parametrize(
    "dtype, device_size, stride_map, nbytes",
    [
        (torch.float32, [4, 4, 32], [32, 100, 1], 2048),
        (torch.int8, [1, 4, 128], [128, 100, 1], 512),
        (torch.bool, [2, 4, 64], [64, 100, 1], 1024),
        (torch.int64, [4, 4, 32], [32, 100, 1], 2048),
    ],
)
def test_other_formats(dtype, device_size, stride_map, nbytes):
    layout = SpyreTensorLayout([4, 100], dtype)
    assert (layout.device_size, layout.stride_map, layout.device_bytes()) == (device_size, stride_map, nbytes)


def test_printed_form_is_upstreams():
    layout = SpyreTensorLayout([512, 256], torch.float16)
    text = "SpyreTensorLayout(device_size=[4, 512, 64], stride_map =[64, 256, 1], device_dtype=DataFormats.SEN169_FP16)"
    assert str(layout) == repr(layout) == text
    other = layout.with_element_arrangement(ElementArrangement.EXX2)
    assert str(other) == text[:-1] + ", element_arrangement=ElementArrangement.EXX2)"


def test_is_a_value():
    a, b = SpyreTensorLayout([4, 128], torch.float16), SpyreTensorLayout([4, 128], torch.float16)
    assert a == b and hash(a) == hash(b) and len({a, b}) == 1
    assert a != a.with_element_arrangement(ElementArrangement.DL16_TO_FP32)
    assert pickle.loads(pickle.dumps(a)) == a and copy.deepcopy(a) == a
    assert a.elems_per_stick() == 64 and DataFormats.IEEE_FP32.elems_per_stick() == 32


def test_pickle_states_of_all_versions_load_and_others_do_not():
    layout = SpyreTensorLayout([4, 128], torch.float16)
    state = layout.__getstate__()
    assert state == (3, [2, 4, 64], [64, 128, 1], DataFormats.SEN169_FP16, ElementArrangement.STANDARD)
    for old in [(2, *state[1:4]), (1, [2, 4, 64], [0, 1], [64, 128, 1], DataFormats.SEN169_FP16)]:
        fresh = SpyreTensorLayout.__new__(SpyreTensorLayout)
        fresh.__setstate__(old)
        assert fresh == layout
    for bad in [(4, *state[1:]), (3, [1]), ()]:
        with pytest.raises(ValueError):
            SpyreTensorLayout.__new__(SpyreTensorLayout).__setstate__(bad)


def test_constructor_checks():
    with pytest.raises(RuntimeError, match="does not support dtype"):
        SpyreTensorLayout([4], torch.float64)
    with pytest.raises(RuntimeError):
        SpyreTensorLayout([4, 4], [4], torch.float16, [0, 1])
    with pytest.raises(RuntimeError):
        SpyreTensorLayout([4, 4], [4, 1], torch.float16, [0, 1, 2])
    with pytest.raises(RuntimeError):
        SpyreTensorLayout([4, 4], [4, 1], torch.float16, [0, 0])


def test_dtype_helpers():
    assert get_device_dtype(torch.bfloat16) == DataFormats.SEN169_FP16
    assert get_device_dtype(torch.int64) == DataFormats.IEEE_INT32
    assert get_device_dtype(torch.float64) == DataFormats.INVALID
    assert [get_elem_in_stick(t) for t in (torch.float16, torch.float32, torch.int8)] == [64, 32, 128]


def test_layout_travels_with_the_tensor():
    layout = SpyreTensorLayout([512, 256], [256, 1], torch.float16, [1, 0])
    x = torch.ones(512, 256, dtype=torch.float16).to("spyre", device_layout=layout)
    for relative in (x.detach(), x.view(-1), x.t(), torch.nn.Parameter(x), x.data, x[3:]):
        assert relative.device_tensor_layout() == layout
    assert copy.deepcopy(x).device_tensor_layout() == layout
    assert torch.ones(2).device_tensor_layout() is None
    assert (
        torch.empty(512, 256, dtype=torch.float16, device="spyre", device_layout=layout).device_tensor_layout()
        == layout
    )


def test_to_with_the_same_layout_is_the_same_tensor():
    x = torch.ones(4, 128, dtype=torch.float16, device="spyre")
    assert x.to("spyre", device_layout=x.device_tensor_layout()) is x
    assert x.to("spyre", device_layout=x.device_tensor_layout(), copy=True) is not x


def test_layout_set_by_hand_reads_the_same_bytes_differently():
    from torch_spyre._C import get_spyre_tensor_layout, set_spyre_tensor_layout

    x = torch.arange(128).half().reshape(2, 64).to("spyre")
    other = SpyreTensorLayout([1, 2, 64], [128, 64, 1], DataFormats.SEN169_FP16)
    set_spyre_tensor_layout(x, other)
    assert get_spyre_tensor_layout(x) == other and x.detach().device_tensor_layout() == other
    assert torch.equal(x.cpu(), torch.arange(128).half().reshape(2, 64))
