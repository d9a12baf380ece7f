"""What scripts may add to compilation: lowerings and decompositions of their own, hints, settings."""

import logging

import pytest
import torch
from torch_spyre import _inductor
from torch_spyre._inductor import accepted, config, hints

aten = torch.ops.aten


def half(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).half()


def pointwise(like, inner_fn):
    from torch._inductor import ir

    box = ir.Pointwise.create(
        device=like.get_device(), dtype=like.get_dtype(), inner_fn=inner_fn, ranges=list(like.get_size())
    )
    box.realize()
    return box


@pytest.fixture
def library():
    library = torch.library.Library("spyre_test", "FRAGMENT")
    yield library
    library._destroy()


def define(library, name):
    library.define(f"{name}(Tensor x) -> Tensor")
    library.impl(name, lambda x: x * 2, "CompositeExplicitAutograd")
    torch.library.register_fake(f"spyre_test::{name}", torch.empty_like, lib=library)
    return getattr(torch.ops.spyre_test, name)


def test_a_lowering_of_ones_own(both, library):
    from torch._inductor.virtualized import ops

    operator = define(library, "doubled")

    @_inductor.register_spyre_lowering(operator)
    def doubled(x):
        load = x.make_loader()
        return pointwise(x, lambda i: ops.add(load(i), load(i)))

    both.check(lambda x: operator(x) + 1, half(4, 96))
    assert "add v0 v0" in both.text


def test_a_lowering_may_use_an_operation_of_the_card(both, library):
    from torch._inductor.virtualized import ops

    operator = define(library, "sixfold")

    @_inductor.register_spyre_lowering(operator.default, name="silu")
    def sixfold(x):
        load = x.make_loader()
        return pointwise(x, lambda i: ops.silu(load(i)))

    found = torch.compile(lambda x: operator(x))(half(4, 96).to("spyre"))
    torch.testing.assert_close(found.cpu(), torch.nn.functional.silu(half(4, 96)), rtol=2e-2, atol=2e-2)


def test_a_lowering_that_declines_leaves_the_operator_to_eager(library):
    from torch_spyre._inductor.errors import Unsupported

    operator = define(library, "declined")

    @_inductor.register_spyre_lowering(operator)
    def declined(x):
        raise Unsupported("this one")

    found = torch.compile(lambda x: operator(x) + 1)(half(4, 96).to("spyre"))
    torch.testing.assert_close(found.cpu(), half(4, 96) * 2 + 1, rtol=2e-2, atol=2e-2)
    assert any("does not support: this one" in line for c in torch.spyre.compilations() for line in c["refused"])


def test_a_decomposition_of_ones_own_compiled(both, library):
    operator = define(library, "taken_apart")

    @_inductor.register_spyre_decomposition([operator])
    def taken_apart(x):
        return x + x

    both.check(lambda x: operator(x) + 1, half(4, 96))
    assert "aten.add.Tensor(arg0_1, arg0_1, 1)" in both.text


def test_a_decomposition_of_an_aten_operator_also_eager(monkeypatch):
    from torch_spyre import eager_forms
    from torch_spyre._inductor import decompositions

    original, form = dict(decompositions._ours), torch._decomp.decomposition_table[aten.celu.default]
    calls = []

    @_inductor.register_spyre_decomposition([aten.celu.default])
    def celu(x, alpha=1.0):
        calls.append(alpha)
        return torch.where(x > 0, x, alpha * torch.expm1(x / alpha))

    try:
        x = half(4, 96)
        expected = torch.celu(x)
        torch.testing.assert_close(torch.celu(x.to("spyre")).cpu(), expected, rtol=2e-2, atol=2e-2)
        assert len(calls) == 1
        found = torch.compile(torch.celu)(x.to("spyre"))
        torch.testing.assert_close(found.cpu(), expected, rtol=2e-2, atol=2e-2)
        assert len(calls) > 1
    finally:
        decompositions._ours.clear(), decompositions._ours.update(original), decompositions._table.cache_clear()
        eager_forms.replace(aten.celu.default, form)


def test_kernels_in_the_cache_know_what_was_registered(library):
    """The second lowering of an operator must not get the kernel of the first."""
    from torch._inductor.virtualized import ops

    operator = define(library, "changed")

    def run():
        torch._dynamo.reset()
        return torch.compile(lambda x: operator(x))(half(4, 96).to("spyre")).cpu()

    @_inductor.register_spyre_lowering(operator)
    def first(x):
        load = x.make_loader()
        return pointwise(x, lambda i: ops.add(load(i), load(i)))

    two = run()

    @_inductor.register_spyre_lowering(operator)
    def second(x):
        load = x.make_loader()
        return pointwise(x, lambda i: ops.mul(load(i), load(i)))

    assert not torch.equal(run(), two)


class TestHints:
    def test_a_name_may_be_declared_again(self, both):
        for rows in (48, 32):
            hints.declare_tensor_dim("AGAIN", rows)

            def f(x):
                with _inductor.spyre_hint(work_div={"AGAIN": 8}):
                    return x + 1

            torch.compile(f)(half(rows, 64).to("spyre"))
        assert both.text.count("hint={p0: 8}") == 2

    @pytest.mark.parametrize("size", [0, -3, 2.5, None])
    def test_sizes_that_are_none(self, size):
        with pytest.raises(ValueError, match="whole numbers from 1 on"):
            hints.declare_tensor_dim("BAD", size)

    def test_an_axis_may_be_several_dimensions(self, both, caplog):
        hints.declare_tensor_dim("FB", 4)
        hints.declare_tensor_dim("FS", 12)
        hints.declare_tensor_dim("FD", 64)
        x = hints.name_tensor_dims(half(48, 64).to("spyre"), ["FB", "FS", "FD"])

        def outer(x):
            with _inductor.spyre_hint(work_div={"FB": 4}):
                return x + 1

        def inner(x):
            with _inductor.spyre_hint(work_div={"FS": 4}):
                return x + 2

        torch.compile(outer)(x)
        assert "hint={p0: 4}" in both.text
        both.texts.clear()
        hints._say_once_that_it_is_inside.cache_clear()
        torch.compile(inner)(x)
        assert "hint=" not in both.text
        assert sum("FS is the inner part" in record.message for record in caplog.records) == 1

    def test_names_that_do_not_make_up_the_shape(self):
        hints.declare_tensor_dim("GB", 4)
        hints.declare_tensor_dim("GS", 13)
        with pytest.raises(ValueError, match=r"an axis of 48 is not GB \* GS = 52 long"):
            hints.name_tensor_dims(half(48), ["GB", "GS"])
        with pytest.raises(ValueError, match="have no size"):
            hints.name_tensor_dims(half(48), ["GB", "NEVER_DECLARED"])
        with pytest.raises(ValueError, match="1 names for a tensor of 2"):
            hints.name_tensor_dims(half(4, 4), ["GB"])
        with pytest.raises(ValueError, match="no axis is left"):
            hints.name_tensor_dims(half(4), ["GB", "GS"])

    def test_unknown_keys_are_carried_and_logged_once(self, both, caplog):
        hints._say_once_that_it_is_unknown.cache_clear()

        def f(x):
            with _inductor.spyre_hint(work_div={"UNKNOWN_M": 8}, prefetch={"depth": 2}):
                return (x + 1) * 2

        hints.declare_tensor_dim("UNKNOWN_M", 48)
        torch.compile(f)(half(48, 64).to("spyre"))
        assert "hint={p0: 8}" in both.text
        f(half(48, 64))
        assert sum("unknown prefetch" in record.message for record in caplog.records) == 1


class TestConfig:
    @pytest.mark.parametrize("name", accepted.WITHOUT_EFFECT)
    def test_every_name_can_be_set(self, name):
        default = accepted.WITHOUT_EFFECT[name][0]
        assert getattr(config, name) == default
        with config.patch({name: default}):
            assert getattr(config, name) == default

    def test_one_without_effect_says_so_once(self, caplog):
        accepted._said.discard("hbm_pool_planning")
        for _ in range(2):
            with config.patch(hbm_pool_planning=False):
                assert config.hbm_pool_planning is False
        assert config.hbm_pool_planning is True
        messages = [r.message for r in caplog.records if "hbm_pool_planning" in r.message]
        assert messages == ["torch_spyre._inductor.config.hbm_pool_planning has no effect: it is always so here"]

    def test_one_with_effect_says_nothing(self, caplog):
        with caplog.at_level(logging.INFO), config.patch(sencores=4):
            assert config.values()["sencores"] == 4 and config.compile_options().cores == 4
        assert not caplog.records

    def test_a_name_nobody_knows_is_an_error(self):
        with pytest.raises((AttributeError, KeyError)):
            config.no_such_setting = 1
