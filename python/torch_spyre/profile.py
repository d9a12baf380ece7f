"""Runs a script under torch.profiler and leaves what the cards did: a page, a trace, and a table.

    python -m torch_spyre.profile [options] script.py [its arguments]

The page (``<script>.report.html``) says what the time went to and what would help, its facts (``<script>.facts.json``)
are for ``spyre-report``. The trace (``<script>.trace.json``) opens in Perfetto (ui.perfetto.dev) and in
chrome://tracing; the table (``<script>.table.txt``) is printed, too. With ``SPYRE_PROFILE=cores`` set every core has a
row of its own in the trace.
"""

import argparse
import json
import pathlib
import runpy
import sys

from torch_spyre import profiler


def _arguments(argv):
    parser = argparse.ArgumentParser(prog="python -m torch_spyre.profile", description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", default=".", help="folder of what is written; this one by default")
    parser.add_argument("--shapes", action="store_true", help="record the shapes of operators")
    parser.add_argument("--memory", action="store_true", help="record allocations")
    parser.add_argument("--stacks", action="store_true", help="record source lines of operators")
    parser.add_argument("--rows", type=int, default=30, help="rows of the table")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser.parse_args(argv)


def main(argv=None) -> int:
    options = _arguments(argv)
    sys.argv = [options.script, *options.arguments]
    sys.path[0] = str(pathlib.Path(options.script).resolve().parent)
    status = 0
    script = pathlib.Path(options.script)
    stem = pathlib.Path(options.output) / script.stem
    page, facts, trace, table = (f"{stem}.{kind}" for kind in ("report.html", "facts.json", "trace.json", "table.txt"))
    asked = {"record_shapes": options.shapes, "profile_memory": options.memory, "with_stack": options.stacks}
    with profiler.report(page, script.name, **asked) as report:
        try:
            runpy.run_path(options.script, run_name="__main__")
        except SystemExit as end:  # the script's own; what it did is written all the same
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    pathlib.Path(facts).write_text(json.dumps(report.facts))
    report.profiler.export_chrome_trace(trace)
    text = report.profiler.key_averages().table(sort_by="self_device_time_total", row_limit=options.rows)
    pathlib.Path(table).write_text(text)
    print(text)
    print(f"page: {page}\nfacts: {facts}\ntrace: {trace}\ntable: {table}")
    return status


if __name__ == "__main__":
    sys.exit(main())
