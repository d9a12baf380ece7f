"""Random programs, compiled, against the CPU: the same answer, or an operator on the CPU that was counted.

    SPYRE_RANDOM_PROGRAMS=500 SPYRE_RANDOM_SEED=1000 pytest tests/inductor/test_random_programs.py

runs seeds 1000 to 1499. A failing program is shrunk and printed; it belongs in FOUND below once it is understood.
"""

import os

import pytest
import torch

from tests.inductor import harness, random_programs
from tests.inductor.random_programs import Input, Program

H, F = torch.float16, torch.float32

FIRST = int(os.environ.get("SPYRE_RANDOM_SEED", "1"))
COUNT = int(os.environ.get("SPYRE_RANDOM_PROGRAMS", "24"))


@pytest.fixture
def card(monkeypatch):
    return harness.use_compiler(monkeypatch)


def failure_of(program: Program) -> Exception | None:
    torch._dynamo.reset()
    try:
        program.check(*program.run("spyre", lambda f: torch.compile(f, fullgraph=True)))
    except Exception as error:  # whatever it is, the shrunk program must show it
        return error
    return None


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_random_program_gives_the_answer_of_the_cpu(card, seed):
    program = random_programs.generate(seed)
    failure = failure_of(program)
    if failure is None:
        return
    small = random_programs.shrink(program, lambda p: type(failure_of(p)) is type(failure))
    pytest.fail(f"{failure_of(small) or failure}\n{small}", pytrace=False)


def test_the_same_seed_writes_the_same_program():
    assert str(random_programs.generate(7)) == str(random_programs.generate(7))


def test_the_judge_sees_one_wrong_element():
    program = Program(0, [Input("a", torch.ones(4, 64, dtype=H))], ["t0 = a + 1"], ["t0"], {"t0": True})
    results, bases = program.run("cpu")
    program.check(results, bases)
    results[0][3, 63] = 3
    with pytest.raises(AssertionError, match=r"t0: 1 of 256 elements, first at \[3, 63\]: 3.0, expected 2.0"):
        program.check(results, bases)


def test_the_judge_allows_rounding_and_no_more():
    program = Program(0, [Input("a", torch.ones(4, 64, dtype=H))], ["t0 = torch.exp(a)"], ["t0"], {"t0": False, "a": True})
    results, bases = program.run("cpu")
    program.check([results[0] * (1 + 2.0**-9)], bases)
    with pytest.raises(AssertionError, match="more than rounding explains"):
        program.check([results[0] * 1.05], bases)


def test_shrinking_keeps_only_what_fails():
    program = Program(
        0,
        [Input("a", torch.ones(4)), Input("b", torch.ones(4))],
        ["t0 = a + 1", "t1 = t0 * 2", "t2 = t1 - b"],
        ["t0", "t1", "t2"],
    )
    small = random_programs.shrink(program, lambda p: any("* 2" in s for s in p.statements))
    assert small.statements == ["t0 = a + 1", "t1 = t0 * 2"] and [i.name for i in small.inputs] == ["a"]


def whole(*shape, dtype=H):
    return torch.randint(-4, 5, shape, generator=torch.Generator().manual_seed(0)).to(dtype)


#: Programs that once gave a wrong answer, stopped the card, or were refused without need: inputs, views, statements,
#: results.
FOUND = {
    "one_column_written_in_place": ({"a": whole(4, 3)}, {}, ["a[:, 0:3:3].clamp_(1)"], ["a * 1"]),
    "one_column_written_in_place_float32": ({"a": whole(4, 3, dtype=F)}, {}, ["a[:, 0:3:3].clamp_(1)"], ["a * 1"]),
    "three_batch_axes": ({"a": whole(3, 3, 2, 2, 64)}, {}, [], ["a.clamp(-1, 1) @ a.clamp(-1, 1).transpose(-1, -2)"]),
    "three_row_axes": ({"a": whole(3, 2, 2, 64), "b": whole(64, 64)}, {}, [], ["a.clamp(-1, 1) @ b.clamp(-1, 1)"]),
    "copy_of_an_expanded_input": (
        {"a": whole(128) > 0},
        {"a": ".expand(5, 128)"},
        ["t0 = a.to(torch.int64)"],
        ["t0", "t0.amin(0)"],
    ),
    "sum_along_an_expanded_axis": ({"a": whole(64)}, {"a": ".expand(5, 64)"}, [], ["a.sum(0)", "a.mean((0, 1)) * 64"]),
    "indices_from_the_end": (
        {"a": whole(4, 64), "i": torch.tensor([-1, 2, -4])},
        {},
        ["t0 = a[i]", "a[i] = t0 + 1"],
        ["t0"],
    ),
    "layer_norm_of_single_elements": ({"a": whole(4, 32, 1)}, {}, [], ["torch.nn.functional.layer_norm(a, (1,))"]),
    "a_tensor_written_in_the_program": (
        {"a": whole(4, 2)},
        {},
        ["t0 = torch.tensor([1, 2], dtype=torch.float16, device=a.device)"],
        ["a + t0"],
    ),
    "rows_moved_within_a_tensor": (
        {"a": whole(4, 64), "i": torch.tensor([1, 0])},
        {},
        ["t0 = a * 2", "t0.index_copy_(0, i, t0[:2].clone())"],
        ["t0"],
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_program_that_once_failed(card, name):
    bases, views, statements, results = FOUND[name]
    statements = [*statements, *(f"r{i} = {r}" for i, r in enumerate(results))]
    inputs = [Input(n, base, views.get(n, "")) for n, base in bases.items()]
    program = Program(0, inputs, statements, [f"r{i}" for i in range(len(results))])
    failure = failure_of(program)
    assert failure is None, f"{failure}\n{program}"
    assert card.texts, "nothing was compiled for the card"
