"""Programs rather than operators: mutation, views as inputs, mixed devices, gradients, refusals, recompilation."""

import re

import pytest
import torch
import torch.nn.functional as F

from tests.inductor import harness
from tests.inductor.harness import assert_near

H = torch.float16


def half(*shape):
    return torch.randn(shape, dtype=H)


def test_an_in_place_update_reaches_the_callers_tensor(both):
    def step(x, y):
        x.add_(y)
        return x * 2

    x, y = half(4, 64), half(4, 64)
    on_card = x.to("spyre")
    result = torch.compile(step)(on_card, y.to("spyre"))
    assert_near(on_card, x + y)
    assert_near(result, (x + y) * 2)


def test_a_slice_of_a_cache_is_written_in_place(both):
    def write(cache, new):
        cache[:, 2:4] = new
        return cache.sum(-1)

    cache, new = half(3, 8, 64), half(3, 2, 64)
    on_card = cache.to("spyre")
    result = torch.compile(write)(on_card, new.to("spyre"))
    cache[:, 2:4] = new
    assert_near(on_card, cache)
    assert_near(result, cache.sum(-1))
    assert "(p0: 3, p1: 8, p2: 64)" not in both.text, "nothing of the whole size is copied"


def test_rows_are_written_in_place_through_an_index(both):
    def write(cache, slots, new):
        cache.index_copy_(0, slots, new)
        return cache + 0.5

    cache, slots, new = half(8, 64), torch.tensor([5, 2]), half(2, 64)
    on_card = cache.to("spyre")
    result = torch.compile(write)(on_card, slots.to("spyre"), new.to("spyre"))
    cache[slots] = new
    assert_near(on_card, cache)
    assert_near(result, cache + 0.5)
    assert "IndirectAccess(" in both.text


def test_the_offset_of_a_view_is_part_of_the_index(both):
    base = half(6, 64)
    view = base.to("spyre")[2:4]
    result = torch.compile(lambda x: x + 1)(view)
    assert_near(result, base[2:4] + 1)
    assert "arg0_1 : float16[2, 64] stride=[64, 1] offset=128" in both.text and "(arg0_1, 1, 1)" in both.text


def test_another_offset_recompiles(both):
    base = half(6, 64)
    on_card = base.to("spyre")
    function = torch.compile(lambda x: x + 1)
    for start in (0, 2, 3):
        assert_near(function(on_card[start : start + 2]), base[start : start + 2] + 1)
    assert len(both.texts) == 3


def test_another_device_layout_recompiles(both):
    from torch_spyre._C import SpyreTensorLayout

    x = half(64, 128)
    restickified = SpyreTensorLayout([64, 128], [128, 1], H, [1, 0])
    function = torch.compile(lambda x: x * 2)
    for tensor in (x.to("spyre"), x.to("spyre", device_layout=restickified)):
        assert_near(function(tensor), x * 2)
    assert len(both.texts) == 2
    assert "layout=([2, 64, 64]" in both.texts[0] and "layout=([1, 128, 64]" in both.texts[1]


def test_an_unknown_operator_runs_on_the_cpu_and_is_counted(both):
    both.check(lambda x: torch.special.i0(x + 1) * 2, half(4, 64).float(), fallbacks=["aten::i0.out"])
    before, after = both.texts[-2:]  # an attempt without the operator comes first
    assert "aten.add.Tensor(" in before and "aten.mul.Tensor(" in after


def test_an_operator_the_compiler_refuses_runs_on_the_cpu(both):
    both.check(lambda x: torch.lgamma(x + 4) * torch.lgamma(x + 5), half(4, 64), fallbacks=["aten::lgamma.out"])


def test_a_refused_operator_of_several_results_runs_on_the_cpu(both):
    both.check(lambda x: torch.frexp(x)[0] * 2, torch.randn(4, 64), fallbacks=["aten::frexp.Tensor_out"])


def test_the_largest_of_windows_stay_on_the_card(both):
    both.check(lambda x: torch.nn.functional.max_pool2d(x, 2), torch.randn(1, 64, 8, 8))


@pytest.mark.parametrize("shape", [(128,), (2, 100), (3, 64, 5)])
def test_running_counts_stay_on_the_card(both, shape):
    mask = torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(0)) > 0
    both.check(lambda m: m.cumsum(1 if m.ndim > 1 else 0), mask, rtol=0, atol=0)


@pytest.mark.parametrize("shape", [(5,), (4, 64), (3, 70), (2, 3, 100)])
def test_cumulative_sums_of_halves_stay_on_the_card(both, shape):
    x = half(*shape)
    if both.on_card:  # the evaluator's results cross to the card, whose format has one code for NaN and infinity
        x[..., 3] = float("nan")  # the sums before it do not see it
    both.check(lambda x: x.cumsum(-1), x)
    both.check(lambda x: (x + 1).cumsum(0), half(*shape))


def test_the_largest_value_comes_with_its_index(both):
    both.check(lambda x: tuple(x.max(-1)), half(4, 64))


def test_a_graph_may_mix_the_card_and_the_cpu(both):
    def f(x, y):
        return (x + 1).cpu() * 2 + y, x * y.to(x.device)

    x, y = half(4, 64), half(4, 64)
    a, b = torch.compile(f)(x.to("spyre"), y)
    assert_near(a, (x + 1) * 2 + y)
    assert_near(b, x * y)


def test_a_tensor_made_inside_the_graph(both):
    result = torch.compile(lambda: torch.ones(4, 64, dtype=H, device="spyre") * 3)()
    assert_near(result, torch.full((4, 64), 3, dtype=H))


def test_a_scalar_on_the_cpu_takes_part(both):
    x, s = half(4, 64), torch.tensor(2.0)
    result = torch.compile(lambda x, s: x * s)(x.to("spyre"), s)
    assert_near(result, x * 2)


def test_an_input_may_be_returned(both):
    x = half(4, 64)
    a, b = torch.compile(lambda x: (x, x + 1))(x.to("spyre"))
    assert_near(a, x)
    assert_near(b, x + 1)


def test_another_shape_compiles_again_for_all_others(both):
    function = torch.compile(lambda x: torch.softmax(x, -1))
    for rows in (4, 6, 8):
        x = half(rows, 64)
        assert_near(function(x.to("spyre")), torch.softmax(x, -1))
    assert ("extent e0 <= 64 room=1024 of='s" in both.text) == both.on_card


def test_the_backend_has_a_name(both):
    x = half(4, 64)
    assert_near(torch.compile(lambda x: x + 1, backend="spyre")(x.to("spyre")), x + 1)


def test_compiling_for_the_cpu_is_untouched():
    x = torch.randn(4, 64)
    torch.testing.assert_close(torch.compile(lambda x: torch.softmax(x, -1) + 1)(x), torch.softmax(x, -1) + 1)


def test_compile_errors_name_operator_and_line(monkeypatch):
    from torch_spyre._inductor import config, kernels
    from torch_spyre._inductor.errors import SpyreUnsupportedError

    def refuse(text):
        raise SpyreUnsupportedError("nothing goes", "buf0")

    monkeypatch.setattr(kernels, "compile_graph", refuse)
    with config.patch(cpu_fallback_on_refusal=False), pytest.raises(Exception, match="nothing goes"):
        torch.compile(lambda x: x + 1)(half(4, 64).to("spyre"))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(64)
        self.up = torch.nn.Linear(64, 128)
        self.down = torch.nn.Linear(128, 64)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x)), approximate="tanh"))


def test_gradients_flow_through_forward_and_backward_kernels(both):
    torch.manual_seed(1)
    reference = Block().to(H)
    module = Block().to(H)
    module.load_state_dict(reference.state_dict())
    module = module.to("spyre")
    x = half(2, 3, 64)
    expected = reference(x)
    expected.sum().backward()
    found = torch.compile(module)(x.to("spyre"))
    found.sum().backward()
    assert_near(found.detach(), expected.detach())
    for a, b in zip(reference.parameters(), module.parameters(), strict=True):
        assert_near(b.grad, a.grad, 5e-2, 5e-2)


def leave_infinities_in_memory():
    """Fills and frees device memory, so that whatever reads bytes it did not write finds no numbers."""
    huge = torch.full((512, 512), 30.0, dtype=H).to("spyre")
    torch.compile(lambda x: torch.softmax(torch.exp(x * 1000), -1) + torch.exp(x * 1000))(huge)
    torch.spyre.synchronize()


@pytest.mark.parametrize("planned", [True, False])
def test_a_product_over_part_of_a_stick_sums_no_old_bytes(planned):
    """Weight gradients sum over tokens, here 6 of them: behind those, sticks hold zeros."""
    from torch_spyre._inductor import config

    torch.manual_seed(1)
    reference, module = Block().to(H), Block().to(H)
    module.load_state_dict(reference.state_dict())
    module = module.to("spyre")
    x = half(2, 3, 64)
    reference(x).sum().backward()
    on_card = x.to("spyre")
    leave_infinities_in_memory()
    torch.spyre.reset_metrics()
    with config.patch(lx_planning=planned):
        found = torch.compile(module)(on_card)
        leave_infinities_in_memory()
        found.sum().backward()
    for a, b in zip(reference.parameters(), module.parameters(), strict=True):
        assert_near(b.grad, a.grad, 5e-2, 5e-2)
    assert not torch.spyre.metrics()["fallbacks"]


@pytest.mark.parametrize("left", [(), (6, 1), (1, 64)])
@pytest.mark.parametrize("right", [(6, 70), (1, 70), (6, 1)])
def test_a_product_of_broadcast_matrices_over_part_of_a_stick(left, right):
    def f(a, b):
        return a.expand(6, 64).t() @ b.expand(6, 70)

    a, b = half(*left), half(*right)
    expected = f(a.float(), b.float()).to(H)
    leave_infinities_in_memory()
    torch.spyre.reset_metrics()
    assert_near(torch.compile(f)(a.to("spyre"), b.to("spyre")), expected, 1e-2, 2e-2)
    assert not torch.spyre.metrics()["fallbacks"]


def test_attention_has_a_gradient(both):
    def f(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    host = [half(1, 4, 6, 64).requires_grad_(), half(1, 2, 6, 64).requires_grad_(), half(1, 2, 6, 64).requires_grad_()]
    card = [t.detach().to("spyre").requires_grad_() for t in host]
    f(*host).sum().backward()
    torch.compile(f)(*card).sum().backward()
    for a, b in zip(host, card, strict=True):
        assert_near(b.grad, a.grad, rtol=5e-2, atol=5e-2)


def test_a_hint_travels_to_the_node(both):
    from torch_spyre._inductor.hints import declare_tensor_dim, name_tensor_dims, spyre_hint

    declare_tensor_dim("HINTED_M", 48)

    def f(x, w):
        with spyre_hint(work_div={"HINTED_M": 8}):
            return x @ w

    x = name_tensor_dims(half(48, 64).to("spyre"), ["HINTED_M", "HINTED_K"])
    torch.compile(f)(x, half(64, 128).to("spyre"))
    assert "hint={p0: 8}" in both.text


def test_a_hint_that_cannot_be_followed_is_refused_and_nothing_else(monkeypatch, caplog):
    import torch_spyre
    from torch_spyre import diagnostics
    from torch_spyre._inductor.hints import declare_tensor_dim, name_tensor_dims, spyre_hint

    harness.use_compiler(monkeypatch)
    declare_tensor_dim("REFUSED_M", 512)

    def add(x):
        with spyre_hint(work_div={"REFUSED_M": 7}):
            return x + 1

    x = half(512, 64)
    torch.spyre.reset_metrics()
    on_card = name_tensor_dims(x.to("spyre"), ["REFUSED_M", "K"])
    assert_near(torch.compile(add)(on_card), x + 1)
    assert not torch.spyre.metrics()["fallbacks"]
    assert diagnostics.compilations()[-1]["refused"] == []
    (plan,) = [p for p in torch_spyre.explain() if p["refused_hints"]]
    (refused,) = plan["refused_hints"]
    assert (refused["loop"], refused["split"]) == ("p0", 7) and "try p0=8" in refused["reason"]
    assert any("work_div hint p0=7" in record.getMessage() for record in caplog.records)


def test_a_tiling_hint_is_said_to_change_nothing(compiled, caplog):
    from torch_spyre._inductor import hints

    hints._say_once_that_tiles_are_ignored.cache_clear()

    def f(x):
        with hints.spyre_hint(num_tiles_per_dim={"TILED": 8}):
            return x + 1

    torch.compile(f)(half(48, 64).to("spyre"))
    assert sum("num_tiles_per_dim" in record.message for record in caplog.records) == 1


def test_work_is_one_kernel(both):
    def f(x, w):
        return torch.softmax(F.layer_norm(x @ w, (128,)), -1)

    both.check(f, half(4, 64), half(64, 128))
    assert len(both.texts) == 1


def test_linear_is_one_call(both):
    both.check(F.linear, half(2, 3, 64), half(128, 64), half(128))
    assert re.search(r"call buf0 aten.addmm.default\(arg\d_1, arg\d_1 : \[6, 64\]", both.text)


def test_a_broadcast_matmul_copies_nothing(both):
    """One is repeated to be merged, in what PyTorch captures; the pass unflatten-products reads it where it was."""
    x, w = half(2, 3, 4, 64), half(3, 64, 64)
    both.check(torch.matmul, x, w)
    torch.spyre.reset_metrics()
    torch.compile(torch.matmul)(x.to("spyre"), w.to("spyre")).cpu()
    if both.on_card:
        assert torch.spyre.metrics()["hbm_bytes_written"] == 2 * x.numel()


def test_shared_heads_are_not_copied(both):
    def f(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    both.check(f, half(1, 8, 64, 64), half(1, 2, 64, 64), half(1, 2, 64, 64))
    assert "aten.clone" not in both.text and "aten.repeat" not in both.text


def test_compilations_are_counted_with_their_reasons(both):
    torch._dynamo.reset()
    name = f"report_me_{both.on_card}"

    def report_me(x):
        return torch.lgamma(x) + 1

    report_me.__code__ = report_me.__code__.replace(co_name=name)  # PyTorch keeps the latest compilations only
    compiled = torch.compile(report_me)
    for columns in (64, 128):
        compiled(half(4, columns).to("spyre"))
    found = [c for c in torch.spyre.compilations() if c["function"].startswith(name)]
    assert len(found) == 2, torch.spyre.compile_report()
    first, again = found
    assert first["recompile_reason"] is None
    assert "expected 64, actual 128" in again["recompile_reason"]
    assert [line.split(":")[0] for line in again["refused"]] == ["aten.lgamma.default"]
    assert "again because" in torch.spyre.compile_report()
