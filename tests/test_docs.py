"""The pages say what the code does."""

import fnmatch
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUNDLE = Path(os.environ.get("SPYRE_BUNDLE", ROOT / "build/editable/tools/spyre-bundle"))


@pytest.mark.skipif(not BUNDLE.exists(), reason=f"the tool {BUNDLE} is not built")
def test_the_journey_shows_what_the_code_prints_today():
    done = subprocess.run(
        [sys.executable, "scripts/regenerate_journey.py", "--check", "--bundle-tool", str(BUNDLE)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_block_of_the_journey_is_never_empty():
    from scripts import regenerate_journey

    page = "<!-- begin:a -->\n<!-- end:a -->"
    assert "some text" in regenerate_journey.rewritten(page, {"a": "some text"})
    with pytest.raises(SystemExit, match="block 'a' would be empty"):
        regenerate_journey.rewritten(page, {"a": " \n"})


def test_a_readme_names_the_files_of_its_folder_and_no_others(tmp_path, monkeypatch):
    from scripts import check_docs

    folder = tmp_path / "spyre" / "layer"
    (folder / "parts").mkdir(parents=True)
    for name in ("named.h", "named.cpp", "named_test.cpp", "fast_a.cpp", "forgotten.h", "parts/inner.cpp"):
        (folder / name).touch()
    (folder / "README.md").write_text("`named.h` is it; `fast_*.cpp` are quick, `parts/` small, and `gone.h` was here.")
    monkeypatch.setattr(check_docs, "ROOT", tmp_path)
    assert list(check_docs.readme_problems()) == [
        "spyre/layer/README.md: does not name forgotten.h",
        "spyre/layer/README.md: names gone.h, which does not exist",
    ]


def contributing_rows():
    rows = (line.split("|") for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if line.startswith("| a"))
    return [(cells[1].strip(), cells[2], cells[3].strip()) for cells in rows if len(cells) == 5 and cells[3].strip()]


@pytest.mark.parametrize("what, touched, commit", contributing_rows(), ids=lambda value: value)
def test_a_change_touches_what_contributing_says(what, touched, commit):
    show = ["git", "show", "--name-only", "--format=", commit]
    done = subprocess.run(show, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"this checkout has no commit {commit}")
    files = done.stdout.split()
    for path in re.findall(r"`([\w<>*./-]+/[\w<>*./-]+)`", touched):
        pattern = re.sub(r"<\w+>", "*", path)
        assert any(fnmatch.fnmatch(name, pattern) for name in files), f"{commit} touches no {path}"


def test_every_benchmark_is_run_and_described():
    from scripts import run_bench

    sources = {p.name for p in (ROOT / "bench").iterdir() if p.suffix in (".cpp", ".py")}
    assert sources == {bench.source for bench in run_bench.BENCHES}


def test_the_coverage_page_has_a_row_for_every_operator():
    command = [sys.executable, "scripts/generate_coverage.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
