"""Private places of PyTorch and safetensors that torch_spyre changes: these fail when one moves under us."""

import inspect

import torch


def test_tensor_printing_goes_through_tensor_str():
    source = inspect.getsource(torch._tensor_str._str_intern)
    assert "_tensor_str(self, indent)" in source
    assert "device='spyre:0'" in repr(torch.ones(2, device="spyre"))
    assert torch.spyre.get_fallback_mode() and "1., 1." in repr(torch.ones(2, device="spyre"))


def test_printing_needs_no_device_operators():
    x = torch.randn(4, 4, device="spyre")
    torch.spyre.reset_metrics()
    repr(x)
    assert torch.spyre.metrics()["fallbacks"] == {}


def test_public_functions_we_wrap_keep_their_behaviour():
    assert torch.empty(2, 3).shape == (2, 3) and torch.ones(2).to(torch.float64).dtype == torch.float64


def test_safetensors_functions_exist_by_name():
    import safetensors.torch

    for name in ("storage_size", "safe_open", "_is_complete"):
        assert hasattr(safetensors.torch, name)
    assert "storage_size(tensor)" in inspect.getsource(safetensors.torch._is_complete)


def test_decompositions_ask_a_table_for_the_type_they_compute_in():
    from torch_spyre._patches import sixteen_bits_stay

    assert "_computation_dtype_map.get(dtype, dtype)" in inspect.getsource(torch._prims_common.get_computation_dtype)
    assert torch._prims_common.get_computation_dtype(torch.float16) == torch.float32
    with sixteen_bits_stay():
        assert torch._prims_common.get_computation_dtype(torch.float16) == torch.float16
