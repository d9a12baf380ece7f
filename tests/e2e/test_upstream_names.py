"""Names and habits of scripts that were written for upstream Torch-Spyre."""

import importlib
import json
import logging
import subprocess
import sys

import pytest
import torch
import torch_spyre
from torch import nn
from torch_spyre import _C

NAMES = """
torch_spyre.make_spyre_module torch_spyre.synchronize torch_spyre.logging_config torch_spyre.profiler
torch_spyre.ops.fallbacks.FallbackWarning torch_spyre.constants.DISTRIBUTED_BACKEND_NAME
torch_spyre.model_utils.patch_module_to_for_spyre torch_spyre._inductor.spyre_hint
torch_spyre._inductor.errors.Unsupported torch_spyre._inductor.register_spyre_decomposition
torch_spyre._inductor.register_spyre_lowering torch_spyre._C._logging torch_spyre._C.SymbolicArg
torch_spyre._C.SymbolicArgKind torch_spyre._C.stream_get_error torch_spyre._C._get_default_generator
torch_spyre._C.host_compute_stream torch.spyre.get_diagnostic_report torch.spyre.stream_get_error
""".split()


def python(program: str, **environment) -> subprocess.CompletedProcess:
    import os

    environment = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=120)


@pytest.mark.parametrize("name", NAMES)
def test_the_name_exists(name):
    module, _, attribute = name.rpartition(".")
    try:
        holder = importlib.import_module(module)
    except ModuleNotFoundError:  # torch.spyre is an attribute
        holder = torch.spyre
    assert getattr(holder, attribute) is not None


def test_the_module_of_the_device_can_be_made_again():
    module = torch_spyre.make_spyre_module()
    assert module.device_count() == torch.spyre.device_count() and module.__name__ == "torch.spyre"


def test_synchronize_waits():
    x = torch.ones(64, dtype=torch.float16, device="spyre") + 1
    torch_spyre.synchronize()
    torch_spyre.synchronize("spyre:0")
    assert x.cpu()[0] == 2
    with pytest.raises(ValueError, match="cpu"):
        torch_spyre.synchronize("cpu")


def test_the_fallback_warning_is_one_class():
    from torch_spyre.ops.fallbacks import FallbackWarning

    assert FallbackWarning is torch_spyre.FallbackWarning and issubclass(FallbackWarning, UserWarning)


def test_the_error_says_what_is_not_supported():
    from torch_spyre._inductor.errors import SpyreUnsupportedError, Unsupported

    assert str(Unsupported("swapping")) == "Spyre backend does not support: swapping"
    assert issubclass(SpyreUnsupportedError, Unsupported) and str(SpyreUnsupportedError("no", "buf0")) == "no"


class TestStreams:
    def test_host_compute_streams_come_in_turn(self):
        streams = [_C.host_compute_stream(torch.device("spyre:0")) for _ in range(9)]
        assert all(isinstance(s, torch.spyre.Stream) for s in streams)
        assert {s.device_index for s in streams} == {0} and {s.id for s in streams} <= set(range(65, 73))
        assert len({s.id for s in streams[:4]}) == 4 and streams[0].id == streams[4].id
        assert torch.spyre.host_compute_stream(0).query()
        assert torch.spyre.host_compute_stream().device_index == torch.spyre.current_device()
        with pytest.raises((RuntimeError, ValueError)):
            _C.host_compute_stream(7)
        with pytest.raises(ValueError, match="cpu"):
            _C.host_compute_stream("cpu")

    def test_the_error_of_a_stream(self):
        stream = torch.spyre.Stream()
        assert _C.stream_get_error(stream) == _C.SpyreStreamError.Success
        assert _C.stream_get_error_string(_C.stream_get_error(stream)) == "Success"
        with pytest.raises(AttributeError):
            _C.stream_get_error(3)


class TestGenerators:
    def test_the_default_generator(self):
        generator = _C._get_default_generator()
        assert generator.device == torch.device("spyre:0")
        generator.manual_seed(7)
        assert torch.spyre.initial_seed() == 7 == _C._get_default_generator(0).initial_seed()

    DRAWS = {
        "randn": lambda g, d: torch.randn(3, 65, generator=g, device=d),
        "rand": lambda g, d: torch.rand(70, generator=g, device=d),
        "randint": lambda g, d: torch.randint(0, 100, (70,), generator=g, device=d),
        "randperm": lambda g, d: torch.randperm(70, generator=g, device=d),
        "normal_": lambda g, d: torch.zeros(70, device=d).normal_(1.0, 2.0, generator=g),
        "uniform_": lambda g, d: torch.zeros(70, device=d).uniform_(-1, 1, generator=g),
        "bernoulli": lambda g, d: torch.bernoulli(torch.full((70,), 0.25, device=d), generator=g),
        "multinomial": lambda g, d: torch.multinomial(torch.ones(9, device=d), 4, generator=g),
        "exponential_": lambda g, d: torch.zeros(70, device=d).exponential_(generator=g),
        "random_": lambda g, d: torch.zeros(70, dtype=torch.int32, device=d).random_(0, 9, generator=g),
    }

    @pytest.mark.parametrize("name", DRAWS)
    def test_a_cpu_generator_draws_what_it_draws_on_the_cpu(self, name):
        draw = self.DRAWS[name]
        one, other = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5)
        torch.spyre.manual_seed(1)
        before = torch.spyre.get_rng_state()
        found = draw(one, "spyre")
        assert found.device.type == "spyre"
        torch.testing.assert_close(found.cpu(), draw(other, "cpu"), rtol=0, atol=0)
        assert torch.equal(one.get_state(), other.get_state()), "it went on as on the CPU"
        assert torch.equal(before, torch.spyre.get_rng_state()), "the card's own did not move"


class TestLayouts:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
    def test_a_layout_takes_a_tensor_to_the_card(self, dtype):
        x = torch.randn(64, 128, generator=torch.Generator().manual_seed(0)).to(dtype)
        layout = _C.SpyreTensorLayout([64, 128], [128, 1], dtype, [1, 0])
        moved = x.to(device_layout=layout)
        assert moved.device.type == "spyre" and moved.device_tensor_layout() == layout
        assert torch.equal(moved.cpu(), x.to("spyre").cpu())
        assert moved.to(device_layout=layout) is moved
        half = x.to(torch.float16, device_layout=_C.SpyreTensorLayout([64, 128], [128, 1], torch.float16, [1, 0]))
        assert half.device.type == "spyre" and half.dtype == torch.float16

    def test_other_devices_have_none(self):
        layout = _C.SpyreTensorLayout([64], torch.float16)
        with pytest.raises(ValueError, match="needs a Spyre device"):
            torch.zeros(64).half().to("cpu", device_layout=layout)


class TestModules:
    def test_a_module_that_moves_itself_is_asked(self):
        model = nn.Sequential(nn.Linear(64, 64), nn.Sequential(nn.Linear(64, 64)))
        moved, inner = [], model[1]
        original = inner._apply

        def stays(function, recurse=True):
            moved.append(function)
            return inner

        inner._apply = stays
        model.to("spyre")
        assert len(moved) == 1 and inner[0].weight.device.type == "cpu", "its own _apply decided that it stays"
        assert model[0].weight.device.type == "spyre"
        inner._apply = original
        model.to("spyre")
        assert inner[0].weight.device.type == "spyre"

    def test_so_is_one_whose_class_does(self):
        seen = []

        class Counting(nn.Linear):
            def _apply(self, function, recurse=True):
                seen.append(self.weight.device.type)
                return super()._apply(function, recurse)

        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Sequential(nn.Linear(64, 64))

            def _apply(self, function, recurse=True):
                seen.append(self.inner[0].weight.device.type)
                return super()._apply(function, recurse)

        model = nn.Sequential(Counting(64, 64), Outer()).to("spyre")
        assert seen == ["cpu", "cpu"] and all(p.device.type == "spyre" for p in model.parameters())

    def test_weights_that_are_made_on_the_card_lie_as_matmuls_read_them(self):
        as_matmuls_read = _C.SpyreTensorLayout([64, 128], [128, 1], torch.float16, [1, 0])
        with torch.device("meta"):
            model = nn.Sequential(nn.Embedding(8, 128), nn.Linear(128, 64)).half()
        model = model.to_empty(device="spyre")
        assert model[1].weight.device_tensor_layout() == as_matmuls_read
        assert model[0].weight.device_tensor_layout() == torch.empty(8, 128).half().to("spyre").device_tensor_layout()
        drawn = torch.randn(64, 128).half()
        with torch.no_grad():
            model[1].weight.copy_(drawn)
        assert torch.equal(model[1].weight.cpu(), drawn.to("spyre").cpu())

    def test_weights_on_the_card_are_laid_out_anew(self):
        with torch.device("spyre"):
            model = nn.Linear(128, 64, dtype=torch.float16)
        weight, values = model.weight, model.weight.detach().cpu()
        torch.spyre.reset_metrics()
        assert model.to("spyre").weight is weight  # an optimizer may hold it
        assert not torch.spyre.metrics()["fallbacks"]
        assert weight.device_tensor_layout() == _C.SpyreTensorLayout([64, 128], [128, 1], torch.float16, [1, 0])
        assert torch.equal(weight.detach().cpu(), values)

    def test_emptying_one_module_leaves_those_inside_alone(self):
        model = nn.Sequential(nn.Linear(64, 64)).half().to("spyre")
        before = model[0].weight.detach().cpu()
        model.to_empty(device="spyre", recurse=False)
        assert torch.equal(model[0].weight.detach().cpu(), before)

    def test_patching_again_changes_nothing(self):
        from torch_spyre.model_utils import patch_module_to_for_spyre

        before = nn.Module.to
        patch_module_to_for_spyre()
        assert nn.Module.to is before
        layout = nn.Linear(128, 64).half().to("spyre").weight.device_tensor_layout()
        assert layout == _C.SpyreTensorLayout([64, 128], [128, 1], torch.float16, [1, 0])

    def test_it_can_be_patched_after_somebody_undid_it(self, monkeypatch):
        from torch_spyre.model_utils import patch_module_to_for_spyre

        monkeypatch.setattr(nn.Module, "to", nn.Module.to.__wrapped__)
        patch_module_to_for_spyre()
        layout = nn.Linear(128, 64).half().to("spyre").weight.device_tensor_layout()
        assert layout == _C.SpyreTensorLayout([64, 128], [128, 1], torch.float16, [1, 0])


class TestLogging:
    @pytest.fixture(autouse=True)
    def as_before(self):
        yield
        torch_spyre.logging_config.reset()

    def test_levels_go_to_python_and_to_cpp(self):
        config = torch_spyre.logging_config
        config.set_log_level("spyre.inductor", "DEBUG")
        assert logging.getLogger("torch_spyre._inductor.hints").isEnabledFor(logging.DEBUG)
        assert not logging.getLogger("torch_spyre.other").isEnabledFor(logging.INFO)
        effective = config.get_effective_config()
        assert effective["spyre.inductor.hints"] == "DEBUG" and effective["spyre.runtime"] == "WARNING"
        assert config.get_config_source("spyre.inductor") == "programmatic"
        assert config.get_config_source("spyre.runtime") == "default"
        config.enable("spyre.runtime")
        cpp = _C._logging.LoggingConfig.instance()
        assert cpp.get_log_level("spyre.runtime") == _C._logging.LogLevel.INFO
        assert cpp.is_enabled("spyre.runtime.stream", _C._logging.LogLevel.INFO)
        assert not cpp.is_enabled("spyre.passes", _C._logging.LogLevel.INFO)
        config.disable("spyre.runtime")
        assert config.get_effective_config()["spyre.runtime"] == "DISABLED"
        assert not cpp.is_enabled("spyre.runtime", _C._logging.LogLevel.CRITICAL)
        config.reset()
        assert cpp.get_log_level("spyre.runtime") == _C._logging.LogLevel.WARNING
        assert config.get_config_source("spyre.inductor") == "default"

    def test_wrong_names_are_refused(self):
        with pytest.raises(ValueError, match="'LOUD' is not one of NOTSET, DEBUG"):
            torch_spyre.logging_config.set_log_level("spyre", "LOUD")
        with pytest.raises(ValueError, match="is not spyre"):
            torch_spyre.logging_config.set_log_level("torch", "INFO")
        with pytest.raises(OSError):
            torch_spyre.logging_config.set_log_file("/nonexistent/spyre.log")

    def test_a_file_gets_the_messages_of_both(self, tmp_path):
        path = tmp_path / "spyre.log"
        program = f"""if True:
            import torch, torch_spyre, logging
            torch_spyre.logging_config.set_log_level("spyre", "INFO")
            torch_spyre.logging_config.set_log_file({str(path)!r})
            torch.spyre.init()
            logging.getLogger("torch_spyre._inductor.hints").info("said in Python")
            assert torch_spyre.logging_config.get_log_file() == {str(path)!r}
        """
        done = python(program)
        assert done.returncode == 0, done.stderr
        text = path.read_text()
        assert "[spyre runtime] info: started with" in text and "said in Python" in text

    def test_nothing_is_printed_unless_asked(self):
        program = "import torch; torch.spyre.init()"
        assert python(program).stderr == ""
        assert "started with" in python(program, TORCH_SPYRE_DEBUG="1").stderr


class TestReports:
    def test_a_failed_launch_leaves_a_report(self, tmp_path, monkeypatch):
        from torch_spyre import profiler

        assert profiler.get_diagnostic_report(tmp_path) is None
        monkeypatch.setenv("TORCH_SPYRE_FFDC", "1")
        path = profiler.record_failure("runtime_launch", RuntimeError("the card is on fire"), tmp_path)
        (tmp_path / "ffdc_unknown_99991231T000000_000000_1.json").write_text("{no json")
        report = torch.spyre.get_diagnostic_report(tmp_path)
        assert report["failure"]["category"] == "runtime_launch" and "on fire" in report["failure"]["message"]
        assert report["_report_path"] == str(path) and json.loads(path.read_text())["metadata"]["pid"]
        sections = {"metadata", "failure", "environment", "artifacts", "runtime", "hardware_state", "collector"}
        assert set(report) == {*sections, "_report_path"}

    def test_without_the_setting_there_is_none(self, tmp_path, monkeypatch):
        from torch_spyre import profiler

        monkeypatch.delenv("TORCH_SPYRE_FFDC", raising=False)
        assert profiler.record_failure("unknown", RuntimeError("x"), tmp_path) is None
        assert not list(tmp_path.iterdir())

    def test_only_the_newest_are_kept(self, tmp_path, monkeypatch):
        from torch_spyre import profiler

        monkeypatch.setenv("TORCH_SPYRE_FFDC", "1")
        for i in range(profiler._KEPT + 3):
            profiler.record_failure("unknown", RuntimeError(str(i)), tmp_path)
        assert len(list(tmp_path.iterdir())) == profiler._KEPT
        assert profiler.get_diagnostic_report(tmp_path)["failure"]["message"] == str(profiler._KEPT + 2)


def test_eager_mode_is_known_and_said_to_change_nothing():
    program = "import torch; print(torch.ones(3, device='spyre') + 1)"
    done = python(program, EAGER_MODE="1")
    assert done.returncode == 0 and done.stderr.count("EAGER_MODE is set") == 1
    assert "EAGER_MODE" not in python(program).stderr
