"""torch_spyre.compare: a model on the card beside the CPU, healthy and with planted faults, found by name."""

import json
import runpy
from pathlib import Path

import jsonschema
import pytest
import torch
import torch_spyre
from torch import nn
from torch.nn import functional as F
from torch_spyre._compare import formats
from torch_spyre._compare.judge import CompareError
from torch_spyre._compare.values import read

import tests.browser

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs/spec/schema/compare_facts.schema.json").read_text())
TOKENS = torch.arange(3, 11).reshape(1, 8)


def llama(dtype=torch.float16, layers=2):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 2, "num_key_value_heads": 1}
    return LlamaForCausalLM(LlamaConfig(**sizes, num_hidden_layers=layers, vocab_size=128)).eval().to(dtype)


def granite(dtype):
    from transformers import GraniteConfig, GraniteForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 2, "num_key_value_heads": 1}
    return GraniteForCausalLM(GraniteConfig(**sizes, num_hidden_layers=1, vocab_size=128)).eval().to(dtype)


def bert(dtype):
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 2, "vocab_size": 128}
    return BertModel(BertConfig(**sizes, num_hidden_layers=1)).eval().to(dtype)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(64, 128), nn.Linear(128, 64)

    def forward(self, x):
        return self.down(F.silu(self.up(x)))


def mlp(dtype=torch.float16):
    torch.manual_seed(0)
    return nn.Sequential(Mlp(), Mlp()).eval().to(dtype)


def on_card(function):
    """A model of one function."""
    model = nn.Module()
    model.forward = function
    return model


@pytest.fixture
def x():
    return torch.randn(8, 64, generator=torch.Generator().manual_seed(1)).half()


def check(report):
    """What holds of every report, right or wrong."""
    facts = json.loads(report.to_json())
    jsonschema.validate(facts, SCHEMA)
    assert str(report).splitlines()[0] == report.answer == facts["answer"]
    assert report.ok == facts["ok"]
    return report


class TestHealthyModels:
    @pytest.mark.parametrize(
        ("make", "dtype", "reference"),
        [
            (llama, torch.float16, "cpu-fp32"),
            (granite, torch.bfloat16, "cpu-fp32"),
            (bert, torch.bfloat16, "cpu"),
            (bert, torch.float32, "cpu-fp64"),
        ],
        ids=["llama-fp16", "granite-bf16", "bert-bf16-cpu", "bert-fp32-fp64"],
    )
    def test_eager(self, make, dtype, reference):
        report = check(torch_spyre.compare(make(dtype).to("spyre"), {"input_ids": TOKENS}, reference))
        assert report.ok, report
        assert report.answer.startswith(
            f"all {len(report.operators)} operators of {len(report.modules)} modules within"
        )
        # The error is there, and rounding explains it: most of it in 16 bits, and the bound in 32 has room.
        last = report.modules[-1]
        assert last.path == "(model)" and 0 < last.accumulated < last.bound
        if dtype.itemsize == 2:
            assert 0.4 < last.accumulated / last.rounding < 2.5

    @pytest.mark.parametrize("make", [llama, bert])
    def test_compiled(self, make):
        model = torch.compile(make(torch.float16).to("spyre"))
        report = check(torch_spyre.compare(model, {"input_ids": TOKENS}))
        assert report.ok and report.compiled, report
        named = {row.operator for row in report.operators if row.own is not None}
        assert named & {"aten.mm.default", "aten.addmm.default"} and len(named) > 5
        assert all(row.source for row in report.operators if row.operator.startswith("aten.")), report.operators
        assert report.modules[-1].own <= report.modules[-1].own_bound

    def test_a_compiled_part(self, x):
        model = mlp().to("spyre")
        model[1].compile()
        report = check(torch_spyre.compare(model, x))
        assert report.ok and report.compiled
        assert {row.kernel for row in report.operators} != {""}

    @pytest.mark.filterwarnings("ignore::torch_spyre.FallbackWarning")
    def test_a_compiled_program_that_writes_to_its_buffers_and_visits_the_cpu(self, x):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.up = nn.Linear(64, 64)
                self.register_buffer("seen", torch.zeros(8, 64))

            def forward(self, x):
                self.seen += torch.special.i1(self.up(x))
                self.seen[2:4].mul_(2)
                return torch.softmax(self.seen * 3 + x, -1), self.seen.argmax(-1)

        report = check(torch_spyre.compare(torch.compile(Net().half().to("spyre")), x))
        assert report.ok and len({row.kernel for row in report.operators}) == 2, report
        assert "aten::special_i1.out ran on the CPU, and is not judged" in report.notes

    def test_what_is_not_judged_is_said(self, x):
        report = check(torch_spyre.compare(torch.compile(mlp().to("spyre"), dynamic=True), x))
        assert not report.ok and report.answer.startswith("nothing was judged")

    def test_a_reference_of_other_precision_counts_what_rounding_the_weights_costs(self, x):
        model = mlp(torch.float32)
        card = mlp(torch.float32).half().to("spyre")
        alone, with_weights = torch_spyre.compare(card, x), check(torch_spyre.compare(card, x, reference=model))
        assert alone.ok and with_weights.ok, with_weights
        assert with_weights.modules[-1].accumulated > alone.modules[-1].accumulated

    def test_writes_in_place_and_views_keep_the_reference(self, x):
        def forward(x):
            kept = torch.zeros(2, 8, 64, dtype=x.dtype, device=x.device)
            kept[1] = x
            kept[:, 2:4] += 3
            kept.view(16, 64)[5].mul_(2)
            return {"twice": (kept + kept, kept.argmax(-1))}

        report = check(torch_spyre.compare(on_card(forward), x))
        assert report.ok, report
        assert report.modules[-1].accumulated < 2e-3
        assert max(row.accumulated for row in report.operators) < 2e-3

    def test_what_visits_the_cpu_keeps_the_reference(self, x):
        big = 1000.0  # what is lost by x + big is not lost by the reference

        report = check(torch_spyre.compare(on_card(lambda x: (x + big).cpu().to("spyre") - big), x))
        assert report.ok, report
        assert report.modules[-1].accumulated > 0.1 and report.modules[-1].rounding > 0.1

    def test_memory_is_that_of_live_activations(self, x):
        report = torch_spyre.compare(nn.Sequential(*(nn.Linear(64, 64) for _ in range(12))).half().to("spyre"), x)
        one = 8 * 64 * 4
        assert report.ok and report.held_bytes <= 2 * 4 * one  # of 12 layers


class TestFaults:
    @pytest.fixture
    def wrong_silu(self):
        """The card's silu, wrong in one element of its second call."""
        library, calls = torch.library.Library("aten", "IMPL"), []

        def wrong(x):
            calls.append(x)
            y = x * torch.sigmoid(x)
            if len(calls) == 2:
                y.view(-1)[7:8].add_(0.25)
            return y

        library.impl("silu", wrong, "PrivateUse1")
        yield
        library._destroy()

    @pytest.mark.filterwarnings("ignore:.*verrid.*")
    def test_an_operator(self, wrong_silu, x):
        report = check(torch_spyre.compare(mlp().to("spyre"), x))
        found = report.first_operator
        assert (found.operator, found.module) == ("aten.silu.default", "1")
        assert found.source.startswith("test_compare.py:") and found.own.index == (0, 7)
        assert abs(found.own.error - 0.25) < 0.01
        assert report.answer.startswith("first operator out of bound: aten.silu.default in 1 (test_compare.py:")
        assert [row.operator for row in report.operators if row.own.is_out] == ["aten.silu.default"]

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
    def test_a_weight(self, x, dtype):
        model, card = mlp(dtype), mlp(dtype).to("spyre")
        with torch.no_grad():
            card[1].up.weight[3, 5] += 0.01
        report = check(torch_spyre.compare(card, x.to(dtype), reference=model))
        assert not report.ok
        assert [row.name for row in report.weights] == ["1.up.weight"]
        assert report.weights[0].differ == 1 and report.weights[0].off.index == (3, 5)
        assert report.answer.startswith("first weight that differs: 1.up.weight, in 1 of 8192 elements, at [3, 5]")

    def test_an_overflow(self, x):
        report = check(torch_spyre.compare(on_card(lambda x: torch.exp(x * 0 + 30) * 2), x))
        found = report.first_operator
        assert found.operator == "aten.exp.default" and "overflow" in found.note
        assert found.own.card != found.own.card and found.own.reference > 1e13

    def test_a_kernel_and_its_operator(self, x, monkeypatch):
        from torch_spyre._inductor import kernels

        compiler, changed = kernels.compile_graph, []

        def wrong(text):
            other = text.replace("aten.silu.default(", "aten.relu.default(").replace("= silu ", "= relu ")
            changed.append(other != text)
            return compiler(other)

        monkeypatch.setattr(kernels, "compile_graph", wrong)
        monkeypatch.setattr(kernels, "compiler_id", lambda: "wrong silu")
        report = check(torch_spyre.compare(torch.compile(mlp().to("spyre")), x))
        assert any(changed)
        found = report.first_operator
        assert found.operator == "aten.silu.default" and found.source.startswith("test_compare.py:")
        assert found.kernel and not report.modules[-1].own <= report.modules[-1].own_bound
        assert {row.operator for row in report.operators if row.own and row.own.is_out} == {"aten.silu.default"}

    @pytest.mark.filterwarnings("ignore:.*verrid.*")
    def test_a_choice(self, x):
        library = torch.library.Library("aten", "IMPL")
        library.impl(
            "argmax", lambda x, dim=None, keepdim=False: torch.ones(8, dtype=torch.int64).to("spyre"), "PrivateUse1"
        )
        try:
            report = check(torch_spyre.compare(on_card(lambda x: x.argmax(-1)), x))
        finally:
            library._destroy()
        assert report.first_operator.operator == "aten.argmax.default"


class TestRefusals:
    @pytest.mark.parametrize(
        ("model", "inputs", "reference", "says"),
        [
            (lambda: mlp(), torch.ones(8, 64), "cpu-fp32", "not on the card: found 0.up.weight on cpu"),
            (lambda: mlp().to("spyre"), None, "cpu-fp32", "found no inputs"),
            (lambda: mlp().to("spyre"), torch.ones(8, 64), "gpu", "found reference='gpu'"),
            (lambda: F.silu, torch.ones(8, 64), "cpu-fp32", "found a builtin_function_or_method|found a function"),
            (lambda: mlp().to("spyre"), torch.ones(8, 64), nn.Linear(2, 2), "the reference is another model"),
            (lambda: nn.Sequential(nn.Linear(64, 64), nn.Dropout()).to("spyre"), torch.ones(8, 64), "cpu-fp32",
             r"found 1 in training mode(.|\n)*model.eval\(\)"),
            (lambda: on_card(lambda x: F.dropout(x, 0.1)), torch.ones(8, 64), "cpu-fp32",
             r"random operator aten.*test_compare.py"),
            (lambda: torch.compile(on_card(lambda x: F.dropout(x, 0.1))), torch.ones(8, 64), "cpu-fp32",
             r"random operator aten.*the compiled program"),
        ],
    )  # fmt: skip
    def test_says_what_to_do(self, model, inputs, reference, says):
        with pytest.raises(CompareError, match=says):
            torch_spyre.compare(model(), inputs, reference)

    def test_hooks_are_gone_afterwards(self, x):
        model = mlp().to("spyre")
        torch_spyre.compare(model, x)
        with pytest.raises(RuntimeError):
            torch_spyre.compare(model, x[:, :3])
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


class TestLostDigits:
    """The example of docs/numerics.md."""

    @pytest.fixture
    def example(self, capsys, monkeypatch):
        monkeypatch.setattr("sys.argv", ["which_layer.py"])
        return runpy.run_path(str(ROOT / "examples/which_layer.py")), capsys.readouterr().out

    def test_the_page_shows_what_the_example_prints(self, example):
        assert example[1] in (ROOT / "docs/numerics.md").read_text()

    def test_a_norm_that_cancels_is_named_and_no_operator_is(self, example):
        report = example[0]["report"]
        row, before = report.most_lost
        assert report.ok and (row.path, row.kind) == ("1", "Norm")
        assert before < 1e-3 and row.accumulated > 0.1 and 0.5 < row.accumulated / row.rounding < 2

    def test_where_it_makes_nan_the_module_is_out_of_bound(self, example):
        model, norm = nn.Sequential(nn.Linear(64, 64), example[0]["Norm"]()).half(), "1"
        with torch.no_grad():
            model[0].bias += 20
        x = torch.randn(16, 64, generator=torch.Generator().manual_seed(0)).half()
        report = check(torch_spyre.compare(model.to("spyre"), x))
        assert report.first_operator is None and report.first_module.path == norm
        assert report.answer.startswith(
            "first module out of bound: 1 has NaN or infinity where the reference has numbers"
        )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_rounding_is_that_of_the_card(dtype):
    values = torch.cat([torch.randn(4096) * 10.0**e for e in range(-9, 5)] + [torch.tensor([0.0, float("inf")])])
    values = values.clamp(-6e4, 6e4) if dtype == torch.float16 else values
    sent = values.to(dtype)
    assert torch.equal(read(sent.to("spyre")), formats.rounded(sent.float(), dtype))


class TestThePage:
    def test_shows_what_was_found(self, tmp_path, x):
        report = torch_spyre.compare(on_card(lambda x: torch.exp(x * 0 + 30) * 2), x)
        page = tmp_path / "report.html"
        report.save(page)
        driver = tests.browser.start()
        try:
            driver.get(page.as_uri())
            answer = driver.find_element("id", "answer").text
            operators = driver.find_elements("css selector", "#operators tbody tr")
            shown = [row.get_attribute("data-operator") for row in operators]
            driver.find_element("css selector", "[data-filter=all]").click()
            everything = len(driver.find_elements("css selector", "#operators tbody tr"))
            recorded = driver.execute_script("return JSON.parse(document.getElementById('facts').textContent)")
            problems = driver.get_log("browser")
        finally:
            driver.quit()
        assert answer == report.answer
        assert shown == [row.operator for row in report.operators if row.own.is_out] and "aten.exp.default" in shown
        assert everything == len(report.operators)
        assert recorded == json.loads(report.to_json())
        assert problems == []
