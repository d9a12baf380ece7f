"""Loading, starting, forking, several cards, exit."""

import os
import subprocess
import sys

import pytest
import torch


def run(code: str, **env) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **env},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_torch_is_enough_and_starts_nothing():
    assert run("import torch; print(torch.spyre.is_available(), torch.spyre.is_initialized())") == "True False"


def test_autoload_off_leaves_no_trace():
    code = (
        "import sys, torch; print(hasattr(torch, 'spyre'), any(m.split('.')[0] == 'torch_spyre' for m in sys.modules))"
    )
    assert run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "False False"


def test_importing_the_package_by_name_works_in_any_order():
    assert run("import torch_spyre, torch; print(torch.ones(2).to('spyre').sum().item())") == "2.0"
    code = "import torch_spyre, torch; print(torch.ones(2, device='spyre').device)"
    assert run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "spyre:0"


def test_cpu_programs_never_start_the_card():
    code = """
import torch
f = torch.compile(lambda x: torch.relu(x) * 2 + 1)
f(torch.randn(64)); torch.manual_seed(3)
torch.accelerator.is_available(); torch.spyre.device_count(); torch.spyre.get_device_properties()
print(torch.spyre.is_initialized())
"""
    assert run(code) == "False"


def test_first_use_starts_it():
    assert run("import torch; torch.empty(1, device='spyre'); print(torch.spyre.is_initialized())") == "True"


def test_a_child_forked_before_use_is_free_and_after_use_is_told():
    code = """
import os, sys, torch
def child(work):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        work(); sys.stdout.flush(); os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
child(lambda: print("early", torch.ones(2, device="spyre").cpu().tolist()))
x = torch.ones(2, device="spyre")
def late():
    print("bad", torch.spyre._is_in_bad_fork(), torch.spyre.is_available(), torch.spyre.is_initialized())
    try:
        torch.ones(2, device="spyre")
    except RuntimeError as error:
        print("told", "fork" in str(error) and "spawn" in str(error))
child(late)
print("parent", x.cpu().tolist())
"""
    assert run(code).split("\n") == ["early [1.0, 1.0]", "bad True True False", "told True", "parent [1.0, 1.0]"]


def test_inductor_workers_never_open_the_device():
    code = "import torch; print(torch.spyre._is_in_bad_fork())"
    assert run(code, IS_INDUCTOR_SPAWNED_SUBPROCESS="1") == "True"


def test_several_cards_in_one_process():
    code = """
import torch
print(torch.spyre.device_count())
a = torch.arange(6.0).to("spyre:0"); b = a.to("spyre:2")
print(b.device, torch.equal(a.cpu(), b.cpu()))
with torch.spyre.device(1):
    c = torch.ones(3, device="spyre"); print(c.device, torch.spyre.current_device())
print(torch.spyre.current_device(), c.to("spyre:2").device)
print([torch.accelerator.memory.memory_allocated(i) for i in range(3)])
"""
    out = run(code, AIU_WORLD_SIZE="3").split("\n")
    assert out == ["3", "spyre:2 True", "spyre:1 1", "0 spyre:2", "[128, 128, 128]"]


def test_visible_devices_and_local_rank():
    assert run("import torch; print(torch.spyre.device_count())", AIU_WORLD_SIZE="4", SPYRE_DEVICES="2,0,2,9") == "2"
    code = "import torch; print(torch.empty(1, device='spyre').device)"
    assert run(code, AIU_WORLD_SIZE="2", LOCAL_RANK="1") == "spyre:1"


def test_virtual_function_mode_has_windows_of_12_gib():
    code = """
import torch
free, total = torch.spyre.mem_get_info(); print(total // 2**30)
try:
    torch.empty(13 * 2**29, dtype=torch.float16, device="spyre")
except torch.OutOfMemoryError:
    print("too large")
"""
    assert run(code, FLEX_DEVICE="VF") == "84\ntoo large"


def test_exit_with_queued_work_and_live_tensors_is_clean():
    code = """
import torch
keep = [torch.ones(1000, 1000, device="spyre") for _ in range(4)]
keep[0].copy_(torch.zeros(1000, 1000), non_blocking=True)
print("bye")
"""
    assert run(code) == "bye"


ENDINGS = {
    "a whole script": "",
    "an exception": "raise SystemExit(0)",
    "a thread": "t = threading.Thread(target=queue); t.start()",
    "a thread that nobody waits for": "t = threading.Thread(target=asleep, daemon=True); t.start(); queued.wait()",
    "os._exit": "import os, sys; sys.stdout.flush(); os._exit(0)",
    "several cards": "queue(1); queue(2)",
    "another stream": "s = torch.spyre.Stream()\nwith s: queue()\ntorch.spyre.current_stream().wait_stream(s)",
    "a failed launch": "s = torch.spyre.Stream()\nwith s: poison()\nqueue()",
    "a forked child": "import os; pid = os.fork()\nif pid: assert os.waitpid(pid, 0)[1] == 0",
    "a child that raises": "import os; pid = os.fork()\nif not pid: raise SystemExit(0)\nassert os.wait()[1] == 0",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_process_ends_with_kernels_queued(ending):
    code = f"""
import threading, time, torch
x = [torch.ones(256, 256, dtype=torch.float16).to(f"spyre:{{i}}") for i in range(3)]
def queue(card=0):
    for _ in range(20):
        y = x[card] @ x[card]
queued = threading.Event()
def asleep():
    queue()
    queued.set()
    time.sleep(1000)
def poison():
    torch.index_select(x[0], 0, torch.tensor([0], device="spyre"))
queue()
print("bye", flush=True)
{ENDINGS[ending]}
"""
    assert set(run(code, AIU_WORLD_SIZE="3").split("\n")) == {"bye"}


def test_work_after_the_end_is_refused_not_lost():
    code = """
import atexit
def late():
    try:
        torch.ones(2, device="spyre")
    except RuntimeError as error:
        print("shut down" in str(error))
atexit.register(late)
import torch
torch.ones(2, device="spyre")
"""
    assert run(code) == "True"


def test_methods_generated_for_the_device_exist():
    x = torch.ones(2).spyre()
    assert x.is_spyre and not torch.ones(2).is_spyre
    assert torch.nn.Linear(2, 2).spyre().weight.is_spyre
