"""torch.profiler shows what the cards do: events, links to operators, tables, traces, threads, the end of a process."""

import collections
import json
import os
import subprocess
import sys
import textwrap
import threading

import pytest
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function, schedule

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
DEVICE_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset"}


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(64, 128), torch.nn.Linear(128, 64)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


@pytest.fixture(scope="module")
def model():
    made = MLP().half().eval().to("spyre")
    made(torch.zeros(8, 64, dtype=torch.float16, device="spyre"))  # a first call loads its kernels
    return made


@pytest.fixture(scope="module")
def x():
    made = torch.randn(8, 64, dtype=torch.float16).to("spyre")
    torch.relu(made) + made.clone()
    return made


def on_device(profiler):
    return [e for e in profiler.events() if e.device_type == DeviceType.PrivateUse1]


def trace_of(profiler, tmp_path):
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    return json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def slices(trace, categories=DEVICE_CATEGORIES):
    return [e for e in trace if e.get("ph") == "X" and e.get("cat") in categories]


def assert_rows_do_not_overlap(events):
    rows = collections.defaultdict(list)
    for event in events:
        rows[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"], event["name"]))
    assert rows
    for row, spans in rows.items():
        spans.sort()
        for (_, end, first), (begin, _, second) in zip(spans, spans[1:], strict=False):
            assert begin >= end - 1e-3, (row, first, second)  # a trace counts in thousandths of microseconds


def run(code, **environment):
    env = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300, env=env
    )


def test_profiling_changes_no_result(model, x):
    plain = model(x).cpu()
    with profile(activities=BOTH):
        profiled = model(x).cpu()
    assert torch.equal(plain, profiled)


def test_copies_fills_and_kernels_are_there(model, x):
    with profile(activities=BOTH) as profiler:
        y = torch.randn(8, 64, dtype=torch.float16).to("spyre")
        y.fill_(2)
        model(y).cpu()
    names = [e.name for e in on_device(profiler)]
    assert names.count("Memcpy HtoD") == 1 and names.count("Memset") == 1 and names.count("Memcpy DtoH") == 1
    assert len(names) >= 3 + 3, "two linears and a relu"
    calls = {e.name for e in profiler.events() if e.device_type == DeviceType.CPU}
    assert {"spyreMemcpy", "spyreMemset", "spyreLaunchKernel", "spyreMalloc"} <= calls


def test_columns_of_the_table_add_up(model, x):
    with profile(activities=BOTH) as profiler:
        for _ in range(3):
            model(x).cpu()
    events = on_device(profiler)
    total = sum(e.self_device_time_total for e in events)
    averages = profiler.key_averages()
    of_events = [a for a in averages if a.device_type == DeviceType.PrivateUse1]
    assert total > 0
    assert sum(a.self_device_time_total for a in of_events) == pytest.approx(total)
    # Everything was launched by operators, which have the same time between them.
    of_operators = [a for a in averages if a.device_type == DeviceType.CPU]
    assert sum(a.self_device_time_total for a in of_operators) == pytest.approx(total)
    assert "spyre" in averages.table().lower()
    assert sum(a.count for a in of_events) == len(events)


def test_device_time_is_simulated(model, x):
    """The same in every run, whatever the host does meanwhile."""

    def lengths():
        with profile(activities=BOTH) as profiler:
            model(x).cpu()
        return [(e.name, e.time_range.end - e.time_range.start) for e in on_device(profiler)]

    first, second = lengths(), lengths()
    assert [n for n, _ in first] == [n for n, _ in second]
    assert [t for _, t in first] == pytest.approx([t for _, t in second], abs=2e-3)


def test_kernels_are_linked_to_the_operators_that_launched_them(x, tmp_path):
    with profile(activities=BOTH) as profiler:
        y = torch.relu(x)
        (y + x).cpu()
    for operator in ("aten::relu", "aten::add"):
        (event,) = [e for e in profiler.events() if e.name == operator]
        assert len(event.kernels) == 1, operator
        assert event.device_time_total == pytest.approx(event.kernels[0].duration)
    trace = trace_of(profiler, tmp_path)
    calls = {e["args"]["correlation"]: e for e in slices(trace, {"privateuse1_runtime"})}
    operators = {e["args"]["External id"]: e for e in slices(trace, {"cpu_op"})}
    for event in slices(trace):
        call = calls[event["args"]["correlation"]]
        operator = operators[event["args"]["External id"]]
        assert operator["ts"] <= call["ts"] and call["ts"] + call["dur"] <= operator["ts"] + operator["dur"] + 1e-3
        assert call["ts"] <= event["ts"] + 1e-3, "nothing begins before it was asked for"
    starts = {e["id"] for e in trace if e.get("cat") == "ac2g" and e["ph"] == "s"}
    ends = {e["id"] for e in trace if e.get("cat") == "ac2g" and e["ph"] == "f"}
    assert ends and ends <= starts


def test_rows_do_not_overlap_with_several_streams(model, x, tmp_path):
    streams = [torch.spyre.Stream() for _ in range(3)]
    with profile(activities=BOTH) as profiler:
        for _ in range(4):
            for stream in streams:
                with stream:
                    model(x)
        torch.spyre.synchronize()
    trace = trace_of(profiler, tmp_path)
    events = slices(trace)
    assert len({e["tid"] for e in events}) == 3
    assert_rows_do_not_overlap(events)
    kernels = [{**e, "tid": "the cores"} for e in events if e["cat"] == "kernel"]
    assert_rows_do_not_overlap(kernels)
    names = {e["args"]["name"] for e in trace if e.get("name") == "thread_name" and e["pid"] == 0}
    assert {f"stream {s.id}" for s in streams} <= names


def test_compiled_models_say_where_kernels_come_from(model, x, tmp_path):
    compiled = torch.compile(model)
    compiled(x)
    with profile(activities=BOTH) as profiler:
        compiled(x).cpu()
    (kernel,) = [e for e in slices(trace_of(profiler, tmp_path)) if e["cat"] == "kernel"]
    args = kernel["args"]
    assert "aten.relu.default" in args["aten"]
    assert any(line.startswith("test_profiler.py:") for line in args["source"])
    assert "up" in args["modules"] and "down" in args["modules"]
    assert os.path.exists(os.path.join(args["artifact"], "graph.ir"))
    assert args["HBM bytes read"] > 0 and args["bound by"] != "unknown"
    assert args["operations"] >= 3 and "sdsc_" in args["longest operations"][0]


def test_a_hugging_face_decoder(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.GraniteConfig(
        hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        vocab_size=256, max_position_embeddings=128,
    )  # fmt: skip
    torch.manual_seed(0)
    decoder = transformers.GraniteForCausalLM(config).half().eval().to("spyre")
    prompt = torch.arange(2, 10)[None].to("spyre")
    decoder.forward = torch.compile(decoder.forward, dynamic=True)
    options = {"max_new_tokens": 3, "min_new_tokens": 3, "do_sample": False}
    plain = decoder.generate(prompt, **options).cpu()
    with profile(activities=BOTH, record_shapes=True, profile_memory=True, with_stack=True) as profiler:
        profiled = decoder.generate(prompt, **options).cpu()
    assert torch.equal(plain, profiled)
    trace = trace_of(profiler, tmp_path)
    events = slices(trace)
    assert_rows_do_not_overlap(events)
    kernels = [e for e in events if e["cat"] == "kernel"]
    assert len(kernels) > 3 and all(e["dur"] > 0 for e in kernels)
    total = sum(e["dur"] for e in events)
    assert sum(e.self_device_time_total for e in on_device(profiler)) == pytest.approx(total, abs=len(events) * 2e-3)
    assert any("model.layers" in e["args"].get("modules", "") for e in kernels)


def test_schedules_record_their_steps_only(x):
    seen = []
    with profile(
        activities=BOTH,
        schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=lambda p: seen.append([e.name for e in on_device(p)]),
    ) as profiler:
        for _ in range(8):
            torch.relu(x).cpu()
            profiler.step()
    assert len(seen) == 2
    for names in seen:
        assert len(names) == 2 * 2, "a kernel and a copy in each of two steps"


def test_profiles_one_after_another_hold_their_own(x):
    for _ in range(3):
        with profile(activities=BOTH) as profiler:
            torch.relu(x)
        assert len(on_device(profiler)) == 1


def test_ranges_have_the_time_inside(x):
    with profile(activities=BOTH) as profiler:
        with record_function("outer"):
            with record_function("inner"):
                torch.relu(x)
            torch.relu(x)
    time = {e.name: e.device_time_total for e in profiler.events() if e.name in ("outer", "inner")}
    assert 0 < time["inner"] < time["outer"]


def test_memory_of_the_card_is_recorded(x, tmp_path):
    with profile(activities=BOTH, profile_memory=True, record_shapes=True, with_stack=True) as profiler:
        y = torch.empty(64, 64, dtype=torch.float16, device="spyre")
        z = y.clone()
        del y
    empty = next(e for e in profiler.events() if e.name == "aten::empty")
    assert empty.device_memory_usage == 64 * 64 * 2
    assert z.shape == (64, 64)
    profiler.export_memory_timeline(str(tmp_path / "memory.json"), device="spyre:0")
    times, sizes = json.loads((tmp_path / "memory.json").read_text())
    assert len(times) == len(sizes) > 0
    assert max(map(sum, sizes)) >= 2 * 64 * 64 * 2


def test_shapes_and_stacks(x):
    with profile(activities=BOTH, record_shapes=True, with_stack=True) as profiler:
        torch.relu(x)
    (event,) = [e for e in profiler.events() if e.name == "aten::relu"]
    assert event.input_shapes == [[8, 64]]
    assert len(profiler.key_averages(group_by_input_shape=True)) > 0


def test_threads_have_their_calls(x, tmp_path):
    """PyTorch follows the thread that profiles; calls of other threads are there without operators."""

    def work():
        for _ in range(5):
            torch.relu(x)
        torch.spyre.synchronize()

    with profile(activities=BOTH) as profiler:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        work()
        for thread in threads:
            thread.join()
    trace = trace_of(profiler, tmp_path)
    launches = [e for e in slices(trace, {"privateuse1_runtime"}) if e["name"] == "spyreLaunchKernel"]
    assert len(launches) == 20 and len({e["tid"] for e in launches}) == 4
    events = slices(trace)
    assert len(events) == 20
    assert_rows_do_not_overlap(events)


def test_backward_is_linked_too(model, x):
    trained = MLP().half().to("spyre")
    with profile(activities=BOTH) as profiler:
        trained(x).sum().backward()
        torch.spyre.synchronize()
    events = on_device(profiler)
    assert all(e.linked_correlation_id > 0 for e in events)
    assert any("Backward" in e.name and e.device_time_total > 0 for e in profiler.events())


def test_many_events_are_all_kept(x):
    with profile(activities=BOTH) as profiler:
        for _ in range(3000):
            x.fill_(1)
    assert len(on_device(profiler)) == 3000


def test_without_cpu_activities(x):
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
        torch.relu(x)
    assert len(on_device(profiler)) == 1


def test_cpu_only_profiles_have_no_card(x):
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        torch.relu(x)
    assert not on_device(profiler)


def test_the_older_profiler_has_device_times(x):
    with torch.autograd.profiler.profile(use_device="spyre", use_kineto=False) as profiler:
        torch.relu(x)
    (event,) = [e for e in profiler.function_events if e.name == "aten::relu"]
    assert event.device_time_total > 0


class TestRowsOfCores:
    CODE = """
        import json, sys, torch
        from torch.profiler import ProfilerActivity, profile
        a, b = (torch.randn(256, 256, dtype=torch.float16).to("spyre") for _ in range(2))
        torch.mm(a, b)
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiler:
            torch.mm(a, b)
            torch.mm(b, a)
            torch.spyre.synchronize()
        profiler.export_chrome_trace(sys.argv[1] if len(sys.argv) > 1 else "{path}")
        total = sum(e.self_device_time_total for e in profiler.events() if not e.is_user_annotation
                    and e.device_type == torch.autograd.DeviceType.PrivateUse1)
        print(json.dumps(total))
    """

    def test_every_core_is_a_row_whose_states_fill_the_kernels(self, tmp_path):
        path = tmp_path / "trace.json"
        done = run(self.CODE.replace("{path}", str(path)), SPYRE_PROFILE="cores")
        assert done.returncode == 0, done.stderr
        trace = json.loads(path.read_text())["traceEvents"]
        kernels = [e for e in slices(trace) if e["cat"] == "kernel"]
        total = sum(e["dur"] for e in kernels)
        assert json.loads(done.stdout.splitlines()[-1]) == pytest.approx(total, abs=5e-3), "cores add nothing to it"
        states = [e for e in slices(trace, {"gpu_user_annotation"}) if e["tid"] >= 1000]
        assert {e["name"] for e in states} >= {"compute", "load"}
        assert {e["name"] for e in states} <= {"compute", "load", "store", "ring", "idle"}
        assert_rows_do_not_overlap(states)
        by_core = collections.defaultdict(float)
        for state in states:
            by_core[state["tid"]] += state["dur"]
        assert len(by_core) == 32
        for core, time in by_core.items():
            assert time == pytest.approx(total, abs=0.02), core
        busy = next(e for e in states if e["name"] == "compute")
        assert busy["args"]["operation"] and busy["args"]["file"].startswith("sdsc_")

    def test_counters_are_drawn_and_their_bytes_are_those_of_the_kernels(self, tmp_path):
        path = tmp_path / "trace.json"
        assert run(self.CODE.replace("{path}", str(path)), SPYRE_PROFILE="cores").returncode == 0
        trace = json.loads(path.read_text())["traceEvents"]
        series = collections.defaultdict(list)
        for event in trace:
            if event.get("ph") == "C":
                ((_, value),) = event["args"].items()
                series[event["name"]].append((event["ts"], value))
        assert set(series) >= {"HBM GB/s", "GMACs/s", "LX bytes live"}
        kernels = [e for e in slices(trace) if e["cat"] == "kernel"]
        moved = sum(e["args"]["HBM bytes read"] + e["args"]["HBM bytes written"] for e in kernels)
        levels = sorted(series["HBM GB/s"])
        area = sum(v * (after - at) * 1e3 for (at, v), (after, _) in zip(levels, levels[1:], strict=False))
        assert area == pytest.approx(moved, rel=0.02)


class TestAvailability:
    def test_it_tells_the_truth(self):
        from torch_spyre import profiler

        assert profiler.is_available()
        done = run("from torch_spyre import profiler; print(profiler.is_available())", SPYRE_DEVICE_TIME="0")
        assert done.stdout.split() == ["False"], done.stderr

    def test_a_stopped_clock_has_no_time(self):
        done = run("import torch; torch.spyre.device_time()", SPYRE_DEVICE_TIME="0")
        assert "the simulated clock does not run" in done.stderr

    def test_asking_starts_nothing(self):
        done = run("import torch; from torch_spyre import profiler; profiler.is_available(); "
                   "print(torch.spyre.is_initialized())")  # fmt: skip
        assert done.stdout.split() == ["False"], done.stderr

    def test_an_empty_profile_says_why(self):
        code = """
            import torch
            from torch.profiler import ProfilerActivity, profile
            x = torch.ones(64, dtype=torch.float16, device="spyre")
            with profile(activities=[ProfilerActivity.PrivateUse1]):
                {}
        """
        done = run(code.format("x + x"), SPYRE_DEVICE_TIME="0")
        assert "SPYRE_DEVICE_TIME" in done.stderr
        assert "no work was given" in run(code.format("pass")).stderr

    def test_a_profile_of_the_cpu_alone_says_nothing(self):
        code = """
            import torch
            from torch.profiler import profile
            with profile():
                torch.ones(3) + 1
            assert not torch.spyre.is_initialized()
        """
        done = run(code)
        assert done.returncode == 0 and "no work" not in done.stderr, done.stderr


class TestTheEndOfAProcess:
    @pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise SystemExit(4)", "os._exit(0)"])
    def test_an_open_profile_does_not_abort(self, end):
        code = f"""
            import os, sys, torch
            from torch.profiler import ProfilerActivity, profile
            x = torch.ones(64, dtype=torch.float16).to("spyre")
            profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1])
            profiler.__enter__()
            for _ in range(10):
                x = x + x
            {end}
        """
        done = run(code)
        assert done.returncode in (0, 3, 4), done.stderr
        assert "terminate" not in done.stderr

    def test_a_profile_that_is_closed_at_exit(self):
        code = """
            import atexit, torch
            from torch.profiler import ProfilerActivity, profile
            x = torch.ones(64, dtype=torch.float16).to("spyre")
            profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1])
            profiler.__enter__()
            x + x
            atexit.register(lambda: (profiler.__exit__(None, None, None), print(len(profiler.events()) > 0)))
        """
        done = run(code)
        assert done.returncode == 0 and "True" in done.stdout, done.stderr


def test_a_block_has_a_page_and_its_facts(model, x, tmp_path):
    import torch_spyre.profiler

    torch.spyre.synchronize()
    before = torch.spyre.device_time()
    with torch_spyre.profiler.report(tmp_path / "pages" / "model.html") as report:
        model(x)
    assert report.facts["name"] == "model" and "<title>" in report.page.read_text()
    totals = report.facts["totals"]
    kernels = sum(e["dur"] for e in slices(trace_of(report.profiler, tmp_path), ("kernel",)))
    assert 0 < totals["kernel_us"] <= totals["total_us"]
    assert totals["kernel_us"] == pytest.approx(kernels, abs=0.01)
    assert report.facts["bound"]["by"] in report.facts["bound"]["us"]
    assert torch.spyre.device_time() > before


def test_any_script_can_be_profiled(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, torch\n"
        "x = torch.ones(64, dtype=torch.float16).to('spyre')\n"
        "print((x + x).sum().item(), sys.argv)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "torch_spyre.profile", "-o", tmp_path / "out", script, "--its", "own"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "128.0" in done.stdout and "--its" in done.stdout
    trace = json.loads((tmp_path / "out" / "script.trace.json").read_text())["traceEvents"]
    assert any(e["cat"] == "kernel" for e in slices(trace))
    assert "aten::add" in (tmp_path / "out" / "script.table.txt").read_text()
    facts = json.loads((tmp_path / "out" / "script.facts.json").read_text())
    (added,) = [item for item in facts["items"] if item["kind"] == "kernel" and "add" in item["name"]]
    kernels = sum(e["dur"] for e in slices(trace) if e["cat"] == "kernel")
    assert facts["totals"]["kernel_us"] == pytest.approx(kernels, abs=0.01)
    assert added["count"] == 1 and facts["programs"]
    assert "script.py" in (tmp_path / "out" / "script.report.html").read_text()
