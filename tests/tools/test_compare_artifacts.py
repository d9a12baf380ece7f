"""scripts/compare_artifacts.py: two builds that write the same bytes, two that do not, and one that is not there."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build(folder: Path, bundle: str, plan: str = "{}", refuses: str = "") -> Path:
    """Tools that write this text as their only file, and print this plan; refused is every graph of that name."""
    folder.mkdir()
    compile_graph = f'case "$1" in *{refuses or "/nothing"}) echo "error: $1" >&2; exit 2;; esac'
    scripts = {
        "spyre-compile": f'{compile_graph}\nmkdir -p "$3"; printf %s "{bundle}" > "$3/bundle.mlir"',
        "spyre-plan": f"printf %s '{plan}'",
    }
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder


def compare(*arguments) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "scripts/compare_artifacts.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def graph(folder: Path) -> Path:
    path = folder / "g.ir"
    path.write_text("graph g {\n}\n")
    return path


def test_equal_builds_are_the_same_under_every_setting(tmp_path):
    before, after = build(tmp_path / "before", "a"), build(tmp_path / "after", "a")
    done = compare(before, after, graph(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "compilations compared" in done.stdout and "all the same" in done.stdout


def test_another_byte_in_a_bundle_is_named(tmp_path):
    before, after = build(tmp_path / "before", "a"), build(tmp_path / "after", "b")
    done = compare(before, after, graph(tmp_path), "--settings", "default", "no LX")
    assert done.returncode == 1
    assert done.stdout.count("differs:") == 2 and "bundle/bundle.mlir" in done.stdout
    assert "2 of 2 compilations differ" in done.stdout


def test_another_plan_is_named(tmp_path):
    before, after = build(tmp_path / "before", "a"), build(tmp_path / "after", "a", plan='{"saved": 1}')
    done = compare(before, after, graph(tmp_path), "--settings", "default")
    assert done.returncode == 1 and "plan.txt" in done.stdout


def test_a_graph_that_only_one_side_refuses_differs(tmp_path):
    before, after = build(tmp_path / "before", "a"), build(tmp_path / "after", "a", refuses="g.ir")
    assert compare(before, after, graph(tmp_path), "--settings", "default").returncode == 1
    assert compare(after, after, graph(tmp_path), "--settings", "default").returncode == 0


def test_what_is_no_build_is_refused(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    done = compare(empty, build(tmp_path / "after", "a"), graph(tmp_path))
    assert done.returncode == 2 and "spyre-compile" in done.stderr
    done = compare("no-such-commit", tmp_path / "after", graph(tmp_path))
    assert done.returncode == 2 and "neither a folder nor a commit" in done.stderr
    done = compare(tmp_path / "after", tmp_path / "after", tmp_path / "none.ir")
    assert done.returncode == 2 and "no graphs" in done.stderr
