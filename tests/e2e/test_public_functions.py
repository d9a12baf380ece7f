"""Every public function of torch.accelerator, torch.accelerator.memory and torch.spyre, with good and bad arguments: an
answer or an exception, never the end of the process."""

import functools
import inspect
import json
import os
import subprocess
import sys

import pytest
import torch

MODULES = ("torch.accelerator", "torch.accelerator.memory", "torch.spyre")
# What a caller may pass by mistake, as text that a fresh process evaluates.
ARGUMENTS = (
    "", "0", "-1", "99", "2**40", "1.5", "None", "True", "[0]", "object()", "'spyre'", "'spyre:7'", "'cuda'",
    "'nonsense'", "torch.device('cpu')", "torch.ones(2)", "torch.ones(2, device='spyre')",
)  # fmt: skip
TWO = ("0, 0", "None, None", "0, 99", "torch.ones(2), 0", "'x', 'y'")
# Ends the runtime, by design: tried in a process of its own.
LAST = {"free_runtime", "_stop_at_exit"}


def names(module: str) -> list[str]:
    found = functools.reduce(getattr, module.split(".")[1:], torch)
    public = [n for n in dir(found) if not n.startswith("_") and callable(getattr(found, n))]
    return [n for n in public if n not in LAST and not inspect.ismodule(getattr(found, n))]


PROGRAM = """
import json, sys, torch, os, tempfile
os.chdir(tempfile.mkdtemp())
answer = os.dup(1)  # some functions take 1 for a file to write and close
{start}
module, calls, outcomes = {module}, {calls}, {{}}
for name, arguments in calls:
    with open("last", "w") as file:
        file.write(f"{{name}}({{arguments}})")
    function = getattr(module, name)
    try:
        eval(f"function({{arguments}})")
        outcomes[f"{{name}}({{arguments}})"] = "ok"
    except Exception as error:
        outcomes[f"{{name}}({{arguments}})"] = type(error).__name__
x = torch.ones(4, device="spyre")  # it still works
assert (x + x).sum().item() == 8, "the card computes as before"
os.write(answer, ("\\n" + json.dumps(outcomes)).encode())
"""


def outcomes(module: str, calls, start: str) -> dict:
    code = PROGRAM.format(module=module, calls=calls, start=start)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, errors="replace", timeout=300
    )
    assert done.returncode == 0, f"rc {done.returncode} of {module} {calls[0]}..: {done.stderr[-2000:]}"
    return json.loads(done.stdout.strip().split("\n")[-1])


@pytest.mark.parametrize("start", ["", "torch.ones(2, device='spyre') + 1"], ids=["fresh", "in use"])
@pytest.mark.parametrize("module", MODULES)
def test_every_function_answers_or_raises(module, start):
    calls = [(name, arguments) for name in names(module) for arguments in ARGUMENTS + TWO]
    found = outcomes(module, calls, start)
    assert len(found) == len(set(calls))
    assert not {call: how for call, how in found.items() if how in ("SystemError", "MemoryError")}


@pytest.mark.full
@pytest.mark.parametrize("module", MODULES)
def test_every_call_in_a_process_of_its_own(module):
    for name in names(module):
        for arguments in ARGUMENTS + TWO:
            outcomes(module, [(name, arguments)], "torch.ones(2, device='spyre') + 1")


GOOD = {
    "torch.accelerator": {
        "current_accelerator": "", "current_device_index": "", "current_stream": "", "device_count": "",
        "device_index": "0", "empty_cache": "", "empty_host_cache": "", "get_device_capability": "0",
        "get_memory_info": "0", "is_available": "", "max_memory_allocated": "0", "max_memory_reserved": "0",
        "memory_allocated": "0", "memory_reserved": "0", "memory_stats": "0", "reset_accumulated_memory_stats": "0",
        "reset_peak_memory_stats": "0", "set_device_index": "0", "synchronize": "0",
        "set_stream": "torch.spyre.Stream()",
    },
    "torch.spyre": {
        "current_device": "", "current_stream": "", "default_stream": "0", "device": "0", "device_count": "",
        "device_of": "torch.ones(2)", "device_time": "", "empty_cache": "", "Event": "", "fragmentation": "",
        "get_amp_supported_dtype": "",
        "get_device_capability": "", "get_device_name": "", "get_device_properties": "0", "get_rng_state": "",
        "get_rng_state_all": "", "init": "", "initial_seed": "", "is_available": "", "is_bf16_supported": "",
        "is_initialized": "", "manual_seed": "3", "manual_seed_all": "3", "max_memory_allocated": "",
        "mem_get_info": "0", "memory_allocated": "", "memory_snapshot": "", "memory_stats": "", "memory_summary": "",
        "metrics": "", "metrics_report": "", "record_memory_history": "10", "save_memory_snapshot": "'snapshot.pickle'",
        "seed": "", "seed_all": "", "set_device": "0", "show_config": "", "Stream": "", "synchronize": "",
    },
}  # fmt: skip


@pytest.mark.parametrize("module", GOOD)
@pytest.mark.parametrize("start", ["", "torch.ones(2, device='spyre') + 1"], ids=["fresh", "in use"])
def test_good_arguments_are_taken(module, start):
    found = outcomes(module, list(GOOD[module].items()), start)
    assert not {call: how for call, how in found.items() if how != "ok"}


def test_pinned_memory_is_counted_and_its_cache_is_empty():
    code = """
import torch
torch.ones(2, device="spyre")
x = torch.ones(1000).pin_memory()
torch.accelerator.empty_host_cache()
print(x.is_pinned(), x.sum().item())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "True 1000.0\n", done.stderr


@pytest.mark.parametrize("gib", ["128", "1", "16"])
@pytest.mark.parametrize("mode", ["MOCK", "VF"])
def test_total_memory_is_one_number(gib, mode):
    code = """
import torch
before = torch.spyre.get_device_properties().total_memory
assert not torch.spyre.is_initialized()
totals = {before, torch.spyre.mem_get_info()[1], torch.accelerator.get_memory_info()[1],
          torch.spyre.get_device_properties().total_memory, torch.spyre.fragmentation()["total"]}
print(len(totals))
"""
    env = {**os.environ, "SPYRE_CARD_MEMORY_GIB": gib, "FLEX_DEVICE": mode}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=env, check=False
    )
    assert done.stdout == "1\n", done.stderr
