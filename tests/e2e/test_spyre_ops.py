"""The operators of ``torch.ops.spyre`` that scripts call by name: on the card, judged by PyTorch on the CPU."""

import pytest
import torch
import torch.nn.functional as F

ops = torch.ops.spyre
OF_16_BITS = (torch.float16, torch.bfloat16)
FLOATS = (*OF_16_BITS, torch.float32)
# Around a stick of 64 half-words or 32 words.
WIDTHS = (1, 31, 32, 33, 63, 64, 65, 130)


def values(*shape, dtype=torch.float16, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def check(operator, expected, *args, rtol=2e-2, atol=2e-2, **options):
    """The operator on the card, without the CPU, gives what ``expected`` gives on the CPU; and so it does there."""
    wanted = expected(*args)
    here = operator(*args, **options)
    torch.testing.assert_close(here, wanted, rtol=rtol, atol=atol, equal_nan=True)
    torch.spyre.reset_metrics()
    found = operator(*[a.to("spyre") if isinstance(a, torch.Tensor) else a for a in args], **options)
    fallbacks = torch.spyre.metrics()["fallbacks"]
    assert not fallbacks, f"fell back to the CPU: {fallbacks}"
    assert found.device.type == "spyre" and found.dtype == wanted.dtype and found.shape == wanted.shape
    torch.testing.assert_close(found.cpu().to(wanted.dtype), wanted, rtol=rtol, atol=atol, equal_nan=True)
    return found


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("width", WIDTHS)
class TestNorms:
    def test_rms_norm(self, dtype, width):
        x, weight = values(4, width, dtype=dtype), values(width, dtype=dtype, seed=1)
        check(ops.rms_norm, lambda x, shape, w: F.rms_norm(x, shape, w, 1e-5), x, [width], weight)

    def test_rms_norm_without_a_weight(self, dtype, width):
        check(lambda x: ops.rms_norm(x, [width], None, 1e-3), lambda x: F.rms_norm(x, [width], None, 1e-3),
              values(4, width, dtype=dtype))  # fmt: skip

    def test_layer_norm(self, dtype, width):
        if width == 1:
            pytest.skip("the moments of a single element have no form on the card; aten's runs on the CPU, too")
        weight, bias = values(width, dtype=dtype, seed=1), values(width, dtype=dtype, seed=2)
        args = values(4, width, dtype=dtype), [width], weight, bias
        check(ops.layer_norm, F.layer_norm, *args, rtol=5e-2, atol=5e-2)  # bf16 loses as much on the CPU


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("width", WIDTHS)
class TestActivations:
    @pytest.mark.parametrize("approximate", ["none", "tanh"])
    def test_gelu(self, dtype, width, approximate):
        check(lambda x: ops.gelu(x, approximate), lambda x: F.gelu(x, approximate=approximate),
              values(4, width, dtype=dtype))  # fmt: skip

    def test_softplus(self, dtype, width):
        check(lambda x: ops.softplus(x, 2.0, 10.0), lambda x: F.softplus(x, 2.0, 10.0), values(4, width, dtype=dtype))

    @pytest.mark.parametrize("bounds", [(-0.5, 0.5), (None, 0.25), (-0.25, None), (-1, 1)])
    def test_clamp(self, dtype, width, bounds):
        check(lambda x: ops.clamp(x, *bounds), lambda x: x.clamp(*bounds), values(4, width, dtype=dtype))

    def test_logical_not_keeps_the_dtype(self, dtype, width):
        x = values(4, width, dtype=dtype)
        x[0] = 0
        check(ops.logical_not, lambda x: torch.logical_not(x).to(dtype), x)


def test_logical_not_of_bools_is_pytorchs():
    check(ops.logical_not, torch.logical_not, values(4, 70) > 0)


def test_clamp_of_integers_keeps_them():
    check(lambda x: ops.clamp(x, -2, 3), lambda x: x.clamp(-2, 3), torch.arange(-8, 8, dtype=torch.int32))
    with pytest.raises(RuntimeError, match="a bound that is a float"):
        ops.clamp(torch.arange(4, dtype=torch.int32).to("spyre"), 0.5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("shape,dim,k", [((4, 65), -1, 3), ((70, 64), 0, 2), ((2, 5, 64), 1, 5), ((33,), 0, 1)])
def test_the_largest_and_where_they_are(dtype, shape, dim, k):
    # Whole numbers that 16 bits hold on the card, each once along the dimension.
    x = torch.rand(shape, generator=torch.Generator().manual_seed(3)).argsort(dim).to(dtype)
    check(ops.topkvalue, lambda x, k, dim: torch.topk(x, k, dim)[0], x, k, dim, rtol=0, atol=0)
    check(ops.topkindex, lambda x, k, dim: torch.topk(x, k, dim)[1].to(dtype), x, k, dim, rtol=0, atol=0)


def test_positions_that_a_dtype_cannot_tell_apart_are_refused():
    with pytest.raises(RuntimeError, match="1026 positions for an input of Half, allowed: at most 1025"):
        ops.topkindex(values(1026).to("spyre"), 2, 0)
    with pytest.raises(RuntimeError, match="allowed: at most 257"):
        ops.topkindex(values(300, dtype=torch.bfloat16), 2, 0)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.bool, None])
def test_tensors_from_numbers(dtype):
    device = torch.device("spyre")
    torch.spyre.reset_metrics()
    full, one = ops.full([3, 65], 1, device, dtype), ops.ones_scalar(device, dtype)
    empty = ops.empty([2, 3], device, dtype)
    assert not torch.spyre.metrics()["fallbacks"]
    assert torch.equal(full.cpu(), torch.full([3, 65], 1, dtype=dtype))
    assert torch.equal(one.cpu(), torch.ones(1, dtype=dtype))
    assert empty.shape == (2, 3) and empty.dtype == (dtype or torch.float32) and empty.device.type == "spyre"


def test_a_constant_stays_a_number():
    assert ops.constant(2.5, torch.float16, torch.device("spyre")) == 2.5
    assert ops.constant(3, torch.int64, torch.device("spyre")) == 3
    with pytest.raises(RuntimeError, match="whole numbers"):
        ops.constant(2.5, torch.int32, torch.device("spyre"))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(5,), (3, 65), (64, 64), (2, 130, 33)])
def test_restickify_turns_and_turns_back(dtype, shape):
    x = values(*shape, dtype=dtype)
    restickified = check(ops.restickify, lambda x: x, x)
    assert restickified.data_ptr() != x.data_ptr()
    if len(shape) > 1:
        assert restickified.stride(-2) == 1 and restickified.stride(-1) == shape[-2]
    back = ops.restickify(restickified)
    assert back.is_contiguous() and torch.equal(back.cpu(), restickified.cpu())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "part,whole,dims,offsets",
    [((3, 64), (9, 64), [0], [4]), ((4, 64), (4, 192), [1], [64]), ((2, 64), (8, 256), [0, 1], [5, 128]),
     ((4, 10), (4, 70), [-1], [33]), ((4, 70), (4, 70), [], [])],
)  # fmt: skip
def test_overwrite(dtype, part, whole, dims, offsets):
    x, y = values(*part, dtype=dtype), values(*whole, dtype=dtype, seed=1)
    expected = y.clone()
    window = expected
    for dim, offset in zip(dims, offsets, strict=True):
        window = window.narrow(dim, offset, x.shape[dim])
    window.copy_(x)
    on_card, kept = x.to("spyre"), y.to("spyre")
    torch.spyre.reset_metrics()
    found = ops.overwrite_f(on_card, kept, dims, offsets)
    assert not torch.spyre.metrics()["fallbacks"]
    rounded = expected.to("spyre").cpu()
    assert torch.equal(found.cpu(), rounded) and torch.equal(kept.cpu(), y.to("spyre").cpu())
    assert ops.overwrite(on_card, kept, dims, offsets) is None
    assert not torch.spyre.metrics()["fallbacks"]
    assert torch.equal(kept.cpu(), rounded)
    assert torch.equal(ops.overwrite_f(x, y, dims, offsets), expected)


@pytest.mark.parametrize(
    "part,dims,offsets,message",
    [((3, 64), [0], [], "one offset for each dim"), ((3, 64), [0, 0], [0, 0], "named twice"),
     ((3, 64), [0], [7], "3 elements at offset 7 of dim 0"), ((3, 64), [0], [-1], "at offset -1"),
     ((3, 32), [0], [0], r"size \[3, 32\]"), ((3, 64, 1), [0], [0], "dimensions"), ((3, 64), [2], [0], "out of range")],
)  # fmt: skip
def test_overwrite_refuses(part, dims, offsets, message):
    whole = values(9, 64).to("spyre")
    for operator in (ops.overwrite, ops.overwrite_f):
        with pytest.raises((RuntimeError, IndexError), match=message):
            operator(values(*part).to("spyre"), whole, dims, offsets)
    assert torch.equal(whole.cpu(), values(9, 64).to("spyre").cpu())


@pytest.mark.parametrize("dtype", FLOATS)
def test_copy_from_d2d(dtype):
    x = values(8, 64, dtype=dtype).to("spyre")
    whole = torch.zeros(8, 64, dtype=dtype, device="spyre")
    torch.spyre.reset_metrics()
    assert ops.copy_from_d2d(x, whole) is None
    assert torch.equal(whole.cpu(), x.cpu())
    # Offsets count elements of the storages: rows 4..8 of x into rows 2..6.
    whole.zero_()
    ops.copy_from_d2d(x[:4], whole[:4], 4 * 64, 2 * 64)
    assert torch.equal(whole.cpu()[2:6], x.cpu()[4:]) and not whole.cpu()[:2].any() and not whole.cpu()[6:].any()
    # A view says where it is itself, also when it is said again.
    ops.copy_from_d2d(x[3:4], whole[7:], x[3:4].storage_offset(), 7 * 64)
    assert torch.equal(whole.cpu()[7], x.cpu()[3])
    assert not torch.spyre.metrics()["fallbacks"]
    with pytest.raises(RuntimeError, match="two tensors of one device"):
        ops.copy_from_d2d(x.cpu(), whole)
    with pytest.raises(RuntimeError, match=r"sizes \[8, 64\] and \[4, 64\]"):
        ops.copy_from_d2d(x, whole[:4])
    with pytest.raises(RuntimeError):
        ops.copy_from_d2d(x, whole, 0, 8 * 64)


def test_copy_forced_writes_and_returns_its_target():
    x, y = values(8, 64).to("spyre"), torch.zeros(8, 64, dtype=torch.float16, device="spyre")
    assert ops.copy_forced(x, y) is y
    assert torch.equal(y.cpu(), x.cpu())


class TestFp8:
    @pytest.mark.parametrize("width", [1, 64, 100, 128, 200])
    def test_quantize_and_back(self, width):
        x, scale = values(4, width) * 3, values(4, 1, seed=1).abs() + 0.5
        on_card = x.to("spyre"), scale.to("spyre")
        quantized = ops.quantize_fp8_with_scale(*on_card)
        assert (quantized.dtype, quantized.shape) == (torch.float8_e4m3fn, x.shape) and quantized.device.type == "spyre"
        expected = (x * scale.reciprocal()).clamp(-448, 448).to(torch.float8_e4m3fn)
        # One step of the 3 fraction bits where the scaled number rounds the other way.
        torch.testing.assert_close(quantized.cpu().float(), expected.float(), rtol=2**-3, atol=2**-9)
        back = ops.dequantize_fp8_with_scale(quantized, on_card[1])
        assert back.dtype == torch.float16
        torch.testing.assert_close(back.cpu(), quantized.cpu().half() * scale, rtol=2**-8, atol=2**-9)

    def test_what_is_too_large_becomes_the_largest(self):
        x = torch.tensor([1000.0, -1000.0, 448.0, 1.0]).half().to("spyre")
        one = torch.ones(1).half().to("spyre")
        for operator in (ops.quantize_fp8_with_scale, ops.quantize_weight_fp8_with_scale):
            assert operator(x, one).cpu().float().tolist() == [448.0, -448.0, 448.0, 1.0]

    def test_qfp8ch_converts(self):
        x = (torch.arange(128) / 8).half()
        assert torch.equal(ops.qfp8ch(x.to("spyre")).cpu().float(), x.to(torch.float8_e4m3fn).float())

    def test_refusals(self):
        half, whole = values(4, 64).to("spyre"), torch.ones(4, 64, dtype=torch.int32, device="spyre")
        with pytest.raises(RuntimeError, match="floating point"):
            ops.qfp8ch(whole)
        with pytest.raises(RuntimeError, match="floating point"):
            ops.quantize_fp8_with_scale(half, whole)
        with pytest.raises(RuntimeError, match="broadcasts"):
            ops.quantize_fp8_with_scale(half, values(2, 4, 1).to("spyre"))
        with pytest.raises(RuntimeError, match="Float8_e4m3fn"):
            ops.dequantize_fp8_with_scale(half, half)
        with pytest.raises(RuntimeError, match="Half"):
            ops.dequantize_fp8_with_scale(ops.qfp8ch(half), half.float())


def test_bad_arguments_get_pytorchs_errors():
    x = values(4, 64).to("spyre")
    with pytest.raises(RuntimeError, match="normalized_shape"):
        ops.rms_norm(x, [63])
    with pytest.raises(RuntimeError, match="normalized_shape"):
        ops.layer_norm(x, [4])
    with pytest.raises(RuntimeError, match="approximate"):
        ops.gelu(x, "much")
    with pytest.raises(RuntimeError, match="At least one of"):
        ops.clamp(x)
    with pytest.raises((RuntimeError, IndexError)):
        ops.topkvalue(x, 65, 1)


SAMPLES = {
    "rms_norm": lambda x: (x, [64], x[0].contiguous()),
    "layer_norm": lambda x: (x, [64]),
    "gelu": lambda x: (x,),
    "softplus": lambda x: (x,),
    "clamp": lambda x: (x, -1.0, 1.0),
    "logical_not": lambda x: (x,),
    "topkvalue": lambda x: (x, 2, 1),
    "topkindex": lambda x: (x, 2, 1),
    "full": lambda x: ([2, 3], 1.5, x.device),
    "ones_scalar": lambda x: (x.device,),
    "empty": lambda x: ([2, 3], x.device),
    "restickify": lambda x: (x,),
    "overwrite": lambda x: (x[:2].clone(), x, [0], [1]),
    "overwrite_f": lambda x: (x[:2].clone(), x, [0], [1]),
    "copy_from_d2d": lambda x: (x.clone(), x),
    "copy_forced": lambda x: (x.clone(), x),
    "qfp8ch": lambda x: (x,),
    "quantize_fp8_with_scale": lambda x: (x, x[:, :1].abs().contiguous()),
    "quantize_weight_fp8_with_scale": lambda x: (x, x[:, :1].abs().contiguous()),
    "dequantize_fp8_with_scale": lambda x: (x.to(torch.float8_e4m3fn), x[:, :1].contiguous()),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_shapes_are_known_without_data(name):
    """On tensors without data and on fake ones: what the operator returns on the CPU, less the values."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    operator = getattr(ops, name)
    real = operator(*SAMPLES[name](values(4, 64)))
    meta = operator(*SAMPLES[name](values(4, 64).to("meta")))
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = operator(*SAMPLES[name](mode.from_tensor(values(4, 64).to("spyre"))))
    if real is None:
        assert meta is None and fake is None
        return
    for found, device in ((meta, "meta"), (fake, "spyre")):
        assert (found.shape, found.dtype, found.stride()) == (real.shape, real.dtype, real.stride())
        assert found.device.type == device


@pytest.mark.parametrize("name", ["rms_norm", "layer_norm", "gelu", "softplus", "clamp", "topkvalue", "restickify"])
def test_gradients_flow(name):
    host = values(4, 64).requires_grad_()
    card = host.detach().to("spyre").requires_grad_()
    arguments = {"rms_norm": ([64],), "layer_norm": ([64],), "clamp": (-1.0, 1.0), "topkvalue": (2, 1)}.get(name, ())
    for x in (host, card):
        (getattr(ops, name)(x, *arguments).float() ** 2).sum().backward()
    torch.testing.assert_close(card.grad.cpu(), host.grad, rtol=5e-2, atol=5e-2)
