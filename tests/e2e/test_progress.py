"""What a user sees on a terminal while something compiles."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ERASE = "\r\x1b[K"


def on_a_terminal(what: str, columns: int = 80, **environment) -> str:
    """Every byte that the program wrote to its terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {**os.environ, "TERM": "xterm", **environment}
    command = [sys.executable, "-u", "-m", "tests.e2e.slow_compilation", what]
    with subprocess.Popen(command, cwd=ROOT, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            written += part
    os.close(ours)
    assert process.returncode == 0, written.decode()
    return written.decode()


def seen(written: str) -> list[str]:
    """The lines that are left on the screen: what a line was written over with is gone."""
    lines = []
    for line in written.replace("\r\n", "\n").split("\n"):
        shown = ""
        for part in re.split(r"(\r\x1b\[K|\r)", line):
            if part == ERASE:
                shown = ""
            elif part == "\r":
                raise AssertionError(f"moved without erasing: {line!r}")
            else:
                shown += part
        lines.append(shown)
    return lines


def told(written: str) -> list[str]:
    """The drawings of the line."""
    return re.findall(r"\r\x1b\[K(spyre: [^\r\n]*)", written)


@pytest.fixture(scope="module")
def written():
    return on_a_terminal("card")


def test_the_line_says_phase_and_layer_and_seconds(written):
    lines = told(written)
    assert any(re.fullmatch(r"spyre: tracing: layer [234] of 4, [1-9]\d* s", line) for line in lines), lines
    assert all(re.fullmatch(r"spyre: .+, \d+ s", line) for line in lines), lines
    seconds = [int(line.rsplit(", ", 1)[1][:-2]) for line in lines]
    assert seconds == sorted(seconds) and seconds[0] >= 1


def test_the_line_is_gone_at_the_end(written):
    assert not [line for line in seen(written) if "spyre:" in line]
    assert seen(written)[-2:] == ["done", ""]


def test_what_others_write_stays_as_it_is(written):
    lines = seen(written)
    assert lines.count("a message") == 4
    assert lines.count("half a line and its end") == 4
    assert len([line for line in lines if line.endswith("UserWarning: a warning")]) == 4


def test_a_narrow_terminal_has_one_line_all_the_same():
    assert max(map(len, told(on_a_terminal("card", columns=20)))) == 19


@pytest.mark.parametrize(
    ("what", "environment"),
    [("cpu", {}), ("card", {"SPYRE_PROGRESS": "off"}), ("card", {"TERM": "dumb"})],
)
def test_nothing_is_said_of_work_for_others_and_where_nobody_wants_it(what, environment):
    written = on_a_terminal(what, **environment)
    assert "spyre:" not in written and "\x1b" not in written


@pytest.mark.parametrize("asked", ["auto", "lines"])
def test_into_a_file_it_writes_lines_if_it_is_asked_for(asked):
    env = {**os.environ, "SPYRE_PROGRESS": asked}
    command = [sys.executable, "-m", "tests.e2e.slow_compilation", "card"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("spyre: ")]
    assert bool(lines) == (asked == "lines")
    assert all(re.fullmatch(r"spyre: .+, \d+ s", line) for line in lines) and "\x1b" not in done.stderr
