"""What a fault of the device leaves behind with TORCH_SPYRE_FFDC=1."""

import glob
import json
import os
import pathlib
import shlex
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

FAULT = """
    import sys, torch
    function = torch.compile(lambda x, i: x[i] * 2)
    x = torch.randn(5, 64, dtype=torch.float16).to("spyre")
    try:
        function(x, torch.tensor([1, 1 << 20, 3]).to("spyre")).cpu()
    except (RuntimeError, IndexError):
        pass
    try:
        torch.spyre.synchronize()  # the same fault again
    except RuntimeError:
        pass
    report = torch.spyre.get_diagnostic_report()
    print(report and report["_report_path"])
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    env = {**os.environ, "TORCH_SPYRE_FFDC": "1", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FAULT)], capture_output=True, text=True, timeout=300, env=env
    )
    assert done.returncode == 0, done.stderr
    path = done.stdout.split()[-1]
    assert len([n for n in os.listdir(os.path.dirname(path)) if n.endswith(".json")]) == 1, "one fault, one report"
    with open(path) as file:
        return json.load(file)


def test_the_report_says_what_failed(report):
    assert report["failure"]["category"] == "device_fault"
    assert "core 0" in report["failure"]["message"]
    assert report["environment"]["settings"]["TORCH_SPYRE_FFDC"] is True


def test_the_folder_has_the_kernel_its_plan_and_its_inputs(report):
    folder = report["artifacts"]["kernel"]
    kernel = os.listdir(os.path.join(folder, "kernel"))
    assert {"graph.ir", "kernel.opspec", "bundle.mlir", "sdsc_0.json"} <= set(kernel)
    with open(os.path.join(folder, "inputs.json")) as file:
        call = json.load(file)
    assert {"shape": [5, 64], "stride": [64, 1], "dtype": "torch.float16", "device": "spyre:0"} in call["inputs"]
    with open(os.path.join(folder, "plan.json")) as file:
        assert "buffers" in json.load(file)


def test_its_command_runs_the_kernel(report):
    command = shlex.split(report["artifacts"]["replay"])
    assert command[0] == "spyre-run"
    with open(os.path.join(report["artifacts"]["kernel"], "replay.sh")) as file:
        assert report["artifacts"]["replay"] in file.read()
    tools = os.environ.get("SPYRE_TOOLS") or next(iter(glob.glob(f"{ROOT}/build/*/tools")), None)
    if tools is None or not os.path.exists(tool := os.path.join(tools, "spyre-run")):
        pytest.skip("spyre-run is not built")
    done = subprocess.run([tool, *command[1:]], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_of_an_eager_kernel_it_says_that_none_is_kept(tmp_path):
    from torch_spyre import profiler

    artifacts = profiler._kernel_of("core 0 of kernel aten_abs_#2 on stream 0: a fault", tmp_path)
    assert artifacts["kernel"] is None and "eager ones are not kept" in artifacts["kernel_missing"]
    assert not list(tmp_path.iterdir())
