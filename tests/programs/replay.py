"""Kernels that a program ran, run again from their saved artifacts by `spyre-run`, in a process of its own."""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
from unittest import mock

import numpy as np
import torch

#: NumPy has no such numbers; they travel as their bits.
_BITS = {torch.bfloat16: np.uint16, torch.float8_e4m3fn: np.uint8}


def tools() -> pathlib.Path:
    if "SPYRE_TOOLS" in os.environ:
        return pathlib.Path(os.environ["SPYRE_TOOLS"])
    root = pathlib.Path(__file__).resolve().parents[2]
    built = sorted(root.glob("build/*/tools/spyre-run"), key=lambda p: p.stat().st_mtime)
    if not built:
        raise FileNotFoundError(f"no spyre-run under {root}/build, and SPYRE_TOOLS is not set\n  try  make build")
    return built[-1].parent


def array(tensor: torch.Tensor) -> np.ndarray:
    host = tensor.detach().cpu().contiguous()
    if host.dtype in _BITS:
        return host.view(torch.int16 if host.dtype == torch.bfloat16 else torch.uint8).numpy().view(_BITS[host.dtype])
    return host.numpy()


def with_room(value: np.ndarray, shape: list[int]) -> np.ndarray:
    """A tensor whose sizes change from call to call, in the memory that its kernel was compiled for."""
    behind = [(0, room - size) for room, size in zip(shape, value.shape, strict=True)]
    return np.pad(value, behind) if behind else value


def difference(directory: pathlib.Path, inputs: list[np.ndarray], expected: list[np.ndarray], *options: str) -> str:
    """Empty if the bundle computes these bytes. Arguments are inputs, then outputs; changed inputs are outputs too."""
    spec = json.loads((directory / "spyreCodeDir" / "launch_spec.json").read_text())
    roles = [arg["role"] for arg in spec["args"] if arg["role"] != "constant"]
    shapes = [arg["shape"] for arg in spec["args"] if arg["role"] != "constant"]
    if len(roles) != len(expected) or "output" in roles[: len(inputs)]:
        return f"error: the launch specification has the roles {roles}, for {len(inputs)} inputs of {len(expected)}"
    work = directory.with_name(directory.name + ".run")
    work.mkdir()
    command = [tools() / "spyre-run", directory, "-o", work / "out", *options]
    for i, value in enumerate(inputs):
        np.save(work / f"{i}.npy", with_room(value, shapes[i]))
        command += ["-i", f"{i}={work}/{i}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode:
        return f"error: {done.stderr.strip()}"
    for i, role in enumerate(roles):
        if role == "input":
            continue
        found = np.load(work / "out" / f"arg_{i}.npy")[tuple(slice(n) for n in expected[i].shape)]
        if found.tobytes() != expected[i].tobytes():
            return f"argument {i} of {spec['kernel_name']}: spyre-run computes other bytes"
    return ""


@contextlib.contextmanager
def replayed():
    """Collects, for every kernel that runs inside, what its artifact computes differently."""
    from torch_spyre._inductor import kernels

    differences: list[str] = []
    run = kernels.LoadedKernel.run

    def run_and_replay(self, inputs, outputs, sizes=()):
        before = [array(t) for t in inputs]
        for t in outputs:
            t.zero_()  # as spyre-run's are: a kernel may leave parts of them to the next one
        run(self, inputs, outputs, sizes)
        with tempfile.TemporaryDirectory() as directory:
            here = pathlib.Path(directory) / "bundle"
            self._kernel.save(str(here), self.text)
            if text := difference(here, before, [array(t) for t in (*inputs, *outputs)]):
                differences.append(text)

    with mock.patch.object(kernels.LoadedKernel, "run", run_and_replay):
        yield differences
