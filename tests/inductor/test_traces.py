"""What Dynamo traced in one process serves another, and nothing but what that one would trace itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ERROR = 0.02  # of the largest result: 30 blocks in 16 bits; another program is off by a tenth and more


def run(way: str, cache: Path, **environment) -> dict:
    env = {**os.environ, "SPYRE_TRACE_CACHE": "1", "TORCHINDUCTOR_CACHE_DIR": str(cache), **environment}
    command = [sys.executable, "-m", "tests.inductor.traced", way]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def cold(cache):
    return run("cold", cache)


@pytest.fixture(scope="module")
def warm(cache, cold):
    return run("warm", cache)


def test_a_second_process_traces_nothing(cold, warm):
    assert cold["none"]["traced"] == 1 and cold["none"]["read"] == 0
    assert warm["none"] == {**cold["none"], "traced": 0, "read": 1}
    assert warm["none"]["error"] < ERROR


def test_sizes_that_change_are_compiled_as_often_as_before_and_read_after_that(cold, warm):
    assert sum(call["traced"] for call in cold["sizes"]) <= 2
    assert [call["traced"] for call in warm["sizes"]] == [0, 0, 0]
    assert [call["sum"] for call in warm["sizes"]] == [call["sum"] for call in cold["sizes"]]


def test_generate_of_a_second_process_traces_nothing(cold, warm):
    assert cold["text"]["traced"] > 0
    assert warm["text"]["tokens"] == cold["text"]["tokens"]
    assert warm["text"]["traced"] == 0 and warm["text"]["read"] > 0


@pytest.mark.parametrize(
    "change", ["global", "function", "default", "method", "of one module", "class of one module", "hook"]
)
def test_another_program_is_traced(warm, change):
    assert warm[change]["traced"] > 0 and warm[change]["read"] == 0
    assert warm[change]["error"] < ERROR and warm[change]["sum"] != warm["none"]["sum"]


def test_programs_of_others_do_not_get_in_the_way(warm):
    assert warm["none again"] == warm["none"]


def test_what_changes_after_a_program_was_read_is_traced(warm):
    first, second = warm["later"]
    assert first["read"] == 1 and second["traced"] == 1
    assert first["error"] < ERROR and second["error"] < ERROR and first["sum"] != second["sum"]


def test_other_settings_are_other_programs(cache, cold):
    found = run("first", cache, LX_PLANNING="0")
    assert found["none"]["traced"] == 1 and found["none"]["read"] == 0


def test_a_damaged_file_is_traced_again(cache, cold, warm):
    for path in cache.glob("spyre-traces/*/*"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    found = run("first", cache)
    assert found["none"]["traced"] == 1 and found["none"]["sum"] == cold["none"]["sum"]


def test_it_can_be_switched_off(cache, cold):
    found = run("first", cache, SPYRE_TRACE_CACHE="0")
    assert found["none"]["traced"] == 1 and found["none"]["read"] == 0
