"""The card, random numbers with a printed seed, and the table of cases per op function at the end."""

import collections
import pathlib

import numpy as np
import pytest

from .card import PROGRAM, Card

SEED = 20261115
HERE = pathlib.Path(__file__).parent


def pytest_collection_modifyitems(config, items):
    """Counts cases before anything is deselected: what the suite has, not what this run runs."""
    cases = collections.Counter()
    for item in items:
        if HERE in item.path.parents and (mark := item.get_closest_marker("op")):
            cases[mark.args] += 1
            item.user_properties.append(("op", f"{mark.args[0]} {mark.args[1]}"))
    config.spyre_op_cases = cases
    config.spyre_op_files = {item.path.name for item in items if HERE in item.path.parents}


def pytest_configure(config):
    config.addinivalue_line("markers", "op(function, format): the op function and the format that a case judges")


@pytest.fixture(scope="session")
def card():
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not built")
    running = Card()
    yield running
    running.close()


@pytest.fixture
def rng(request):
    """Numbers depend on the case and the seed alone, not on order or workers."""
    return np.random.default_rng([SEED, *request.node.name.encode()])


def pytest_terminal_summary(terminalreporter):
    counts = collections.defaultdict(collections.Counter)
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for key, value in getattr(report, "user_properties", []):
                if key == "op":
                    function, fmt = value.split()
                    counts[function][fmt, outcome] += 1
    if not counts:
        return
    terminalreporter.section(f"cases per op function (seed {SEED})")
    for function, row in sorted(counts.items()):
        by_format = collections.Counter()
        for (fmt, _), n in row.items():
            by_format[fmt] += n
        failed = sum(n for (_, outcome), n in row.items() if outcome == "failed")
        shown = "  ".join(f"{fmt} {n}" for fmt, n in sorted(by_format.items()))
        bad = f"  FAILED {failed}" if failed else ""
        terminalreporter.write_line(f"{sum(row.values()):5}  {function:22} {shown}{bad}")
    terminalreporter.write_line(f"{sum(sum(row.values()) for row in counts.values()):5}  in all")
