"""Programs that once failed, judged again by every judge, in processes of their own."""

import pathlib

import pytest

from tests.programs.judges import SETTINGS
from tests.programs.program import parse
from tests.programs.worker import Worker

CORPUS = pathlib.Path(__file__).parent.parent / "corpus" / "programs"
FILES = sorted(CORPUS.glob("*.py"))


@pytest.fixture(scope="module")
def worker():
    with Worker(seconds=120) as worker:
        yield worker


@pytest.fixture(scope="module")
def checked():
    with Worker(seconds=120, SPYRE_CHECKER="1") as worker:
        yield worker


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_program_that_once_failed(worker, checked, path):
    text = path.read_text()
    setting = next((s for s in SETTINGS if s in text), "")
    if "bucket: checked" in text:
        failures = checked.ask(parse(text), judges=["checked"])
    else:
        failures = worker.ask(parse(text), setting)
    assert not failures, "\n".join(f"{f.kind}: {f.message}" for f in failures) + f"\n{text}"
