"""torch.spyre and torch.accelerator: the functions device-agnostic code calls."""

import threading

import pytest
import torch

NAMES = """is_available device_count current_device set_device device device_of synchronize is_initialized init
get_device_name get_device_properties get_device_capability Stream Event stream current_stream default_stream set_stream
device_time manual_seed manual_seed_all seed initial_seed get_rng_state set_rng_state get_amp_supported_dtype memory
memory_stats memory_snapshot metrics_report show_config get_downcast_warning set_downcast_warning SpyreTensorLayout
DataFormats ElementArrangement get_device_dtype copy_tensor fill_tensor empty_with_layout spyre_empty_with_layout
encode_constant host_compute_stream start_runtime free_runtime""".split()


@pytest.mark.parametrize("name", NAMES)
def test_every_documented_name_exists(name):
    assert hasattr(torch.spyre, name)


def test_module_keeps_upstreams_shape():
    assert not hasattr(torch.spyre, "_C") and torch.spyre.Scheduling is None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = torch.spyre.nonsense
    from torch_spyre import constants

    assert constants.BYTES_IN_STICK == 128 and constants.SEGMENT_SIZE == 2**34 and constants.DEVICE_NAME == "spyre"
    import torch_spyre

    assert torch_spyre.__version__.startswith("0.1.0") and "settings" in torch_spyre.environment_report()


def test_properties_describe_the_card():
    properties = torch.spyre.get_device_properties()
    assert properties.multi_processor_count == 32 and properties.lx_bytes_per_core == 2 * 2**20
    assert properties.total_memory == torch.spyre.mem_get_info()[1] == 112 * 2**30
    assert properties.stick_bytes == 128 and properties.type == "dd2"
    assert torch.spyre.get_amp_supported_dtype() == [torch.float16, torch.bfloat16]


def test_accelerator_is_spyre():
    assert torch.accelerator.current_accelerator().type == "spyre"
    assert torch.accelerator.device_count() == 1 and torch.accelerator.current_device_index() == 0
    assert torch.float16 in torch.accelerator.get_device_capability()["supported_dtypes"]
    assert torch.float64 not in torch.accelerator.get_device_capability()["supported_dtypes"]
    torch.accelerator.synchronize()
    with torch.accelerator.device_index(0):
        pass


def test_memory_figures_are_exact():
    memory = torch.accelerator.memory
    before = memory.memory_allocated()
    x = torch.empty(64, 64, dtype=torch.float16, device="spyre")
    assert memory.memory_allocated() == before + 8192 == memory.memory_reserved()
    memory.reset_peak_memory_stats()
    y = torch.empty(64, 64, dtype=torch.float16, device="spyre")
    del y
    assert memory.memory_allocated() == before + 8192 and memory.max_memory_allocated() == before + 16384
    free, total = memory.get_memory_info() if hasattr(memory, "get_memory_info") else torch.spyre.mem_get_info()
    assert total == 112 * 2**30 and free == total - before - 8192
    del x
    assert memory.memory_allocated() == before
    assert torch.empty(1, 2, dtype=torch.float16, device="spyre").untyped_storage().nbytes() == 128
    assert torch.empty(100, dtype=torch.int64, device="spyre").untyped_storage().nbytes() == 800
    stats = memory.memory_stats()
    for key in ("allocated_bytes.all.peak", "reserved_bytes.all.current", "active.all.allocated", "num_ooms"):
        assert key in stats
    from torch_spyre._C import _spyre_get_allocator_stats

    assert sorted(_spyre_get_allocator_stats(0)) == ["allocated_bytes.all.current", "allocation.all.current"]


def test_snapshot_opens_in_pytorchs_viewer(tmp_path):
    from torch.cuda import _memory_viz

    torch.spyre.record_memory_history(1000)
    try:
        x = torch.empty(100, 100, device="spyre")
        snapshot = torch.spyre.memory_snapshot()
    finally:
        torch.spyre.record_memory_history(0)
    last = snapshot["device_traces"][0][-1]
    assert last["action"] == "alloc" and any("test_module_api.py" in frame["filename"] for frame in last["frames"])
    for page in (_memory_viz.trace_plot, _memory_viz.segment_plot):
        assert page(snapshot).lstrip().startswith("<!DOCTYPE html>")
    assert _memory_viz.segsum(snapshot) and _memory_viz.trace(snapshot)
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    assert any(
        block["size"] == x.untyped_storage().nbytes() and block["state"] == "active_allocated" for block in blocks
    )
    torch.spyre.save_memory_snapshot(tmp_path / "snapshot.pickle")
    assert (tmp_path / "snapshot.pickle").stat().st_size > 0


def test_streams_follow_the_pools():
    low, high = torch.spyre.Stream(), torch.spyre.Stream(priority=-1)
    assert 1 <= low.id <= 32 and low.priority == 0 and 33 <= high.id <= 64 and high.priority == -1
    assert repr(low) == f"<torch_spyre.Stream device=0 id={low.id}>" and low.device == torch.device("spyre:0")
    ids = [torch.spyre.Stream().id for _ in range(32)]
    assert sorted(ids) == list(range(1, 33))
    assert torch.spyre.default_stream().id == 0 and torch.spyre.current_stream() == torch.spyre.default_stream()
    with torch.spyre.stream(low):
        assert torch.spyre.current_stream() == low
    assert torch.spyre.current_stream().id == 0
    assert 65 <= torch.spyre.host_compute_stream(0).id <= 72


def test_current_stream_belongs_to_the_thread():
    seen = []
    with torch.spyre.Stream():
        thread = threading.Thread(target=lambda: seen.append(torch.spyre.current_stream().id))
        thread.start()
        thread.join()
    assert seen == [0]


def test_events_order_streams_and_time_them():
    first, second = torch.spyre.Stream(), torch.spyre.Stream()
    start, end = torch.spyre.Event(enable_timing=True), torch.spyre.Event(enable_timing=True)
    x = torch.empty(512, 512, device="spyre")
    start.record(first)
    with first:
        x.copy_(torch.full((512, 512), 3.0), non_blocking=True)
    end.record(first)
    second.wait_event(end)
    with second:
        y = x.clone()
    second.synchronize()
    assert torch.equal(y.cpu(), torch.full((512, 512), 3.0)) and end.query()
    assert start.elapsed_time(end) > 0
    with pytest.raises(RuntimeError, match="must be recorded"):
        torch.spyre.Event(enable_timing=True).elapsed_time(end)
    generic = torch.Event("spyre")
    generic.record(torch.Stream("spyre"))
    generic.synchronize()


def test_device_time_grows_with_the_work_of_a_stream_and_not_with_the_hosts():
    stream = torch.spyre.Stream()
    x = torch.empty(512, 512, dtype=torch.float16, device="spyre")
    before = torch.spyre.device_time(stream)
    assert torch.spyre.device_time(stream) == before
    with stream:
        x.copy_(torch.zeros(512, 512, dtype=torch.float16))
        assert torch.spyre.device_time() == torch.spyre.device_time(stream)
    # 512 KiB at 57.6 GB/s, after 1 us
    assert torch.spyre.device_time(stream) - before >= (1 + 512 * 512 * 2 / 57.6e3) * 1e-3 * 0.999
    with pytest.raises(TypeError, match="takes a stream, found str"):
        torch.spyre.device_time("spyre:0")


def test_non_blocking_source_may_be_reused_at_once():
    x = torch.empty(300, 300, device="spyre")
    source = torch.ones(300, 300)
    x.copy_(source, non_blocking=True)
    source.zero_()
    torch.spyre.synchronize()
    assert x.cpu().sum() == 300 * 300


def test_pinned_memory():
    pinned = torch.empty(300, 300).pin_memory()
    assert pinned.is_pinned() and pinned[5:, 3:].is_pinned() and not torch.empty(3).is_pinned()
    x = torch.full((300, 300), 2.0, device="spyre")
    pinned.copy_(x, non_blocking=True)
    torch.spyre.synchronize()
    assert pinned.sum() == 2 * 300 * 300
    with pytest.raises(RuntimeError, match="Pin memory can only be on CPU|pin"):
        torch.empty(3, device="spyre", pin_memory=True)


def test_seeds_reproduce_the_hosts_numbers():
    torch.manual_seed(7)
    host = torch.randn(100)
    torch.manual_seed(7)
    assert torch.equal(torch.randn(100, device="spyre").cpu(), host)
    state = torch.spyre.get_rng_state()
    a = torch.rand(5, device="spyre").cpu()
    torch.spyre.set_rng_state(state)
    assert torch.equal(torch.rand(5, device="spyre").cpu(), a)
    generator = torch.Generator("spyre").manual_seed(3)
    assert generator.device.type == "spyre" and torch.rand(2, device="spyre", generator=generator).shape == (2,)
    with pytest.raises(RuntimeError, match="does not use offset"):
        generator.set_offset(4)


def test_safetensors_place_weights_on_the_card(tmp_path):
    from safetensors import safe_open
    from safetensors.torch import load_file, load_model, save_file, save_model

    weights = {"a": torch.randn(4, 65).half(), "b": torch.arange(5)}
    path = str(tmp_path / "weights.safetensors")
    save_file(weights, path)
    for device in ("spyre", "spyre:0", torch.device("spyre")):
        loaded = load_file(path, device=device)
        assert loaded["a"].is_spyre and torch.equal(loaded["b"].cpu(), weights["b"])
    with safe_open(path, framework="pt", device="spyre") as file:
        assert torch.equal(file.get_tensor("a").cpu(), weights["a"].to("spyre").cpu())
        assert torch.equal(file.get_slice("a")[1:3].cpu(), weights["a"][1:3].to("spyre").cpu())
    model, other = torch.nn.Linear(4, 4).to("spyre"), torch.nn.Linear(4, 4).to("spyre")
    save_model(model, path)
    load_model(other, path, device="spyre")
    assert torch.equal(model.weight.cpu(), other.weight.cpu())
    save_file({k: v.to("spyre") for k, v in weights.items()}, path)
    assert load_file(path)["a"].device.type == "cpu"


def test_counters_count():
    torch.spyre.reset_metrics()
    x = torch.ones(64, 64, dtype=torch.float16).to("spyre")
    x.cpu()
    metrics = torch.spyre.metrics()
    assert metrics["transfers_to_device"] == 1 and metrics["bytes_to_device"] == 8192
    assert metrics["transfers_to_host"] == 1 and metrics["allocations"] == 1
    assert "bytes_to_device" in torch.spyre.metrics_report()
    assert "SENCORES" in torch.spyre.show_config()


def test_encode_constant():
    from torch_spyre._C import DataFormats, encode_constant

    assert encode_constant(1.0, DataFormats.SEN169_FP16) == 0x3E00
    assert encode_constant(1.0, DataFormats.IEEE_FP32) == 0x3F800000
    assert encode_constant(1 / 3, DataFormats.SEN169_FP16) == 0x3AAB
