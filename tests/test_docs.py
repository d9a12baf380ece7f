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


# A tree in which every promise holds; each case below breaks one.
DOCS = "docs"  # not in one word with the pages, which are none of ours
KEPT = {
    "README.md": f"# Top\n\n|a|\n|-|\n| [`spyre/one/`](spyre/one/README.md) |\n\n[x](#top), `{DOCS}/page.md`\n",
    f"{DOCS}/page.md": "# A page\n\n## One section\n\n[back](../README.md#top)\n",
    "spyre/one/README.md": "`kept.cpp`\n",
    "spyre/one/CMakeLists.txt": "",
    "spyre/one/kept.cpp": f"// As {DOCS}/page.md#one-section says.\n",
}

DRIFTS = {
    "a link to a file that is gone": (
        f"{DOCS}/page.md", "[x](gone.md)",
        f"{DOCS}/page.md:1: link 'gone.md' leads nowhere: there is no {DOCS}/gone.md"),
    "a link out of the repository": (
        f"{DOCS}/page.md", "[x](../../other.md)", f"{DOCS}/page.md:1: link '../../other.md' leaves the repository"),
    "a link to a heading that is gone": (
        f"{DOCS}/page.md", "[x](../README.md#gone)",
        f"{DOCS}/page.md:1: link '../README.md#gone': README.md has no heading 'gone'"),
    "a file named that is gone": (
        f"{DOCS}/page.md", "`spyre/one/gone.cpp`",
        f"{DOCS}/page.md:1: names `spyre/one/gone.cpp`, which does not exist"),
    "a page cited by a source that is gone": (
        "spyre/one/kept.cpp", f"// {DOCS}/gone.md",
        f"spyre/one/kept.cpp:1: link '{DOCS}/gone.md' leads nowhere: there is no {DOCS}/gone.md"),
    "a section cited by a source that is gone": (
        "spyre/one/kept.cpp", f"// {DOCS}/page.md#gone",
        f"spyre/one/kept.cpp:1: link '{DOCS}/page.md#gone': {DOCS}/page.md has no heading 'gone'"),
    "a layer that the map forgets": (
        "spyre/two/CMakeLists.txt", "", "README.md: the map does not name the layer spyre/two/"),
    "a folder of the map that is gone": (
        "README.md", KEPT["README.md"] + "\n| `spyre/gone/` |\n",
        "README.md: the map names spyre/gone/, which is not a folder"),
    "a map that is gone": ("README.md", "# Top\n", "README.md: the map of the tree was not found"),
    "a source that its README forgets": (
        "spyre/one/new.h", "", "spyre/one/README.md: does not name new.h"),
    "a folder with a README that the one above forgets": (
        "spyre/one/inner/README.md", "", "spyre/one/README.md: does not name the folder inner/"),
    "a source that a README still names": (
        "spyre/one/README.md", "`kept.cpp`, `gone.cpp`", "spyre/one/README.md: names gone.cpp, which does not exist"),
}  # fmt: skip


def problems_of_a_tree(root, monkeypatch, changed=(), text=""):
    from scripts import check_docs

    for name, content in {**KEPT, **({changed: text} if changed else {})}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    monkeypatch.setattr(check_docs, "ROOT", root)
    monkeypatch.setattr(check_docs, "generated_problems", lambda: [])
    return check_docs.problems()


def test_a_tree_that_keeps_its_promises_has_no_problem(tmp_path, monkeypatch):
    assert problems_of_a_tree(tmp_path, monkeypatch) == []


@pytest.mark.parametrize("drift", DRIFTS)
def test_documents_that_drift_are_named(drift, tmp_path, monkeypatch):
    changed, text, said = DRIFTS[drift]
    assert any(problem.startswith(said) for problem in problems_of_a_tree(tmp_path, monkeypatch, changed, text))


def test_a_generated_page_that_was_edited_is_named(tmp_path, monkeypatch):
    from scripts import generate_docs

    monkeypatch.setattr(generate_docs, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text("as it was generated\n")
    assert generate_docs.stale({"page.md": "as it was generated\n"}) == []
    assert generate_docs.stale({"page.md": "as it would be today\n", "gone.md": ""}) == ["page.md", "gone.md"]
    with pytest.raises(SystemExit, match="has 0 places for the table 'passes'"):
        generate_docs.with_tables("a page without its table", {"passes": str})


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
        pattern = re.sub(r"<\w+>", "*", path) + ("*" if path.endswith("/") else "")
        assert any(fnmatch.fnmatch(name, pattern) for name in files), f"{commit} touches no {path}"


def test_every_benchmark_is_run_and_described():
    from scripts import run_bench

    sources = {p.name for p in (ROOT / "bench").iterdir() if p.suffix in (".cpp", ".py")}
    assert sources == {bench.source for bench in run_bench.BENCHES}


def test_the_coverage_page_has_a_row_for_every_operator():
    command = [sys.executable, "scripts/generate_coverage.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
