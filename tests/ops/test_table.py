"""Every op function of spyre/ops/table.def has a case, in every format that it takes."""

import pathlib

import pytest

from .test_movement import COPIED

HERE = pathlib.Path(__file__).parent
# `any` format: those whose elements fill whole bytes and whole sticks. Arithmetic formats of shuffle differ from one
# another in nothing but the size of an element.
ANY = {"identity": set(COPIED), "shuffle": {"SEN169_FP16", "IEEE_FP32", "SEN143_FP8"}}


def test_every_op_function_has_a_case_in_every_format(card, request):
    files = {path.name for path in HERE.glob("test_*.py")}
    if not files <= request.config.spyre_op_files:
        pytest.skip("only part of the sweep was collected")
    have = set(request.config.spyre_op_cases)
    wanted = set()
    for row in card.table():
        wanted |= {(row["function"], fmt) for fmt in ANY.get(row["base"], row["input_formats"])}
    assert wanted - have == set(), "op functions without a case"
    assert {function for function, _ in have} == {function for function, _ in wanted}, "cases of unknown op functions"
