"""Inputs that must fail, each with the message it must give. One file per source that refuses, named after it.

    # RUN: spyre-bundle %s -o %t      the command, for the whole file; %s is the input, %t a folder
    kernel ...                        a text that is fine, and really is: the base of what follows
    # BASE: tests/corpus/...          or a file instead
    # ---
    # CHANGE: old => new              the base with the first `old` replaced; several are applied one by one
    # ERROR: text                     refused (exit code 2) with this message
    # NOTE: text                      and with this further down
    # ---
    graph ...                         or a text of its own, with the error at the end of the line it names
      input x : real[4]               # ERROR: 'real' is not an element type of the card

Blanks count as one. Where the message names a line of the input, ERROR stands on that line or a neighbour.
"""

import re
import shlex
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from scripts import list_messages
from tests.text.test_text import squeeze, tools

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DIRECTIVE = re.compile(r"#\s*(RUN|BASE|CHANGE|ERROR|NOTE):[ ]*(.*)")


class Case(NamedTuple):
    line: int  # where it starts in its file
    command: str
    text: str
    errors: list[str]
    notes: list[str]
    error_line: int | None  # in `text`, where that is the file's own


def changed(base: str, changes: list[str]) -> str:
    for change in changes:
        old, arrow, new = change.partition("=>")
        old, new = old.strip(), new.strip()
        assert arrow and old in base, f"CHANGE: {change}: the base has no '{old}'"
        base = base.replace(old, new, 1)
    return base


def cases_of(path: Path) -> list[Case]:
    command, base, cases, line = None, None, [], 1
    for section in re.split(r"^# ---.*\n", path.read_text(), flags=re.MULTILINE):
        directives = DIRECTIVE.findall(section)
        say = defaultdict(list)
        for kind, text in directives:
            say[kind].append(text.strip())
        command = (say["RUN"] or [command])[0]
        assert command, f"{path}: the first section says what to RUN"
        own_text = re.sub(r"#.*", "", section).strip() != ""
        ways = own_text + bool(say["CHANGE"]) + bool(say["BASE"])
        assert ways == 1, f"{path}:{line}: a text of its own, a BASE, or a CHANGE of the base"
        if say["BASE"]:
            base = text = (ROOT / say["BASE"][0]).read_text()
            at = None
        elif own_text:
            # The file's line numbers hold in the text, too.
            text = "\n" * (line - 1) + section
            at = next((i for i, row in enumerate(text.splitlines(), 1) if "# ERROR:" in row), None)
        else:
            assert base is not None and say["ERROR"], f"{path}:{line}: a CHANGE needs a base before it, and an ERROR"
            text, at = changed(base, say["CHANGE"]), None
        if own_text and not say["ERROR"]:
            base = re.sub(r"#.*", "", section)
        cases.append(Case(line, command, text, say["ERROR"], say["NOTE"], at))
        line += section.count("\n") + 1
    assert any(case.errors for case in cases), f"{path}: at least one ERROR"
    return cases


FILES = sorted(p for p in HERE.rglob("*") if p.suffix in (".ir", ".opspec"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(HERE)))
def test_refused_with_its_message(path, tmp_path):
    problems = []
    for number, case in enumerate(cases_of(path)):
        source = tmp_path / f"{number}{path.suffix}"
        source.write_text(case.text)
        program, *arguments = shlex.split(case.command)
        places = {"%s": str(source), "%t": str(tmp_path / f"out{number}")}
        done = subprocess.run(
            [tools() / program, *(places.get(a, a) for a in arguments)], capture_output=True, text=True, timeout=60
        )
        said = squeeze(done.stderr)
        wanted = 2 if case.errors else 0
        missing = [text for text in case.errors + case.notes if squeeze(text) not in said]
        named = re.match(rf"error: {re.escape(str(source))}:(\d+):", said)
        elsewhere = named and case.error_line is not None and abs(int(named[1]) - case.error_line) > 1
        if done.returncode != wanted or missing or elsewhere:
            problems.append(
                f"{path.relative_to(HERE)}:{case.line}: wanted exit code {wanted} and {missing}, "
                f"found {done.returncode} and\n{done.stderr}"
            )
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("folder", list_messages.FOLDERS)
def test_every_message_has_a_test(folder):
    missing = list_messages.untested(list_messages.all_messages([folder]))
    assert not missing, "messages that no test shows:\n" + "\n".join(map(str, missing))
