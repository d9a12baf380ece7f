"""Operators that compiled programs keep whole: one line of text each, taken apart by the compiler."""

import re

import torch
import torch.nn.functional as F


def calls(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip().startswith("call ")]


def fp16(*shape):
    return torch.randn(shape, dtype=torch.float16)


def test_an_operator_of_many_steps_is_one_line(both):
    both.check(lambda x: torch.softmax(x, -1), fp16(4, 100))
    (line,) = calls(both.text)
    assert re.match(r"call buf0 aten\._softmax\.default\(arg0_1, 1, false\) -> \(buf0\) at=", line)
    assert "node " not in both.text


def test_a_view_is_read_where_it_lies(both):
    both.check(lambda x: torch.softmax(x.t()[2:], -1), fp16(100, 70))
    assert "arg0_1 : [68, 100] stride=[1, 70] offset=2" in both.text
    assert "node " not in both.text, "nothing is copied"


def test_a_view_without_strides_is_copied_first(both):
    both.check(lambda x: torch.softmax(x.permute(1, 0, 2).reshape(8, 96), -1), fp16(2, 8, 48))
    assert both.text.count("node ") == 1


def test_results_nobody_reads_stay_inside(both):
    both.check(lambda x: F.layer_norm(x, (128,)), fp16(8, 128))
    (line,) = calls(both.text)
    assert "-> (buf0, buf1, buf2)" in line and "return buf0\n" in both.text


def test_several_results_are_one_call(both):
    both.check(lambda x: torch.max(x, 1), fp16(8, 64))
    assert len(calls(both.text)) == 1


def test_pieces_beside_one_another_are_one_call(both):
    both.check(lambda x, y: torch.cat([F.gelu(x), torch.relu(y)]), fp16(2, 64), fp16(3, 64))
    assert re.search(r"call buf2 aten.cat.default\({buf0, buf1}, 0\)", both.text) and "node " not in both.text


def test_pieces_without_elements_are_left_out(both):
    both.check(lambda x, y, z: torch.cat([z, x + 1, y[:, :0], y], 1), fp16(4, 8), fp16(4, 64), fp16(0))
    assert torch.spyre.metrics()["fallbacks"] == {}


def test_what_goes_to_the_host_is_not_kept_whole(both):
    def f(x, y):
        return x.float().cpu() * 2, y.to(x.device, torch.float32) + x.cpu().to(x.device)

    x, y = fp16(4, 64), fp16(4, 64)
    for found, expected in zip(torch.compile(f)(x.to("spyre"), y), f(x, y), strict=True):
        torch.testing.assert_close(found.cpu(), expected, rtol=2e-2, atol=2e-2)


def test_numbers_known_at_launch_are_read_from_the_launch(both):
    def scaled(x, s):
        return torch.relu(x * s)

    compiled = torch.compile(scaled, dynamic=True)
    x = fp16(4, 64)
    for s in (2.5, 3.5):
        torch.testing.assert_close(compiled(x.to("spyre"), s).cpu(), scaled(x, s), rtol=2e-2, atol=2e-2)
    assert "load scalar0[0]" in both.text and "aten.relu.default(" in both.text


def test_beside_the_card_operators_are_what_they_were():
    def mixed(x, y):
        return torch.softmax(x, -1), torch.softmax(y, -1)

    x, y = fp16(4, 64), torch.randn(3, 5)
    found = torch.compile(mixed, fullgraph=True)(x.to("spyre"), y)
    for f, e in zip(found, mixed(x, y), strict=True):
        torch.testing.assert_close(f.cpu(), e, rtol=2e-2, atol=2e-2)


def test_settings_of_the_program_travel_with_the_call(both):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        both.check(lambda x, y: x @ y, torch.randn(8, 64), torch.randn(64, 32))
    finally:
        torch.set_float32_matmul_precision(before)
    assert "float32_parts=1" in both.text


def test_a_call_that_is_refused_runs_on_the_cpu():
    """The card folds no eight-bit integers. The refusal names the call, so that nothing else leaves the card."""
    x = torch.randint(-5, 5, (4, 64), dtype=torch.int8)
    torch.spyre.reset_metrics()
    found = torch.compile(lambda x: x.amax(1))(x.to("spyre"))
    assert torch.equal(found.cpu(), x.amax(1))
    assert set(torch.spyre.metrics()["fallbacks"]) == {"aten::amax"}


def test_the_gradient_of_a_sum_is_one_number_everywhere():
    """An operand that repeats an element, where attention's gradient multiplies matrices."""

    def loss(q):
        return F.scaled_dot_product_attention(q, q, q).sum()

    q = fp16(1, 2, 12, 64)
    expected, found = q.float().requires_grad_(), q.to("spyre").requires_grad_()
    loss(expected).backward()
    torch.spyre.reset_metrics()
    torch.compile(loss)(found).backward()
    assert torch.spyre.metrics()["fallbacks"] == {}
    torch.testing.assert_close(found.grad.cpu().float(), expected.grad, rtol=2e-2, atol=2e-2)


def test_attention_on_the_cpu_lies_as_its_shape_says():
    """The meaning of our own operators, for whatever the card refuses."""
    from torch_spyre._inductor import customops  # noqa: F401

    q = torch.randn(2, 12, 3, 64).transpose(1, 2)
    given = q, q, q, None, False, None
    assert torch.ops.spyre.attention(*given).is_contiguous()
    assert all(g.is_contiguous() for g in torch.ops.spyre.attention_backward(q, *given))
