"""Sizes that change from call to call: one program serves them all, and what lies behind a size is never looked at."""

import pytest
import torch
from torch._dynamo.utils import counters

from tests.inductor.harness import assert_near

pytestmark = pytest.mark.usefixtures("on_the_card_only")

#: Around the ends of sticks, and far from the size that the program is compiled for.
LENGTHS = (37, 2, 63, 64, 65, 130, 700)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    counters.clear()


def half(*size):
    return torch.randn(*size).half()


def programs() -> int:
    return counters["stats"]["unique_graphs"]


def judge(function, make, lengths=LENGTHS, error=2e-3):
    """Runs one compiled function at many lengths; returns how many programs that took."""
    torch.manual_seed(0)
    compiled = torch.compile(function, dynamic=True)
    for length in lengths:
        given = make(length)
        with torch.no_grad():
            found = compiled(*(g.to("spyre") for g in given))
        expected = function(*(g.float() if g.is_floating_point() else g for g in given)).float()
        assert found.shape == expected.shape
        torch.testing.assert_close(found.cpu().float(), expected, rtol=1e-2, atol=error * expected.abs().max().item())
    return programs()


WEIGHT, TABLE = half(128, 96), half(50, 64)
ONE_PROGRAM = {
    "elements": (lambda x: x * 2 + 1, lambda n: (half(1, n, 128),)),
    "sum": (lambda x: x.float().sum(1), lambda n: (half(1, n, 128),)),
    "mean": (lambda x: x.mean(1), lambda n: (half(1, n, 128),)),
    "mean along sticks": (lambda x: x.mean(-1), lambda n: (half(3, n),)),
    "max": (lambda x: x.amax(-1), lambda n: (half(3, n) - 9,)),
    "min": (lambda x: x.amin(-1), lambda n: (half(3, n) + 9,)),
    "argmax": (lambda x: x.argmax(-1), lambda n: (half(3, n) - 9,)),
    "any": (lambda x: (x > 2).any(-1), lambda n: (half(3, n),)),
    "all": (lambda x: (x > -9).all(-1), lambda n: (half(3, n),)),
    "softmax": (lambda x: torch.softmax(x, -1), lambda n: (half(3, n),)),
    "softmax of float32": (lambda x: torch.softmax(x, -1), lambda n: (torch.randn(3, n),)),
    "rows of a product": (lambda x, w: x @ w, lambda n: (half(1, n, 128), WEIGHT)),
    "summed by a product": (lambda x, w: x @ w, lambda n: (half(5, n) / n**0.5, half(n, 96))),
    "columns of a product": (lambda x, w: x @ w, lambda n: (half(5, 64) / 8, half(64, n))),
    "embedding": (torch.nn.functional.embedding, lambda n: (torch.randint(0, 50, (1, n)), TABLE)),
    "the last row": (lambda x: x[:, -1] * 2, lambda n: (half(1, n, 128),)),
    "a row more": (lambda x, y: torch.cat([x, y], 1), lambda n: (half(1, n, 128), half(1, 1, 128))),
}


@pytest.mark.parametrize("name", ONE_PROGRAM)
def test_one_program_for_all_lengths(name):
    assert judge(*ONE_PROGRAM[name]) == 1


@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_open_lengths(causal):
    def attend(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def make(n):
        given = [half(1, 2, n, 64) for _ in range(3)]
        for tensor in given:
            torch._dynamo.mark_static(tensor, 3)
        return given

    # Every size was left open, heads included: room for all of them would be too much, so that it grows with the call.
    assert judge(attend, make) <= 4


def test_one_query_of_open_keys():
    def attend(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    assert judge(attend, lambda n: (half(1, 2, 1, 64), half(1, 2, n, 64), half(1, 2, n, 64))) <= 4


def test_what_lies_behind_is_not_looked_at():
    """Memory with room is used again as it is: numbers of a longer call lie behind a shorter one."""
    add, fold = (torch.compile(f, dynamic=True) for f in (lambda x: x + 1, lambda x: x.amax(-1)))
    for length in (700, 130, 65, 2):
        x = torch.full((3, length), float(length)).half()
        with torch.no_grad():
            assert torch.equal(fold(add(x.to("spyre"))).cpu(), (x + 1).amax(-1))


def test_results_have_room_and_look_as_usual():
    compiled = torch.compile(lambda x: x * 2, dynamic=True)
    for length in (37, 5):
        x = torch.randint(-9, 9, (2, length, 64)).half()
        with torch.no_grad():
            found = compiled(x.to("spyre"))
        assert torch.equal(found.cpu(), x * 2)
        assert torch.equal((found + 1)[1, 2:].cpu(), (x * 2 + 1)[1, 2:])
        assert torch.equal(found.clone().cpu(), x * 2) and torch.equal(
            found.transpose(0, 1).cpu(), (x * 2).transpose(0, 1)
        )


def test_a_size_beyond_the_capacity_is_compiled_anew():
    assert judge(lambda x: x.amax(-1), lambda n: (half(3, n),), lengths=(37, 1000, 1023, 1024, 1500)) == 2


def test_programs_are_made_for_ranges_when_first_needed():
    from torch_spyre._inductor import kernels

    compiled = torch.compile(lambda x: x.amax(-1), dynamic=True)
    for length, ranges in ((37, 1), (64, 1), (65, 2), (2, 2), (700, 3)):
        x = half(3, length)
        with torch.no_grad():
            assert_near(compiled(x.to("spyre")), x.amax(-1))
        (kernel,) = (k for k in kernels.loaded if "amax" in k.name)
        assert len(kernel.programs()) == ranges
    assert "a program each for" in torch.spyre.compile_report()
    assert " <= 64; " in torch.spyre.compile_report()


def test_a_short_call_moves_few_bytes():
    """A program for a range: its loops end there, wherever memory ends."""
    moved = {}
    compiled = torch.compile(lambda x: torch.softmax(x * 2, -1), dynamic=True)
    for length in (1000, 60):
        x = half(32, length).to("spyre")
        with torch.no_grad():
            for _ in range(2):
                torch.spyre.reset_metrics()
                x = compiled(x)
        metrics = torch.spyre.metrics()
        moved[length] = metrics["hbm_bytes_read"] + metrics["hbm_bytes_written"]
    # A sixteenth, and perhaps a copy of its input; a program over the whole capacity would move as much.
    assert moved[60] < moved[1000] / 4


def test_rows_that_lie_close_have_no_room():
    """A part of rows that does not leave memory behind it: such a view is compiled for as it is."""
    compiled = torch.compile(lambda x: x.sum(-1), dynamic=True)
    for length in (270, 37, 280):
        x = torch.randint(-3, 4, (6, 280)).half()
        with torch.no_grad():
            assert torch.equal(compiled(x.to("spyre")[:, :length]).cpu(), x[:, :length].float().sum(-1).half())


def test_a_range_is_the_capacity():
    compiled = torch.compile(lambda x: x.sum(0))
    for length in (100, 17, 128):
        x = half(length, 64) / 16
        torch._dynamo.mark_dynamic(given := x.to("spyre"), 0, min=2, max=128)
        with torch.no_grad():
            torch.testing.assert_close(compiled(given).cpu(), x.float().sum(0).half(), rtol=2e-2, atol=4e-2)
    assert programs() == 1


def test_a_size_that_changes_is_open_from_the_second_on():
    compiled = torch.compile(lambda x: torch.softmax(x, -1))
    for length in (37, 5, 200, 64):
        x = half(3, length)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x.to("spyre")).cpu(), torch.softmax(x, -1), rtol=2e-2, atol=1e-3)
    assert programs() == 2


@pytest.mark.parametrize(
    "function", [lambda x: x.flip(1), lambda x: x.cumsum(1), lambda x: x.var(1)], ids=["flip", "cumsum", "var"]
)
def test_operators_that_depend_on_a_length_are_compiled_for_each(function):
    torch.manual_seed(0)
    compiled = torch.compile(function, dynamic=True)
    for length in (37, 5, 64):
        x = torch.randn(3, length)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x.to("spyre")).cpu(), function(x), rtol=1e-4, atol=1e-5)
    assert programs() == 3


def test_generate_takes_few_programs():
    """Stock ``generate`` with its default cache: one for prompts, one for the tokens after them, and perhaps one more
    where a cache comes to lie otherwise."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        eos_token_id=None,
        pad_token_id=0,
    )
    judge = LlamaForCausalLM(config).eval()
    model = LlamaForCausalLM(config).eval()
    model.load_state_dict(judge.state_dict())
    model = model.half().to("spyre")
    model.forward = torch.compile(model.forward, dynamic=True)
    for length in (37, 5, 130):
        prompt = torch.randint(1, 512, (1, length))
        expected = judge.generate(prompt, max_new_tokens=5, do_sample=False)
        found = model.generate(prompt.to("spyre"), max_new_tokens=5, do_sample=False)
        assert torch.equal(found.cpu(), expected)
    assert programs() <= 3
