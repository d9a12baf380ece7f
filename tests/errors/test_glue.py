"""What the door to PyTorch refuses, each message with the call that earns it.

Where PyTorch has a message of its own for the same mistake, ours is that one.
"""

import io
import re

import pytest
import torch
from torch_spyre import _C

from tests.e2e.test_memory_safety import crafted, replace_text, run, saved, with_layout

SPYRE = "spyre"


def on_card(*size, dtype=torch.float16):
    return torch.zeros(*size, dtype=dtype).to(SPYRE)


def layout(tensor):
    return tensor.device_tensor_layout()


def storage_of(tensor):
    return tensor.untyped_storage()


def freed():
    x = on_card(4, 64)
    storage_of(x).resize_(0)
    return x


def copied_bytes(target, source):
    storage_of(target).copy_(storage_of(source))


def bytes_of(storage):
    """The bytes of a storage, as PyTorch itself looks at them to copy or save one."""
    return torch.empty(0, dtype=torch.uint8, device=SPYRE).set_(storage)


def bytes_of_halves():
    return bytes_of(storage_of(on_card(64)))


FACTORIES = [
    ("Spyre backend does not support dtype Double", lambda: torch.empty(2, dtype=torch.float64, device=SPYRE)),
    ("Pin memory can only be on CPU", lambda: torch.empty(2, device=SPYRE, pin_memory=True)),
    (
        "dimensionality of sizes (2) must match dimensionality of strides (1)",
        lambda: torch.ops.aten.empty_strided([2, 3], [1], device=torch.device(SPYRE)),
    ),
    (
        "Trying to create tensor with negative stride: -1",
        lambda: torch.ops.aten.empty_strided([2], [-1], device=torch.device(SPYRE)),
    ),
    (
        "required rank 4 tensor to use channels_last format",
        lambda: torch.empty(2, 3, device=SPYRE, memory_format=torch.channels_last),
    ),
    (
        "required rank 5 tensor to use channels_last_3d format",
        lambda: torch.empty(2, 3, device=SPYRE, memory_format=torch.channels_last_3d),
    ),
    (
        "resize_ on Spyre supports the contiguous memory format only, got: ChannelsLast",
        lambda: on_card(2, 3).resize_(1, 2, 3, 4, memory_format=torch.channels_last),
    ),
    (
        "set_ of a Spyre tensor takes a Spyre storage, found one on cpu",
        lambda: torch.ops.aten.set_.source_Storage_storage_offset(
            on_card(4), torch.zeros(4).untyped_storage(), 0, [4], [1]
        ),
    ),
    (
        "Tensor: invalid storage offset -1",
        lambda: torch.ops.aten.set_.source_Storage_storage_offset(on_card(4), storage_of(on_card(4)), -1, [4], [1]),
    ),
    (
        "mismatch in length of strides and shape",
        lambda: torch.ops.aten.set_.source_Storage_storage_offset(on_card(4), storage_of(on_card(4)), 0, [4], [1, 1]),
    ),
    (
        "set_ of a Half Spyre tensor takes a tensor of the same dtype, found Float",
        lambda: torch.ops.aten.set_.source_Tensor(on_card(4), on_card(4, dtype=torch.float32)),
    ),
    (
        "Device index out of bounds. logical_device_id=7, number of visible devices=1",
        lambda: torch.empty(2, device="spyre:7"),
    ),
    ("Device index 7 out of range [0, 1)", lambda: torch.spyre.set_device(7)),
    ("Non strided layout not supported", lambda: torch.empty(2, device=SPYRE, layout=torch.jagged)),
    # More than the host can address, so that it is refused whatever memory there is.
    (
        "cannot allocate 1125899906842624 bytes of pinned host memory",
        lambda: torch.empty(2**50, dtype=torch.uint8, pin_memory=True),
    ),
]

VIEWS = [
    (
        "as_strided: Negative strides are not supported at the moment, got strides: [-1]",
        lambda: torch.ops.aten.as_strided(on_card(4), [4], [-1]),
    ),
    ("Tensor: invalid storage offset -1", lambda: torch.ops.aten.as_strided(on_card(4), [4], [1], -1)),
    ("mismatch in length of strides and shape", lambda: torch.ops.aten.as_strided(on_card(4), [4], [1, 1])),
    (
        "as_strided: sizes [8], strides [1], storage offset 0 requiring 8 elements are out of bounds for a storage of "
        "4 elements",
        lambda: torch.as_strided(on_card(4), [8], [1]),
    ),
    (
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead.",
        lambda: on_card(4, 6).t().view(24),
    ),
    ("maximum size for tensor at dimension 0 is 4 but size is 5", lambda: on_card(4).unfold(0, 5, 1)),
    ("size is -1 but must be >= 0", lambda: on_card(4).unfold(0, -1, 1)),
    ("step is 0 but must be > 0", lambda: on_card(4).unfold(0, 2, 0)),
    (
        "a Spyre tensor of Half cannot be viewed as Short: on the card its elements have the card's own format, not "
        "the host's bits",
        lambda: on_card(4).view(torch.int16),
    ),
]

STORAGES = [
    ("a Spyre storage has no memory behind it: it was freed by resize_(0)", lambda: freed().cpu()),
    (
        "a Spyre storage that holds float16 cannot be viewed as int16: on the card elements have the card's own format",
        lambda: torch.empty(0, dtype=torch.int16, device=SPYRE).set_(storage_of(on_card(4)), 0, (4,), (1,)),
    ),
    (
        "a Spyre storage that holds float16 cannot be read as uint8",
        lambda: storage_of(on_card(4)).__setitem__(0, 3),
    ),
    (
        "a storage of another dtype cannot be overwritten",
        lambda: copied_bytes(on_card(64), on_card(32, dtype=torch.int32)),
    ),
    (
        "single bytes of a Spyre storage cannot be written: on the card elements have the card's own format",
        lambda: bytes_of_halves()[3:5].copy_(torch.ones(2, dtype=torch.uint8)),
    ),
    (
        "a part of a Spyre storage cannot be copied to another",
        lambda: bytes_of_halves().copy_(bytes_of(storage_of(on_card(128)))[128:]),
    ),
    (
        "a Spyre storage of plain bytes cannot be read as a tensor of Byte",
        lambda: bytes_of(torch.UntypedStorage(64, device=SPYRE))[3:5].fill_(3),
    ),
    (
        "a Spyre tensor of sizes [8, 64], strides [64, 1] and storage offset 0 needs a storage of 512 elements, its "
        "storage has 256",
        lambda: shrunk(on_card(8, 64)).cpu(),
    ),
]


def with_no_bytes(tensor):
    empty = _C.SpyreTensorLayout([0, 2, 64], [64, 64, 1], _C.DataFormats.SEN169_FP16)
    _C.set_spyre_tensor_layout(tensor, empty)
    return tensor


def loaded(change):
    """A saved tensor of 2 x 128, its file changed."""
    return torch.load(io.BytesIO(crafted(saved(on_card(2, 128)), change)), weights_only=True)


def with_elements(count: bytes):
    return lambda data: replace_text(data, rb"spyre_elements:\d+", b"spyre_elements:" + count)


FILES = [
    ("a saved Spyre element count is not a number: true", lambda: loaded(with_elements(b"true"))),
    ("a saved Spyre storage of 256 elements says it has 257", lambda: loaded(with_elements(b"257"))),
    (
        "a saved Spyre tensor of sizes [2, 128] needs a storage of 256 elements, the file says 255",
        lambda: loaded(with_elements(b"255")),
    ),
    (
        "a saved Spyre layout of 274877906944 bytes is too large for 256 elements:",
        lambda: loaded(lambda data: with_layout(data, [2**30, 2, 64], [64, 128, 1])),
    ),
    (
        "a Spyre tensor of 256 elements is laid out in no bytes:",
        lambda: with_no_bytes(on_card(2, 128)).cpu(),
    ),
    ("aten::_to_sparse returns a Sparse tensor; Spyre tensors are strided", lambda: on_card(4, 4).to_sparse()),
    (
        "set_log_file: /no/such/folder/log cannot be opened: No such file or directory",
        lambda: _C._logging.LoggingConfig.instance().set_log_file("/no/such/folder/log"),
    ),
]


def shrunk(tensor):
    storage_of(tensor).resize_(storage_of(tensor).nbytes() // 2)
    return tensor


COPIES = [
    (
        "Unsupported copy types: src on cpu dst on cpu",
        lambda: _C.copy_tensor(torch.zeros(4), torch.zeros(4), False),
    ),
    (
        "Invalid device sizes for host sizes. Expected: [4], got: [3]",
        lambda: torch.ops.aten._copy_from(torch.zeros(3, dtype=torch.float16), on_card(4)),
    ),
    (
        "fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions.",
        lambda: on_card(4).fill_(torch.zeros(2)),
    ),
    ("fill_tensor: expected a Spyre tensor, found one on cpu", lambda: _C.fill_tensor(torch.zeros(4), 1.0)),
    ("cannot fill empty tensor", lambda: _C.fill_tensor(on_card(0), 1.0)),
    (
        "mismatch in length of strides and shape",
        lambda: _C.spyre_empty_with_layout([4], [1, 1], torch.float16, layout(on_card(4))),
    ),
    ("encode_constant: no way to encode a number as INVALID", lambda: _C.encode_constant(1.0, _C.DataFormats.INVALID)),
    (
        "Expected all tensors to be on the same device, but found at least two devices, spyre:0 and cpu!",
        lambda: torch.add(on_card(4), torch.zeros(4, dtype=torch.float16)),
    ),
]

STREAMS = [
    (
        "record_stream of a Spyre tensor takes a Spyre stream, found",
        lambda: on_card(4).record_stream(torch.Stream("cpu")),
    ),
    (
        "Both events must be recorded before calculating elapsed time.",
        lambda: _C._event_elapsed_ms(0, 0),
    ),
    ("Spyre Generator does not use offset", lambda: torch.Generator(SPYRE).set_offset(1)),
]

OPS = torch.ops.spyre
OPERATORS = [
    (
        "spyre::clamp: found a bound that is a float for an input of Int, allowed: whole numbers, because the result "
        "keeps the dtype of the input",
        lambda: OPS.clamp(on_card(4, dtype=torch.int32), 0.5, None),
    ),
    (
        "spyre::topkindex: found 2000 positions for an input of Half, allowed: at most 1025, because positions are "
        "returned in the dtype of the input; torch.topk returns them as int64",
        lambda: OPS.topkindex(on_card(2000), 4, 0),
    ),
    (
        "spyre::constant: found 0.5 for Int, allowed: whole numbers",
        lambda: OPS.constant(0.5, torch.int32, torch.device(SPYRE)),
    ),
    (
        "spyre::overwrite: found 1 dims and 2 offsets, allowed: one offset for each dim",
        lambda: OPS.overwrite(on_card(2, 64), on_card(4, 64), [0], [0, 0]),
    ),
    (
        "spyre::overwrite: found an input of 1 dimensions for an output of 2, allowed: the same number",
        lambda: OPS.overwrite(on_card(64), on_card(4, 64), [0], [0]),
    ),
    ("spyre::overwrite: dim 0 is named twice", lambda: OPS.overwrite(on_card(2, 64), on_card(4, 64), [0, 0], [0, 0])),
    (
        "spyre::overwrite: found 2 elements at offset 3 of dim 0, allowed: inside the output's 4",
        lambda: OPS.overwrite(on_card(2, 64), on_card(4, 64), [0], [3]),
    ),
    (
        "spyre::overwrite: found an input of size [2, 32], allowed: [2, 64], the output's along the dims without an "
        "offset",
        lambda: OPS.overwrite(on_card(2, 32), on_card(4, 64), [0], [0]),
    ),
    (
        "spyre::copy_from_d2d: found offset -1, allowed: 0 and up",
        lambda: OPS.copy_from_d2d(on_card(4), on_card(4), -1, 0),
    ),
    (
        "spyre::copy_from_d2d: found spyre:0 and cpu, allowed: two tensors of one device; Tensor.copy_ copies between "
        "devices",
        lambda: OPS.copy_from_d2d(on_card(4), torch.zeros(4), 0, 0),
    ),
    (
        "spyre::copy_from_d2d: found sizes [4] and [8], allowed: the same",
        lambda: OPS.copy_from_d2d(on_card(4), on_card(8), 0, 0),
    ),
    (
        "spyre::copy_forced: found spyre:0 and cpu, allowed: two tensors of one device",
        lambda: OPS.copy_forced(on_card(4), torch.zeros(4)),
    ),
    ("spyre::qfp8ch: found Int, allowed: floating point", lambda: OPS.qfp8ch(on_card(4, dtype=torch.int32))),
    (
        "spyre::quantize_fp8_with_scale: found Int and a scale of Half, allowed: floating point",
        lambda: OPS.quantize_fp8_with_scale(on_card(4, dtype=torch.int32), on_card(1)),
    ),
    (
        "spyre::quantize_fp8_with_scale: found a scale of size [3, 4], allowed: one that broadcasts to the input's [4]",
        lambda: OPS.quantize_fp8_with_scale(on_card(4), on_card(3, 4)),
    ),
    (
        "spyre::dequantize_fp8_with_scale: found Half, allowed: Float8_e4m3fn",
        lambda: OPS.dequantize_fp8_with_scale(on_card(4), on_card(1)),
    ),
    (
        "spyre::dequantize_fp8_with_scale: found a scale of Float, allowed: Half",
        lambda: OPS.dequantize_fp8_with_scale(OPS.qfp8ch(on_card(4)), on_card(1, dtype=torch.float32)),
    ),
    (
        "spyre::dequantize_fp8_with_scale: found a scale of size [3, 4], allowed: one that broadcasts to the input's "
        "[4]",
        lambda: OPS.dequantize_fp8_with_scale(OPS.qfp8ch(on_card(4)), on_card(3, 4)),
    ),
]


KERNEL = """graph negated {
  input x : float16[4, 64]
  buffer y : float16[4, 64]
  node y (a: 4, b: 64) {
    v0 = load x[64*a + b]
    v1 = neg v0
    store y[64*a + b] v1
  }
  return y
}"""


def kernel():
    return _C.compile_graph(KERNEL)


def second_half():
    """A kernel for the last four of eight rows."""
    layout = "layout=([1, 8, 64], [64, 64, 1], SEN169_FP16, STANDARD)"
    rows = f"input x : float16[4, 64] stride=[64, 1] offset=256 storage=512 {layout}"
    return _C.compile_graph(re.sub(r"input x : .*", rows, KERNEL).replace("load x[", "load x[256 + "))


def run_on(x):
    kernel().run([x], [on_card(4, 64)])


def run_open(x):
    """A program for calls of up to 64 rows, in memory for 128."""
    text = """graph open {
      extent e0 <= 64 room=128 of='s0'
      input n : float32[] value_of=e0
      input x : float16[e0, 64]
      buffer y : float16[e0, 64]
      node y (a: e0, b: 64) { v0 = load x[64*a + b] v1 = neg v0 store y[64*a + b] v1 }
      return y
    }"""
    _C.compile_graph(text).run([torch.tensor(65.0).to(SPYRE), x], [on_card(128, 64)])


def too_small():
    """A tensor of two rows that says it is laid out in four."""
    x = on_card(2, 64)
    _C.set_spyre_tensor_layout(x, layout(on_card(4, 64)))
    return x


def view_without_a_kernel(x):
    library = torch.library.Library("test_glue", "FRAGMENT")
    library.define("first(Tensor(a) x) -> Tensor(a)")
    library.impl("first", lambda x: x[:1], "CPU")
    return torch.ops.test_glue.first(x)


KERNELS = [
    ("kernel 'negated' takes 1 inputs and 1 outputs, found 0 and 1", lambda: kernel().run([], [on_card(4, 64)])),
    ("kernel 'negated' has no argument 'z'", lambda: kernel().output_layout("z")),
    ("kernel argument 'x' must be on the card, found cpu", lambda: run_on(torch.zeros(4, 64, dtype=torch.float16))),
    (
        "kernel argument 'x' is laid out SpyreTensorLayout(device_size=[1, 8, 64], stride_map =[64, 64, 1], "
        "device_dtype=DataFormats.SEN169_FP16), the kernel was compiled for SpyreTensorLayout(device_size=[1, 4, 64]",
        lambda: run_on(on_card(8, 64)),
    ),
    (
        "kernel argument 'x' lies at element 0 of its storage as SpyreTensorLayout(device_size=[1, 4, 64], "
        "stride_map =[64, 64, 1], device_dtype=DataFormats.SEN169_FP16), the kernel was compiled for element 256 and",
        lambda: second_half().run([on_card(4, 64)], [on_card(4, 64)]),
    ),
    ("kernel argument 'x' is laid out in 512 bytes, its storage has 256", lambda: run_on(too_small())),
    ("kernel argument 'x' has sizes [65, 64], the program takes at most [64, 64]", lambda: run_open(on_card(65, 64))),
    (
        "test_glue::first returns a view of its input and has no Spyre kernel; a CPU fallback would return a copy",
        lambda: view_without_a_kernel(on_card(4)),
    ),
]


@pytest.mark.parametrize(
    "message, call",
    FACTORIES + VIEWS + STORAGES + FILES + COPIES + STREAMS + OPERATORS + KERNELS,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refused_with_its_message(message, call):
    with pytest.raises((RuntimeError, IndexError), match=re.escape(message)):
        call()


def ints(*size):
    return on_card(*size, dtype=torch.int32)


def bools(*size):
    return on_card(*size, dtype=torch.bool)


# Calls without a form on the card: they run on the CPU, and where that is not allowed the error says why.
FALLBACKS = [
    ("a number that does not fit the card's 32-bit integers", lambda: ints(4) + 2**40),
    ("integers divided by zero", lambda: ints(4) // 0),
    ("a power of integers with a tensor or a negative number as exponent", lambda: ints(4) ** ints(4)),
    ("a power of a number that is not positive", lambda: (-2.0) ** on_card(4)),
    ("a power beyond 64", lambda: ints(4) ** 65),
    ("products of truth values", lambda: torch.addcmul(bools(4), bools(4), bools(4))),
    ("PyTorch interpolates floats only", lambda: torch.lerp(ints(4), ints(4), 0.5)),
    (
        "result type Float can't be cast to the desired output type Int",
        lambda: torch.add(on_card(4, dtype=torch.float32), 1.0, out=ints(4)),
    ),
    ("positions beyond 2^24", lambda: torch.argmax(on_card(2**24 + 2))),
    (
        "a list with a tensor that is not on the card",
        lambda: torch.ops.aten.index.Tensor(on_card(4), [torch.tensor(1)]),
    ),
    ("a tensor reads its storage as another dtype", lambda: bytes_of_halves() + 1),
    (
        "its results are unknown: the normalized shape is not the end of the input's",
        lambda: torch.ops.aten._fused_rms_norm(on_card(4, 64), [32], None, None),
    ),
    (
        "its results are unknown: the groups are not of rows, or of columns",
        lambda: torch._grouped_mm(on_card(2, 4, 64, dtype=torch.bfloat16), on_card(2, 64, 64, dtype=torch.bfloat16)),
    ),
]


@pytest.mark.parametrize("message, call", FALLBACKS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_fallback_says_why(message, call, on_the_card_only):
    with pytest.raises((RuntimeError, IndexError), match=re.escape(message)):
        call()


TWO_CARDS = """
import torch
event = torch.Event("spyre")
event.record(torch.Stream("spyre:0"))
try:
    event.record(torch.Stream("spyre:1"))
except RuntimeError as error:
    print(error)
"""


def test_an_event_stays_with_its_card():
    said = run(TWO_CARDS, AIU_WORLD_SIZE="2")
    assert said == "an event of device 0 cannot be recorded on a stream of device 1"
