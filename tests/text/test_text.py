"""Text in, text out: every .ir file here says how to run the compiler on itself and what must come out.

    # RUN: spyre-compile %s --print-after select-ops      the command; %s is the file
    # CHECK: text          this text comes, after what was found before
    # CHECK-NEXT: text     on the very next line
    # CHECK-NOT: text      not before the next CHECK, or the end
    # FAILS: text          the command ends with code 2 and says this

Blanks count as one. A test that checks nothing is refused.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DIRECTIVE = re.compile(r"#\s*(RUN|CHECK|CHECK-NEXT|CHECK-NOT|FAILS):\s*(.*\S)")


def tools() -> Path:
    if "SPYRE_TOOLS" in os.environ:
        return Path(os.environ["SPYRE_TOOLS"])
    found = [p for p in (ROOT / "build").glob("*/tools") if (p / "spyre-compile").exists()]
    return max(found, key=lambda p: (p / "spyre-compile").stat().st_mtime)


def squeeze(line: str) -> str:
    return " ".join(line.split())


def check(directives, lines):
    """Walks the output once, in the order of the directives."""
    at, forbidden = 0, []
    for kind, text in directives:
        if kind == "CHECK-NOT":
            forbidden.append(text)
            continue
        if kind == "CHECK-NEXT":
            found = at if at < len(lines) and text in lines[at] else None
        else:
            found = next((i for i in range(at, len(lines)) if text in lines[i]), None)
        assert found is not None, f"{kind}: {text}\nnot found after line {at}:\n" + "\n".join(lines[at : at + 20])
        for bad in forbidden:
            assert not any(bad in line for line in lines[at:found]), f"CHECK-NOT: {bad}"
        at, forbidden = found + 1, []
    for bad in forbidden:
        assert not any(bad in line for line in lines[at:]), f"CHECK-NOT: {bad}"


@pytest.mark.parametrize("path", sorted(HERE.rglob("*.ir")), ids=lambda p: str(p.relative_to(HERE)))
def test_text(path):
    directives = DIRECTIVE.findall(path.read_text())
    runs = [text for kind, text in directives if kind == "RUN"]
    fails = [squeeze(text) for kind, text in directives if kind == "FAILS"]
    checks = [(kind, squeeze(text)) for kind, text in directives if kind.startswith("CHECK")]
    assert len(runs) == 1 and checks + fails, f"{path}: one RUN and at least one CHECK or FAILS"
    command, *args = runs[0].split()
    done = subprocess.run(
        [tools() / command, *(a.replace("%s", str(path)) for a in args)], capture_output=True, text=True, timeout=60
    )
    if fails:
        assert done.returncode == 2, done.stdout + done.stderr
        for text in fails:
            assert text in squeeze(done.stderr)
    else:
        assert done.returncode == 0, done.stderr
        check(checks, [squeeze(line) for line in done.stdout.splitlines()])


def passes() -> list[str]:
    """The passes that `spyre-opt --help` lists."""
    listed = subprocess.run([tools() / "spyre-opt", "--help"], capture_output=True, text=True, timeout=60).stdout
    return re.findall(r"^  ([a-z-]+)  +\S", listed.split("Passes, in the order they run:")[1], re.M)


def test_every_pass_has_a_source_and_a_text_test_of_its_name():
    stems = [name.replace("-", "_") for name in passes()]
    assert "assign_layouts" in stems and len(stems) > 10
    for stem in stems:
        assert len(list((ROOT / "spyre" / "passes").rglob(f"{stem}.cpp"))) == 1, stem
        assert (HERE / "passes" / f"{stem}.ir").exists(), stem
