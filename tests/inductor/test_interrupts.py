"""Ctrl-C while PyTorch's compiler is loaded and the card registered with it: the next compilation works."""

import subprocess
import sys

import pytest

# Each names a function, or a module that is being imported, that Ctrl-C ends the first time. PyTorch's functions are
# ended when they are called for the card. None lies inside the import of torch._dynamo: Python leaves a package whose
# own import is ended without some of its modules, with or without a card, and that is not ours to mend.
# One of each kind is quick; each takes two imports of PyTorch's compiler.
MOMENTS = [
    pytest.param("import torch._inductor.scheduler", marks=pytest.mark.full),
    "import torch_spyre._inductor.scheduling",
    pytest.param("torch._inductor.codegen.common.register_device_op_overrides", marks=pytest.mark.full),
    "torch._inductor.codegen.common.register_backend_for_device",
    pytest.param("torch_spyre._inductor.patches._key_holds_device_layouts", marks=pytest.mark.full),
    "torch_spyre._inductor.patches._compile_for_the_card",
]

PROGRAM = """
import importlib.abc, sys, torch
moment = {moment!r}
pressed = []

def press():
    if not pressed:
        pressed.append(True)
        raise KeyboardInterrupt

class Importer(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if "import " + name == moment:
            press()

sys.meta_path.insert(0, Importer())

def watch(frame, event, argument):
    code = frame.f_code
    if event == "call" and frame.f_globals.get("__name__", "") + "." + code.co_name == moment:
        if moment.startswith("torch_spyre") or "spyre" in [str(v) for v in frame.f_locals.values()]:
            press()

def compiled():
    return torch.compile(lambda x: x * 2 + 1)(x)

x = torch.ones(4, dtype=torch.float16, device="spyre")
sys.setprofile(watch)
try:
    compiled()
except KeyboardInterrupt:
    pass
sys.setprofile(None)
for _ in range(2):
    torch._dynamo.reset()
    print(bool(pressed), compiled().tolist())
"""


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interrupted_registration_is_taken_up_again(moment):
    code = PROGRAM.format(moment=moment)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.split("\n")[:2] == ["True [3.0, 3.0, 3.0, 3.0]"] * 2, done.stderr[-3000:]
