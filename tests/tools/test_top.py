"""spyre-top: what another process does with its cards."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.report.test_time_page import SOFTMAX, find_tool, tool


def seen(pid: int) -> dict | None:
    processes = json.loads(tool("spyre-top", "--json").stdout)["processes"]
    return next((p for p in processes if p["pid"] == pid), None)


def until(what, seconds: float = 60):
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)
    return found


@pytest.fixture
def busy(tmp_path):
    """Starts spyre-run for a long time; ended with the test."""
    started = []

    def start(**environment) -> subprocess.Popen:
        if not (tmp_path / "bundle").exists():
            subprocess.run([find_tool("spyre-compile"), SOFTMAX, "-o", tmp_path / "bundle"], check=True)
        command = [find_tool("spyre-run"), tmp_path / "bundle", "--repeat", "100000000", "--interpreter"]
        started.append(
            subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | environment
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def page_of(pid: int) -> Path:
    return Path(f"/dev/shm/spyre-{os.getuid()}/{pid}")


def test_a_card_that_runs(busy):
    process = busy()
    found = until(lambda: (p := seen(process.pid)) and p["cards"] and p["cards"][0]["launches"] and p)
    assert "spyre-run" in found["command"] and "--repeat 100000000" in found["command"]
    (card,) = found["cards"]
    assert 0 < card["memory_allocated_bytes"] <= card["memory_peak_bytes"] < card["memory_total_bytes"]
    assert card["kernel"] and 0 < card["busy_share"] <= 1 and card["streams"] == 1
    until(lambda: seen(process.pid)["cards"][0]["running_ms"] > 0)
    text = tool("spyre-top").stdout
    assert str(process.pid) in text and "spyre-run" in text


def test_looking_again(busy):
    process = busy()
    until(lambda: seen(process.pid))
    looks = tool("spyre-top", "--json", "--watch", "0.1", "--times", "3").stdout.splitlines()
    assert len(looks) == 3
    launches = [
        p["cards"][0]["launches"] for look in looks for p in json.loads(look)["processes"] if p["pid"] == process.pid
    ]
    assert launches == sorted(launches) and len(launches) == 3


def test_a_process_that_ends_leaves_nothing(tmp_path):
    subprocess.run([find_tool("spyre-compile"), SOFTMAX, "-o", tmp_path / "bundle"], check=True)
    process = subprocess.Popen([find_tool("spyre-run"), tmp_path / "bundle"], stdout=subprocess.DEVNULL)
    assert process.wait() == 0
    assert not page_of(process.pid).exists()


def test_a_process_that_crashed_is_not_shown(busy):
    process = busy()
    until(lambda: seen(process.pid))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert page_of(process.pid).exists()
    assert seen(process.pid) is None
    os.utime(page_of(process.pid), (1, 1))  # what is young may be on its way
    assert seen(process.pid) is None
    assert not page_of(process.pid).exists()


def test_a_process_that_wants_to_be_alone(busy):
    process = busy(SPYRE_STATUS="0")
    time.sleep(0.5)
    assert process.poll() is None
    assert seen(process.pid) is None
