"""Says at the end of a run where the operators of PyTorch's suites were computed."""

import collections
import re

import expectations
import pytest
import torch

SUITES = ("test_device_generic.py", "test_opinfo.py")


def pytest_collection_modifyitems(items):
    for item in items:
        name = re.fullmatch(r"test_(function|inplace|out)_(.+)_spyre_(\w+)", item.name)
        # What `out` adds to an operator is the same for every dtype.
        if name and (expectations.takes_long(name[2], name[1], name[3]) or (name[1] == "out" and name[3] != "float32")):
            item.add_marker(pytest.mark.full)


@pytest.fixture(autouse=True)
def where_it_ran(request):
    torch.spyre.reset_metrics()
    yield
    metrics = torch.spyre.metrics()
    where = "with the CPU" if metrics["fallbacks"] else "on the card" if metrics["launches"] else "nothing to compute"
    request.node.user_properties.append(("ran", where))


def pytest_terminal_summary(terminalreporter):
    stats = terminalreporter.stats
    refused = {report.nodeid for report in stats.get("xfailed", [])}
    skipped = {report.nodeid for report in stats.get("skipped", [])}
    counts = collections.defaultdict(collections.Counter)
    for report in stats.get("", []):  # where pytest keeps what happened before and after a test
        suite = report.nodeid.partition("::")[0].rpartition("/")[2]
        if report.when != "teardown" or suite not in SUITES or report.nodeid in skipped:
            continue
        counts[suite]["refused" if report.nodeid in refused else dict(report.user_properties)["ran"]] += 1
    for suite, count in sorted(counts.items()):
        terminalreporter.write_line(f"{suite}: " + ", ".join(f"{n} {what}" for what, n in count.most_common()))
