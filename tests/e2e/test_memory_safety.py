"""Data that is not yours: freed storages, layouts from files, bytes of storages, constants that share a cache."""

import io
import os
import pickle
import re
import subprocess
import sys
import zipfile

import pytest
import torch
from torch_spyre._C import DataFormats, SpyreTensorLayout, spyre_empty_with_layout


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


# --- constants -------------------------------------------------------------------------------------------------------

SCALARS = """
import math, torch
torch.spyre.set_fallback_mode("silent")
scalars = [math.nan, 2.0, math.inf, -math.inf, 0.0, -0.0, 1e-7, 1e-40, 5e-324, -3.0]
values = torch.tensor([1.0, -2.0, 0.5, 3.0])

def apply(x, s, compiled):
    def uses(x):
        return x * s, x + s, x > s, torch.where(x > 0, x, s)
    if not compiled:
        return uses(x)
    torch._dynamo.reset()  # its guards take -0 for 0, on every device
    return torch.compile(uses, dynamic=False)(x)

def signature(out):
    return [out.dtype] + [(math.copysign(1, v), "nan" if v != v else v) for v in out.cpu().double().tolist()]

def sweep(dtype, compiled, order):
    x = values.to(dtype).to("spyre")
    return {(i, j): signature(out) for i in order for j, out in enumerate(apply(x, scalars[i], compiled))}

def check(dtype, compiled):
    first = sweep(dtype, compiled, list(range(len(scalars))))
    again = sweep(dtype, compiled, list(reversed(range(len(scalars)))))
    assert first == again, (dtype, [k for k in first if first[k] != again[k]])
    x = values.to(dtype)
    for i, s in enumerate(scalars):
        if math.isinf(s):
            continue  # what 16 bits make of infinity is the number format's business
        for j, out in enumerate(apply(x, s, False)):
            if abs(s) < 1e-6 and s and j != 2:
                continue  # and so are numbers below the smallest
            assert first[i, j] == signature(out), (dtype, s, j, first[i, j], signature(out))
"""


@pytest.mark.parametrize("compiled", [False, True])
def test_one_constant_never_takes_the_value_of_another(compiled):
    dtypes = ["float16"] if compiled else "float16 bfloat16 float32 int32 int64 bool".split()
    code = (
        SCALARS
        + ("\nscalars = scalars[:3] + scalars[4:6]" if compiled else "")
        + "".join(f"\ncheck(torch.{dtype}, {compiled})" for dtype in dtypes)
        + "\nprint('same')"
    )
    assert run(code) == "same"


def test_nan_does_not_poison_the_process():
    a = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float16, device="spyre")
    assert (a * float("nan")).isnan().all()
    assert (a * 2).tolist() == [2.0, -4.0, 6.0] and (a > 0).tolist() == [True, False, True]
    assert (a + float("nan")).isnan().all() and (a + 2).tolist() == [3.0, 0.0, 5.0]


def test_constants_go_with_the_kernels_that_use_them():
    code = """
import torch
x = torch.ones(64, dtype=torch.float16, device="spyre")
def held():
    torch.spyre.synchronize()
    return torch.accelerator.memory.memory_stats()["allocation.all.current"]
for i in range(8):
    x * float(i + 0.5)
few = held()
for i in range(8, 64):
    x * float(i + 0.5)
print(held() - few)
"""
    assert run(code, SPYRE_EAGER_CACHE_SIZE="4") == "0"


# --- freed storages --------------------------------------------------------------------------------------------------


def freed():
    z = torch.arange(64.0, device="spyre", dtype=torch.float16)
    z.untyped_storage().resize_(0)
    return z


USES = {
    "add_": lambda z, x: z.add_(x),
    "add": lambda z, x: x + z,
    "mul out": lambda z, x: torch.mul(x, x, out=z),
    "matmul": lambda z, x: z.view(8, 8) @ x.view(8, 8),
    "sum": lambda z, x: z.sum(),
    "copy to": lambda z, x: z.copy_(x),
    "copy from": lambda z, x: x.copy_(z),
    "copy from host": lambda z, x: z.copy_(torch.ones(64)),
    "cpu": lambda z, x: z.cpu(),
    "item": lambda z, x: z[3].item(),
    "fill_": lambda z, x: z.fill_(1),
    "zero_": lambda z, x: z.zero_(),
    "cat": lambda z, x: torch.cat([x, z]),
    "fallback": lambda z, x: z.float().erfinv(),
    "clone": lambda z, x: z.clone(),
    "to": lambda z, x: z.to(torch.float32),
    "view": lambda z, x: z[3:9] + x[3:9],
    "storage byte": lambda z, x: z.untyped_storage()[0],
    "compiled": lambda z, x: torch.compile(lambda a, b: a + b)(z, x),
}


@pytest.mark.parametrize("use", USES)
def test_a_freed_storage_is_an_error_before_anything_runs(use):
    live = [torch.full((64,), float(i), dtype=torch.float16, device="spyre") for i in range(4)]
    with pytest.raises((RuntimeError, IndexError), match="freed|no memory|out of|out of bounds"):
        USES[use](freed(), live[2])
    torch.accelerator.synchronize()
    assert [x.unique().tolist() for x in map(torch.Tensor.cpu, live)] == [[0.0], [1.0], [2.0], [3.0]]


@pytest.mark.parametrize("shape", [(64,), (10,), (5, 7), (128, 65)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64, torch.bool])
def test_a_storage_that_gets_its_bytes_back_is_what_it_was(shape, dtype):
    values = (torch.arange(torch.Size(shape).numel()) % 512).reshape(shape).to(dtype)
    x = values.to("spyre")
    view, layout = x.t() if x.dim() == 2 else x[1:], x.device_tensor_layout()
    storage = x.untyped_storage()
    for size in (storage.nbytes(), x.numel() * x.element_size()):
        storage.resize_(0)
        assert storage.nbytes() == 0 and torch.accelerator.memory.memory_allocated() >= 0
        storage.resize_(size)
        assert storage.nbytes() == size and x.device_tensor_layout() == layout
        x.copy_(values)
        assert torch.equal(x.cpu(), values)
        assert torch.equal(view.cpu(), values.t() if x.dim() == 2 else values[1:])
        assert torch.equal((x == x).cpu(), torch.ones(shape, dtype=torch.bool))


def test_freeing_gives_the_memory_back():
    before = torch.accelerator.memory.memory_allocated()
    x = torch.empty(2**20, dtype=torch.float16, device="spyre")
    x.untyped_storage().resize_(0)
    assert torch.accelerator.memory.memory_allocated() == before


def test_a_storage_made_too_small_for_its_tensor_is_an_error_too():
    x = torch.arange(256.0, device="spyre", dtype=torch.float16)
    x.untyped_storage().resize_(128)
    for use in (lambda: x + x, lambda: x.cpu(), lambda: x.fill_(1)):
        with pytest.raises(RuntimeError, match="needs a storage of 256 elements, its storage has 64"):
            use()
    assert x[:64].cpu().tolist() == list(range(64))
    x.untyped_storage().resize_(512)
    assert x.cpu().tolist() == [*range(64), *[0] * 192]


# --- layouts that somebody else wrote --------------------------------------------------------------------------------


def saved(tensor) -> bytes:
    file = io.BytesIO()
    torch.save(tensor, file)
    return file.getvalue()


def crafted(file: bytes, change) -> bytes:
    """The same file with its pickle changed; the text in it keeps its length or has one byte for it."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as new:
        for item in old.infolist():
            data = old.read(item)
            new.writestr(item, change(data) if item.filename.endswith("data.pkl") else data)
    return out.getvalue()


def replace_text(data: bytes, pattern: bytes, text: bytes) -> bytes:
    """A text of a pickle: the opcode X, four bytes of length, the text."""
    found = re.search(rb"X(.{4})(" + pattern + rb")", data, re.DOTALL)
    assert found, (pattern, data)
    return data[: found.start()] + b"X" + len(text).to_bytes(4, "little") + text + data[found.end() :]


def with_layout(data: bytes, size, strides, dtype=b"SEN169_FP16", arrangement=b"STANDARD") -> bytes:
    layout = b'spyre_layout:{"device_size":%s,"stride_map":%s,"device_dtype":"%s","element_arrangement":"%s"}'
    text = layout % (str(size).encode(), str(strides).encode(), dtype, arrangement)
    return replace_text(data, rb"spyre_layout:\{[^}]*\}", text)


LAYOUTS = {
    "an empty axis": ([0, 2, 64], [64, 64, 1]),
    "too small": ([1, 1, 64], [64, 64, 1]),
    "a gap": ([2, 2, 64], [64, 129, 1]),
    "a gap in the stick": ([2, 2, 64], [64, 128, 2]),
    "overlap": ([2, 2, 64], [64, 64, 1]),
    "no axes": ([], []),
    "lengths": ([2, 2, 64], [64, 1]),
    "negative": ([-2, 2, 64], [64, 128, 1]),
    "stride below": ([2, 2, 64], [64, -128, 1]),
    "huge stride": ([2, 2, 64], [2**62, 128, 1]),
    "beyond int64": ([2, 2, 64], [2**64 - 1, 128, 1]),
    "huge": ([2**30, 2, 64], [64, 128, 1]),
    "overflow": ([2**62, 2, 64], [64, 128, 1]),
    "not a stick": ([2, 2, 63], [64, 128, 1]),
    "17 axes": ([1] * 14 + [2, 2, 64], [-1] * 14 + [64, 128, 1]),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_file_with_a_layout_that_cannot_be_is_refused(name):
    x = torch.arange(256.0, dtype=torch.float16).reshape(2, 128).to("spyre")
    file = crafted(saved(x), lambda data: with_layout(data, *LAYOUTS[name]))
    with pytest.raises(RuntimeError, match="layout|Layout|device size|Device size|stride map|memory"):
        torch.load(io.BytesIO(file), weights_only=True)


@pytest.mark.parametrize("elements", [0, 1, 255, 257, -1, 2**62])
def test_a_file_with_another_number_of_elements_is_refused(elements):
    x = torch.arange(256.0, dtype=torch.float16).reshape(2, 128).to("spyre")
    file = crafted(saved(x), lambda data: replace_text(data, rb"spyre_elements:\d+", b"spyre_elements:%d" % elements))
    with pytest.raises(RuntimeError, match="elements"):
        torch.load(io.BytesIO(file), weights_only=True)


def test_a_file_keeps_layouts_that_can_be():
    plain = torch.arange(35.0, dtype=torch.float16).reshape(5, 7)
    restickified = SpyreTensorLayout([5, 7], [7, 1], torch.float16, [1, 0])
    sparse = SpyreTensorLayout([5, 7], [7, 1], torch.float16, [0, 1, -1])
    for layout in (None, restickified, sparse):
        x = plain.to("spyre") if layout is None else plain.to("spyre", device_layout=layout)
        y = torch.load(io.BytesIO(saved(x)), weights_only=True)
        assert y.device_tensor_layout() == x.device_tensor_layout() and torch.equal(y.cpu(), plain)
    deep = torch.arange(6.0).reshape([1] * 18 + [2, 3]).to("spyre")
    assert torch.equal(torch.load(io.BytesIO(saved(deep)), weights_only=True).cpu(), deep.cpu())
    assert torch.equal((deep + 1).cpu(), deep.cpu() + 1)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_callers_layout_that_cannot_be_is_refused(name):
    size, strides = LAYOUTS[name]
    if name == "beyond int64":
        return  # Python itself refuses it
    if name == "huge":
        pytest.skip("the caller's own memory: it fits the card or it does not")
    layout = SpyreTensorLayout(size, strides, DataFormats.SEN169_FP16)
    with pytest.raises(RuntimeError):
        spyre_empty_with_layout([2, 128], [128, 1], torch.float16, layout)
    with pytest.raises(RuntimeError):
        torch.ones(2, 128, dtype=torch.float16).to("spyre", device_layout=layout)


def test_a_pickled_layout_is_checked_where_it_is_used():
    layout = pickle.loads(pickle.dumps(SpyreTensorLayout([0, 2, 64], [64, 64, 1], DataFormats.SEN169_FP16)))
    with pytest.raises(RuntimeError, match="an axis is empty"):
        spyre_empty_with_layout([2, 128], [128, 1], torch.float16, layout)


def test_no_host_memory_comes_back_that_was_not_written():
    from torch_spyre._C import set_spyre_tensor_layout

    x = torch.ones(2, 128, dtype=torch.float16, device="spyre")
    set_spyre_tensor_layout(x, SpyreTensorLayout([0, 2, 64], [64, 64, 1], DataFormats.SEN169_FP16))
    for read in (lambda: x.cpu(), lambda: x + 1, lambda: x.sum().item(), lambda: x.tolist()):
        with pytest.raises(RuntimeError):
            read()


# --- bytes of a storage ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.bfloat16, torch.int64, torch.int8, torch.bool])
def test_bytes_of_a_storage_are_those_of_the_host(dtype):
    host = torch.tensor([1, 0, 1, 1, 0, 1, 1, 1, 0, 1]).to(dtype)
    storage, expected = host.to("spyre").untyped_storage(), host.untyped_storage().tolist()
    found = storage.tolist()
    assert found[: len(expected)] == expected and not any(found[len(expected) :])
    assert [storage[i] for i in range(len(expected))] == expected
    assert storage.cpu().tolist() == found and list(storage)[:4] == expected[:4]
    assert storage.clone().tolist() == found
    with pytest.raises(IndexError):
        storage[len(storage)]


def test_a_part_of_a_storage_is_its_bytes_or_an_error():
    host = torch.arange(64, dtype=torch.int32)
    storage = host.to("spyre").untyped_storage()
    assert storage[:8].tolist() == host.untyped_storage()[:8].tolist()
    with pytest.raises(RuntimeError):
        storage[8:16].tolist()
    with pytest.raises(RuntimeError):
        storage[3] = 7
    assert host.to("spyre").storage()[5] == 5
