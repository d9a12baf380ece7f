"""The search itself: programs are what their seed says, judges see what is wrong, failures shrink, children may die."""

import pytest
import torch

from tests.programs import generator, rounding, shrink
from tests.programs.judges import Failure, bucket_of, first_difference, same_bits
from tests.programs.program import Input, Program, parse
from tests.programs.search import Search
from tests.programs.worker import Worker


def made(*statements, results=("t0",), dtype="float16", shape=(4, 64), fill="whole"):
    return Program((Input("a", fill, dtype, shape, 3),), statements, results)


@pytest.mark.parametrize("seed", range(1, 40))
def test_a_seed_writes_one_program_and_its_text_reads_back(seed):
    program = generator.generate(seed)
    assert generator.generate(seed) == program
    assert parse(str(program)) == program
    program.run("cpu")


def test_programs_cover_types_views_and_writes():
    programs = [generator.generate(seed) for seed in range(1, 200)]
    dtypes = {i.dtype for p in programs for i in p.inputs}
    assert dtypes >= {"float16", "bfloat16", "float32", "int64", "int32", "int8", "uint8", "bool", "float8_e4m3fn"}
    fills = {i.fill for p in programs for i in p.inputs}
    assert fills >= {"whole", "fraction", "wide", "nan", "inf", "large", "tiny", "listed"}
    extents = {e for p in programs for i in p.inputs for e in i.shape}
    assert extents >= {0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 129}
    said = "\n".join(s for p in programs for s in p.statements)
    for text in ("transpose(", "expand(", "reshape(", " @ ", "cat(", "stack(", "sort(", "sum(", "add_(", "] = ", "]["):
        assert text in said, text


def judged(program, change=lambda t: t):
    expected = program.run("cpu", calls=2)
    slack = rounding.slack(program, 2, expected)
    found = [change(expected[0].clone()), *expected[1:]]
    texts = (
        first_difference(*value, slack.beyond, slack.overflows)
        for value in zip(program.names, found, expected, slack.allowed, strict=True)
    )
    return next((t for t in texts if t), "")


def test_the_judge_sees_one_wrong_element():
    def spoil(t):
        t[3, 63] += 1
        return t

    program = made("t0 = a + 1")
    assert judged(program) == ""
    assert judged(program, spoil).startswith("t0: 1 of 256 elements, first at [3, 63]: ")


def test_the_judge_allows_rounding_and_no_more():
    program = made("t0 = torch.exp(a)")
    assert judged(program, lambda t: t * (1 + 2.0**-9)) == ""
    assert "elements" in judged(program, lambda t: t * 1.1)


def test_moves_and_whole_numbers_have_no_slack():
    for expression in ("a.t().clone()", "a * 3 - 1", "a.sum(0)", "(a @ a.t())[:2]", "a.amax(1)"):
        program = made(f"t0 = {expression}")
        allowed = rounding.slack(program, 1, program.run("cpu")).allowed
        assert not any(bool(a.any()) for a in allowed), expression


def test_a_lost_nan_is_wrong():
    program = made("t0 = a.clamp(-1, 1)", fill="nan")
    assert "expected nan" in judged(program, lambda t: t.nan_to_num(1))


def test_infinities_may_become_large_numbers_of_the_card_but_not_nan():
    program = made("t0 = a + 1", fill="inf")
    assert judged(program, lambda t: t.nan_to_num(posinf=65504, neginf=-65504)) == ""
    assert "nan, expected inf" in judged(program, lambda t: torch.where(t == torch.inf, torch.nan, t))


def test_products_of_infinities_are_the_cards_one_symbol():
    assert judged(made("t0 = a * a", fill="inf"), lambda t: torch.where(t == torch.inf, torch.nan, t)) == ""


def test_bits_are_bits():
    a = torch.tensor([1.0, float("nan")], dtype=torch.float16)
    assert same_bits(a, a.clone())
    assert not same_bits(a, torch.tensor([1.001, float("nan")], dtype=torch.float16))


def test_shrinking_keeps_only_what_fails():
    program = Program(
        (Input("a", "whole", "float32", (4, 64), 1, "[1:]"), Input("b", "whole", "float16", (64,), 2)),
        ("t0 = a + 1", "t1 = t0 * 2", "t2 = t1 - b"),
        ("t0", "t1", "t2"),
    )
    small = shrink.shrink(program, lambda p: any("* 2" in s for s in p.statements))
    assert small.statements == ("t1 = a * 2",) and small.results == ("t1",)
    assert [(i.name, i.dtype, i.shape, i.view) for i in small.inputs] == [("a", "float16", (1, 1), "")]


def test_a_bucket_is_what_failures_of_one_cause_share():
    a, b = Failure("eager error", "RuntimeError: node 'buf3' has 64 rows"), Failure(
        "eager error", "RuntimeError: node 'buf12' has 7 rows"
    )
    assert bucket_of(a, made("t0 = a + 1")) == bucket_of(b, made("t0 = a * 2"))
    wrong = Failure("compiled wrong", "t0: 3 of 4 elements")
    assert bucket_of(wrong, made("t0 = a.clamp(-1, 2) + 1")) == "compiled wrong: + clamp of float16"
    assert bucket_of(wrong, made("t0 = a.t()", dtype="int32")) == "compiled wrong: t of int32"


class Scripted(Worker):
    """Fails whenever a program multiplies."""

    def __init__(self):
        super().__init__()

    def ask(self, program, setting="", judges=None):
        wrong = any("* 2" in s for s in program.statements)
        return [Failure("eager wrong", "t0: 1 of 2 elements")] if wrong else []


def test_a_failure_becomes_a_file_once(tmp_path, monkeypatch):
    monkeypatch.setattr(generator, "generate", lambda seed: made("t0 = a + 1", "t1 = t0 * 2", results=("t1",)))
    search = Search(Scripted(), Scripted(), tmp_path, shrink_seconds=10)
    search.try_seed(1)
    search.try_seed(2)
    (file,) = tmp_path.iterdir()
    assert parse(file.read_text()).statements == ("t1 = a * 2",)
    assert search.kinds == {"eager wrong": 2} and search.buckets == {"eager wrong: * of float16": 2}
    again = Search(Scripted(), Scripted(), tmp_path, shrink_seconds=10)
    again.try_seed(1)
    assert len(list(tmp_path.iterdir())) == 1 and again.buckets.keys() == again.known


class Answers(Worker):
    """Gives what it is told, as does its child with exact sums."""

    def __init__(self, *kinds, exact=()):
        super().__init__()
        self.kinds = kinds
        if exact is not None:
            self.exact_sums = Answers(*exact, exact=None)

    def _ask(self, program, setting="", judges=None):
        return [Failure(kind, "t0: 1 of 2 elements") for kind in self.kinds]


def test_other_bits_are_a_failure_unless_exact_sums_make_them_equal():
    def kinds(worker):
        return [f.kind for f in worker.ask(made("t0 = a.sum(0)"))]

    assert kinds(Answers("bits wrong")) == []
    assert kinds(Answers("bits wrong", "replay wrong")) == ["replay wrong"]
    for still in ("bits wrong", "eager wrong", "crash", "hang"):
        assert kinds(Answers("bits wrong", exact=[still])) == ["bits wrong"]
    assert kinds(Answers("settings wrong", "compiled wrong")) == ["settings wrong", "compiled wrong"]


def test_a_crash_and_a_hang_are_answers():
    with Worker(seconds=60) as worker:
        (crash,) = worker.ask(made("t0 = __import__('os').abort()"))
        assert crash.kind == "crash" and "exit -6" in crash.message
        for forever in ("__import__('time').sleep(1000)", "sum(iter(int, 1))"):
            worker.seconds = 60
            assert worker.ask(made("t0 = a + 1"), judges=("eager",)) == []
            worker.seconds = 1
            (hang,) = worker.ask(made(f"t0 = {forever}"))
            assert hang.kind == "hang"
