"""The operators of ``torch.ops.spyre`` inside compiled programs."""

import pytest
import torch

ops = torch.ops.spyre


def half(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).half()


PROGRAMS = {
    "rms_norm": (lambda x, w: ops.rms_norm(x, [x.shape[-1]], w) * 2, (half(4, 96), half(96, seed=1))),
    "layer_norm": (lambda x, w: ops.layer_norm(x, [x.shape[-1]], w) * 2, (half(4, 96), half(96, seed=1))),
    "gelu": (lambda x: ops.gelu(x) + ops.gelu(x, "tanh"), (half(4, 96),)),
    "softplus": (lambda x: ops.softplus(x, 2.0, 5.0) * x, (half(4, 96),)),
    "clamp": (lambda x: ops.clamp(x, -0.5, 0.5) + x, (half(4, 96),)),
    "logical_not": (lambda x: ops.logical_not(x.clamp(0)) + x, (half(4, 96),)),
    "topkvalue": (lambda x: ops.topkvalue(x, 3, 1) * 2, (half(4, 96),)),
    "topkindex": (lambda x: ops.topkindex(x, 3, 1) + 1, (torch.arange(96).flip(0).reshape(2, 48).half(),)),
    "full": (lambda x: x + ops.full([4, 96], 1.5, x.device, x.dtype), (half(4, 96),)),
    "ones_scalar": (lambda x: x + ops.ones_scalar(x.device, x.dtype), (half(4, 96),)),
    "empty": (lambda x: ops.empty([4, 96], x.device, x.dtype).copy_(x) + 1, (half(4, 96),)),
    "restickify": (lambda x: ops.restickify(x) * 2, (half(65, 96),)),
    "overwrite_f": (lambda x, y: ops.overwrite_f(x, y, [0], [2]) + 1, (half(3, 64), half(9, 64, seed=1))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(both, name):
    function, arguments = PROGRAMS[name]
    both.check(function, *arguments)


def test_writes_reach_the_callers_tensors(both):
    def overwrite(x, y):
        ops.overwrite(x, y, [0], [2])
        return y + 1

    def copy(x, y):
        ops.copy_from_d2d(x, y)
        return y * 2

    def forced(x, y):
        y = ops.copy_forced(x, y)
        return y * 2

    for function, x in ((overwrite, half(3, 64)), (copy, half(9, 64)), (forced, half(9, 64))):
        host, card = half(9, 64, seed=1), half(9, 64, seed=1).to("spyre")
        expected = function(x, host)
        torch.spyre.reset_metrics()
        found = torch.compile(function, fullgraph=True)(x.to("spyre"), card)
        assert not torch.spyre.metrics()["fallbacks"]
        torch.testing.assert_close(found.cpu(), expected, rtol=2e-2, atol=2e-2)
        torch.testing.assert_close(card.cpu(), host, rtol=2e-2, atol=2e-2)


def test_a_constant_in_a_compiled_function():
    def f(x):
        return x * ops.constant(2.5, x.dtype, x.device)

    torch.testing.assert_close(torch.compile(f)(half(4, 64).to("spyre")).cpu(), half(4, 64) * 2.5, rtol=2e-2, atol=2e-2)


def test_fp8_and_back():
    def f(x, scale):
        return ops.dequantize_fp8_with_scale(ops.quantize_fp8_with_scale(x, scale), scale)

    x, scale = half(4, 200) * 3, half(4, 1, seed=1).abs() + 0.5
    found = torch.compile(f)(x.to("spyre"), scale.to("spyre"))
    torch.testing.assert_close(found.cpu(), f(x, scale), rtol=2**-3, atol=2**-8)


def test_offsets_that_change_need_no_new_graph_to_be_right():
    def f(x, y, row: int):
        return ops.overwrite_f(x, y, [0], [row])

    compiled = torch.compile(f)
    for row in (0, 3, 6):
        found = compiled(half(3, 64).to("spyre"), half(9, 64, seed=1).to("spyre"), row)
        torch.testing.assert_close(found.cpu(), f(half(3, 64), half(9, 64, seed=1), row), rtol=2e-2, atol=2e-2)
