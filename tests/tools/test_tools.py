"""spyre-bundle, spyre-inspect and spyre-run, driven as a user would."""

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
        damage_image(directory, b"arith.constant 256 : index", b"arith.constant 9984: index")
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
