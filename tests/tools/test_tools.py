"""spyre-bundle, spyre-inspect and spyre-run, driven as a user would."""

import itertools
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "corpus" / "opspec"


def find_tools() -> Path | None:
    """The folder of SPYRE_TOOLS, else the newest under build/*/tools."""
    if "SPYRE_TOOLS" in os.environ:
        return Path(os.environ["SPYRE_TOOLS"])
    found = [p for p in (ROOT / "build").glob("*/tools") if (p / "spyre-run").exists()]
    return max(found, key=lambda p: (p / "spyre-run").stat().st_mtime, default=None)


TOOLS = find_tools()
pytestmark = pytest.mark.skipif(TOOLS is None, reason="the tools are not built: cmake --build build/dev")


def tool(name: str, *args, code: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([TOOLS / name, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, f"{name} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture
def bundle(tmp_path):
    def write(kernel: str) -> Path:
        tool("spyre-bundle", CORPUS / f"{kernel}.opspec", "-o", tmp_path / kernel)
        return tmp_path / kernel

    return write


def damage_image(directory: Path, old: bytes, new: bytes) -> None:
    """Changes text inside the program image, keeping its size."""
    assert len(old) == len(new)
    path = directory / "spyreCodeDir" / "init_binary.bin"
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


class TestTime:
    def test_both_clocks_and_what_bounds_each_execute(self, bundle):
        said = json.loads(tool("spyre-run", bundle("softmax"), "--time", "--json").stdout)
        time = said["time"]
        assert [e["op"] for e in time["executes"]] == ["max", "sub", "exp", "sum", "realdiv"]
        assert time["executes"][0]["begin_us"] == 0 and time["executes"][-1]["end_us"] == time["kernel_us"]
        assert all(a["end_us"] == b["begin_us"] for a, b in itertools.pairwise(time["executes"]))
        # The text of the same run, without what it computes with.
        text = tool("spyre-run", directory := bundle("softmax"), "--time", "--no-counters").stdout
        assert "time on spyre" in text and f"kernel {time['kernel_us']:>10.2f} us" in text and "bound by" in text
        assert "time" not in json.loads(tool("spyre-run", directory, "--json").stdout)

    def test_bytes_are_those_of_the_counters(self, bundle):
        said = json.loads(tool("spyre-run", bundle("abs"), "--time", "--json").stdout)
        assert said["time"]["read"] == said["total"]["hbm_read"]
        assert said["time"]["written"] == said["total"]["hbm_written"]

    def test_a_shorter_extent_takes_less_time(self, bundle):
        directory = bundle("dynamic")
        times = [
            json.loads(tool("spyre-run", directory, *extent, "--time", "--json").stdout)["time"]["kernel_us"]
            for extent in ((), ("-e", "s0=8"))
        ]
        assert times[1] < times[0]

    def test_another_machine(self, bundle, tmp_path):
        directory = bundle("abs")
        machines = ROOT / "examples" / "machines"
        time = {
            name: json.loads(tool("spyre-run", directory, "--json", *flags).stdout)["time"]
            for name, flags in {
                "spyre": ("--time",),
                "twice": ("--machine", machines / "twice_the_memory.json"),
                "64": ("--machine", machines / "64_cores.json"),
            }.items()
        }
        assert time["twice"]["machine"] == "twice the memory bandwidth"
        assert time["twice"]["kernel_us"] == pytest.approx(time["spyre"]["kernel_us"] / 2)
        assert time["64"]["kernel_us"] == time["spyre"]["kernel_us"]
        (tmp_path / "bad.json").write_text('{"times": {"memory": -1}}')
        refused = tool("spyre-run", directory, "--machine", tmp_path / "bad.json", code=1).stderr
        assert "bad.json: times: memory: found -1, allowed: a number above 0" in refused
        (tmp_path / "one.json").write_text('{"machine": {"cores": 1}}')
        assert (
            "found core 1, allowed: 0 to 0"
            in tool("spyre-run", directory, "--machine", tmp_path / "one.json", code=1).stderr
        )

    def test_a_trace_for_perfetto(self, bundle, tmp_path):
        tool("spyre-run", bundle("softmax"), "--trace", tmp_path / "trace.json")
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        slices = [e for e in events if e["ph"] == "X"]
        assert {e["name"] for e in slices if e["pid"] == 2} >= {"load", "vector", "store"}
        assert len([e for e in slices if e["pid"] == 1]) == 5
        assert {e["name"] for e in events if e["ph"] == "C"} >= {"off-chip GB/s"}

    def test_a_plan_is_timed_before_anything_runs(self):
        graph = ROOT / "tests" / "corpus" / "graphs" / "softmax.ir"
        plain = tool("spyre-plan", graph, "--time").stdout
        assert "time on spyre" in plain and "bound by" in plain
        plan = json.loads(tool("spyre-plan", graph, "--time", "--json").stdout)
        assert plan["time"]["kernel_us"] > 0 and plan["time"]["launch_us"] > 20

    def test_a_plan_for_time_is_quicker_and_counts_more_bytes(self):
        graph = ROOT / "tests" / "corpus" / "layers" / "gated_mlp.ir"
        traffic, time = (
            json.loads(tool("spyre-plan", graph, "--time", "--json", "--objective", objective).stdout)
            for objective in ("traffic", "time")
        )
        assert time["time"]["kernel_us"] < 0.95 * traffic["time"]["kernel_us"]
        assert time["moved"] > traffic["moved"]

    def test_a_plan_for_more_cores_has_them_share_the_work(self):
        graph = ROOT / "tests" / "corpus" / "layers" / "rms_norm.ir"
        machine = ROOT / "examples" / "machines" / "64_cores.json"
        assert json.loads(tool("spyre-plan", graph, "--json", "--machine", machine).stdout)["cores"] == 64
        assert "64 cores" in tool("spyre-plan", graph, "--machine", machine).stdout

    def test_a_plan_for_more_lx_has_more(self):
        graph = ROOT / "tests" / "corpus" / "layers" / "gated_mlp.ir"
        capacities = [
            json.loads(tool("spyre-plan", graph, "--json", *flags).stdout)["capacity"]
            for flags in ((), ("--machine", ROOT / "examples" / "machines" / "twice_the_lx.json"))
        ]
        assert capacities[1] - capacities[0] == 2 << 20


class TestRun:
    def test_computes_what_the_kernel_says(self, bundle, tmp_path):
        x = np.linspace(-2, 2, 256, dtype=np.float16).reshape(4, 64)
        np.save(tmp_path / "x.npy", x)
        tool("spyre-run", bundle("abs"), "-i", f"0={tmp_path}/x.npy", "-o", tmp_path / "out")
        y = np.load(tmp_path / "out" / "arg_1.npy")
        assert y.dtype == np.float16 and y.shape == (4, 64)
        # One fraction bit is lost on the way to the card; nothing afterwards.
        np.testing.assert_allclose(y.astype(np.float32), np.abs(x).astype(np.float32), rtol=2**-10)

    def test_both_executors_give_the_same_bytes_and_counts(self, bundle, tmp_path):
        directory = bundle("softmax")
        reports = []
        for flags in ([], ["--interpreter"]):
            out = tmp_path / f"out{len(flags)}"
            reports.append(json.loads(tool("spyre-run", directory, "--seed", 5, "--json", "-o", out, *flags).stdout))
        assert (tmp_path / "out0" / "arg_1.npy").read_bytes() == (tmp_path / "out1" / "arg_1.npy").read_bytes()
        assert reports[0]["ops"] == reports[1]["ops"]
        assert [r["executor"] for r in reports] == ["fast", "interpreter"]

    def test_the_seed_decides_random_inputs(self, bundle, tmp_path):
        directory = bundle("abs")
        files = []
        for name, seed in (("a", 1), ("b", 1), ("c", 2)):
            tool("spyre-run", directory, "--seed", seed, "-o", tmp_path / name)
            files.append((tmp_path / name / "arg_1.npy").read_bytes())
        assert files[0] == files[1] != files[2]

    def test_counters_are_exact(self, bundle):
        report = json.loads(tool("spyre-run", bundle("abs"), "--json").stdout)
        assert report["total"]["hbm_read"] == report["total"]["hbm_written"] == 4 * 128
        assert report["total"]["vector_elements"] == 4 * 64
        assert report["ops"][0]["op"] == "abs" and report["ops"][0]["executes"] == 1
        off = json.loads(tool("spyre-run", bundle("abs"), "--json", "--no-counters").stdout)
        assert off["ops"] == [] and off["total"]["hbm_read"] == 0

    def test_the_table_for_people_has_a_row_per_op(self, bundle):
        text = tool("spyre-run", bundle("softmax")).stdout
        for op in ("max", "sub", "exp", "sum", "realdiv", "total"):
            assert op in text

    def test_runtime_extents_are_the_largest_unless_asked(self, bundle, tmp_path):
        directory = bundle("dynamic")
        tool("spyre-run", directory, "-o", tmp_path / "full")
        assert np.load(tmp_path / "full" / "arg_1.npy").shape == (16, 64)
        tool("spyre-run", directory, "-e", "s0=8", "-o", tmp_path / "half")
        assert np.load(tmp_path / "half" / "arg_1.npy").shape == (8, 64)
        assert "found 6, allowed: multiples of 4" in tool("spyre-run", directory, "-e", "s0=6", code=1).stderr

    @pytest.mark.parametrize("kernel", sorted(p.stem for p in CORPUS.glob("*.opspec")))
    def test_every_kernel_of_the_corpus_runs(self, bundle, kernel):
        tool("spyre-run", bundle(kernel))


class TestExitCodes:
    def test_help_is_no_failure(self):
        for name in ("spyre-run", "spyre-inspect"):
            assert "Exit codes" in tool(name, "--help").stdout

    def test_1_is_the_command_line(self, bundle, tmp_path):
        tool("spyre-run", tmp_path / "nowhere", code=1)
        directory = bundle("abs")
        np.save(tmp_path / "wrong.npy", np.zeros((4, 65), np.float16))
        assert "allowed: [4, 64]" in tool("spyre-run", directory, "-i", f"0={tmp_path}/wrong.npy", code=1).stderr
        assert "no such input" in tool("spyre-run", directory, "-i", "1=x.npy", code=1).stderr
        assert "key=value" in tool("spyre-run", directory, "-i", "x.npy", code=1).stderr
        assert "no such extent" in tool("spyre-run", directory, "-e", "s0=4", code=1).stderr

    def test_2_is_a_bad_artifact(self, bundle, tmp_path):
        assert "spyrecode.json" in tool("spyre-run", tmp_path, code=2).stderr
        directory = bundle("abs")
        damage_image(directory, b"SPYREIMG", b"SPYREIMX")
        assert "magic" in tool("spyre-run", directory, code=2).stderr
        directory = bundle("abs")
        damage_image(directory, b'"mb_":4', b'"mb_":5')
        tool("spyre-run", directory, code=2)

    def test_3_is_a_fault_of_the_card(self, bundle):
        # Core 1 starts far behind its tensor: a well-formed program that leaves its memory.
        directory = bundle("abs")
        before, after = b"arith.constant 256 : index", b"arith.constant 9984: index"
        damage_image(directory, before, after)
        mlir = directory / "bundle.mlir"
        mlir.write_bytes(mlir.read_bytes().replace(before, after))
        assert "core 1, address" in tool("spyre-run", directory, code=3).stderr


class TestInspect:
    def test_explains_splits_and_addresses(self, bundle):
        text = tool("spyre-inspect", bundle("abs")).stdout
        assert "kernel abs" in text
        assert "sdsc_0.json: abs in SEN169_FP16 on 2 cores" in text
        rows = [line.split() for line in text.splitlines()]
        assert ["0", "0..2", "0..64", "symbol", "-1", "symbol", "-3"] in rows
        assert ["1", "2..4", "0..64", "symbol", "-2", "symbol", "-4"] in rows

    def test_json_has_the_same_facts(self, bundle):
        facts = json.loads(tool("spyre-inspect", bundle("matmul"), "--json").stdout)
        assert facts["kernel"] == "matmul"
        (op,) = facts["ops"]
        assert {(d["extent"], d["splits"]) for d in op["dims"]} >= {(128, 2), (256, 2)}
        assert len(op["cores"]) == 4
        assert [t["output"] for t in op["tensors"]] == [False, False, True]

    def test_shows_loops(self, bundle):
        assert "for i0 = 0 to" in tool("spyre-inspect", bundle("loop")).stdout

    def test_reads_a_lone_sdsc_file(self):
        text = tool("spyre-inspect", ROOT / "tests/corpus/artifacts/abs_seed/sdsc_0.json").stdout
        assert "abs" in text

    def test_a_bad_artifact_is_2(self, bundle):
        directory = bundle("abs")
        (directory / "sdsc_0.json").write_text("{")
        assert "sdsc_0.json" in tool("spyre-inspect", directory, code=2).stderr


GRAPHS = ROOT / "tests" / "corpus" / "graphs"
SCALED = """graph scaled {
  input x : float16[4, 100] stride=[100, 1]
  buffer y : float16[4, 100] stride=[100, 1]
  node y (p0: 4, p1: 100) {
    v0 = load x[100*p0 + p1]
    v1 = constant 1.5 : float16
    v2 = add v0 v1
    store y[100*p0 + p1] v2
  }
  return y
}
"""


class TestConstants:
    def test_they_come_with_the_bundle(self, tmp_path):
        (tmp_path / "scaled.ir").write_text(SCALED)
        tool("spyre-compile", tmp_path / "scaled.ir", "-o", tmp_path / "k")
        np.save(tmp_path / "x.npy", np.zeros((4, 100), np.float16))
        tool("spyre-run", tmp_path / "k", "-i", f"0={tmp_path}/x.npy", "-o", tmp_path / "out")
        assert (np.load(tmp_path / "out" / "arg_1.npy") == 1.5).all()
        assert "constant 1.5" in tool("spyre-inspect", tmp_path / "k").stdout
        assert "no such input" in tool("spyre-run", tmp_path / "k", "-i", f"2={tmp_path}/x.npy", code=1).stderr


class TestWriting:
    """-o takes nothing from anybody."""

    @pytest.mark.parametrize(
        "name, source", [("spyre-bundle", CORPUS / "abs.opspec"), ("spyre-compile", GRAPHS / "softmax.ir")]
    )
    def test_a_folder_of_someone_else_is_left_alone(self, name, source, tmp_path):
        mine = tmp_path / "k" / "notes.txt"
        mine.parent.mkdir()
        mine.write_text("mine")
        refused = tool(name, source, "-o", tmp_path / "k", code=1).stderr
        assert "notes.txt" in refused and "--force" in refused
        assert os.listdir(tmp_path / "k") == ["notes.txt"]
        tool(name, source, "-o", tmp_path / "k", "--force")
        assert mine.read_text() == "mine" and (tmp_path / "k" / "bundle.mlir").exists()
        tool(name, source, "-o", tmp_path / "k")  # now it carries a manifest
        tool("spyre-run", tmp_path / "k")
        assert sorted(os.listdir(tmp_path)) == ["k"] and mine.read_text() == "mine"

    def test_the_current_folder_stays_the_same_folder(self, tmp_path):
        before = tmp_path.stat().st_ino
        subprocess.run([TOOLS / "spyre-bundle", CORPUS / "abs.opspec", "-o", "."], cwd=tmp_path, check=True)
        assert tmp_path.stat().st_ino == before and (tmp_path / "manifest.json").exists()

    def test_a_file_is_no_folder(self, tmp_path):
        (tmp_path / "k").write_text("mine")
        assert "allowed: a folder" in tool("spyre-bundle", CORPUS / "abs.opspec", "-o", tmp_path / "k", code=1).stderr
        assert (tmp_path / "k").read_text() == "mine"


class TestOneTruth:
    """What runs is the image; a part beside it that says something else is an error that names both."""

    def refusal(self, directory: Path) -> str:
        said = tool("spyre-run", directory, code=2).stderr
        assert said == tool("spyre-inspect", directory, code=2).stderr
        return said

    @pytest.mark.parametrize(
        "part", ["sdsc_0.json", "bundle.mlir", "spyreCodeDir/launch_spec.json", "symbol_kinds.json"]
    )
    def test_an_edited_part(self, bundle, part):
        directory = bundle("abs")
        edited = directory / part
        old, new = ('"arg_index":0', '"arg_index":1') if part == "symbol_kinds.json" else ("abs", "neg")
        text = edited.read_text()
        edited.write_text(text.replace(old, new) if old in text else text + "\n")
        said = self.refusal(directory)
        assert part.split("/")[-1] in said and "init_binary.bin" in said

    def test_parameters_of_the_job(self, bundle):
        directory = bundle("broadcast_add")
        plan = directory / "spyreCodeDir" / "spyrecode.json"
        text = plan.read_text()
        assert '"arg_index":0' in text.replace(" ", "")
        plan.write_text(
            text.replace('"arg_index":0', '"arg_index":9', 1).replace('"arg_index": 0', '"arg_index": 9', 1)
        )
        assert "spyrecode.json" in self.refusal(directory)

    def test_a_missing_part_and_one_too_many(self, bundle):
        directory = bundle("softmax")
        moved = (directory / "sdsc_1.json").rename(directory / "sdsc_17.json")
        assert "sdsc_1.json" in self.refusal(directory)
        (directory / "sdsc_1.json").write_text(moved.read_text())
        assert "sdsc_17.json" in self.refusal(directory)
        moved.unlink()
        tool("spyre-run", directory)

    def test_the_code_directory_alone_is_whole(self, bundle, tmp_path):
        (bundle("abs") / "spyreCodeDir").rename(tmp_path / "code")
        tool("spyre-run", tmp_path / "code")


class TestReading:
    """Only regular files, and only as many bytes as can make sense."""

    READERS = [("spyre-opt", 1), ("spyre-compile", 1), ("spyre-plan", 2), ("spyre-bundle", 1), ("spyre-place", 1)]

    @pytest.mark.parametrize("name, code", READERS)
    def test_a_pipe_is_refused_at_once(self, name, code, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        out = ["-o", tmp_path / "k"] if name == "spyre-bundle" else []
        assert "regular file" in tool(name, tmp_path / "pipe", *out, code=code).stderr

    @pytest.mark.parametrize("name, code", READERS)
    def test_a_huge_file_is_refused_unread(self, name, code, tmp_path):
        huge = tmp_path / "huge.ir"
        huge.touch()
        os.truncate(huge, 5 << 30)  # sparse
        out = ["-o", tmp_path / "k"] if name == "spyre-bundle" else []
        assert "allowed: at most" in tool(name, huge, *out, code=code).stderr

    def test_inputs_and_images_too(self, bundle, tmp_path):
        os.mkfifo(tmp_path / "x.npy")
        directory = bundle("abs")
        assert "regular file" in tool("spyre-run", directory, "-i", f"0={tmp_path}/x.npy", code=1).stderr
        os.truncate(directory / "spyreCodeDir" / "init_binary.bin", 5 << 30)
        assert "allowed: at most" in tool("spyre-run", directory, code=2).stderr


class TestDegenerateGraphs:
    """Whatever numbers a graph has, the tools compile it or say why not."""

    @pytest.mark.parametrize("extent", [2**62, 2**63 - 1, 2**42 + 1])
    @pytest.mark.parametrize("name", ["spyre-opt", "spyre-compile", "spyre-plan"])
    def test_extents_that_overflow(self, name, extent, tmp_path):
        (tmp_path / "g.ir").write_text(SCALED.replace("100", str(extent)))
        said = tool(name, tmp_path / "g.ir", code=2).stderr
        assert "above 4398046511104" in said or "more than 1099511627776" in said

    @pytest.mark.parametrize("extent", [0, 1, 2, 64, 2**20, 2**41])
    def test_extents_that_do_not(self, extent, tmp_path):
        for graph in ("softmax", "softmax_columns", "masked_floats"):
            text = (GRAPHS / f"{graph}.ir").read_text()
            (tmp_path / "g.ir").write_text(text.replace("100", str(extent)).replace("128", str(extent)))
            done = subprocess.run([TOOLS / "spyre-opt", tmp_path / "g.ir"], capture_output=True, text=True, timeout=60)
            assert done.returncode in (0, 2), done.stderr
