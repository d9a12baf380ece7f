"""Bad input gets a clear error and loses nothing."""

import os
import subprocess
import sys
import warnings

import pytest
import torch
from torch_spyre import FallbackWarning


def run(code: str, **env) -> subprocess.CompletedProcess:
    """A fresh process, because settings are read once."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **env},
        check=False,
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize(
    "make",
    [
        lambda d: torch.empty(3, dtype=d, device="spyre"),
        lambda d: torch.zeros(3, dtype=d).to("spyre"),
        lambda d: torch.zeros(3, device="spyre").to(d),
        lambda d: torch.ones(3, dtype=d, device="spyre"),
        lambda d: torch.empty_strided((3,), (1,), dtype=d, device="spyre"),
    ],
)
def test_float64_and_complex_are_refused_everywhere_alike(dtype, make):
    with pytest.raises(RuntimeError, match="Spyre backend does not support dtype"):
        make(dtype)


def test_out_of_memory_names_figures_tensors_and_setting():
    code = """
import torch
kept = torch.empty(2**28, dtype=torch.float16, device="spyre")
try:
    torch.empty(2**29, dtype=torch.float16, device="spyre")
except torch.OutOfMemoryError as error:
    print(error)
print("alive", kept[:3].zero_().cpu().tolist())
"""
    out = run(code, SPYRE_CARD_MEMORY_GIB="1").stdout
    for part in (
        "1.00 GiB",
        "512.00 MiB",
        "float16[268435456]",
        "SPYRE_CARD_MEMORY_GIB",
        "largest",
        "alive [0.0, 0.0, 0.0]",
    ):
        assert part in out, (part, out)


def test_memory_pressure_collects_python_garbage():
    code = """
import gc, torch
gc.disable()
class Cycle: pass
c = Cycle(); c.me = c; c.tensor = torch.empty(2**28, dtype=torch.float16, device="spyre"); del c
x = torch.empty(2**29 - 64, dtype=torch.float16, device="spyre")
print("fits", torch.accelerator.memory.memory_stats()["num_alloc_retries"])
"""
    assert run(code, SPYRE_CARD_MEMORY_GIB="1").stdout == "fits 1\n"


@pytest.mark.parametrize("index", [1, 7])
def test_bad_device_index(index):
    with pytest.raises(RuntimeError, match="out of bounds|out of range"):
        torch.empty(3, device=f"spyre:{index}")
    with pytest.raises(RuntimeError, match=r"Device index \d out of range \[0, 1\)"):
        torch.spyre.set_device(index)


def test_wrong_sizes_are_refused_before_anything_moves():
    x = torch.ones(4, 3, device="spyre")
    with pytest.raises(RuntimeError):
        x.copy_(torch.zeros(4, 4))
    assert x.cpu().sum() == 12


def test_views_beyond_the_storage_are_refused():
    x = torch.ones(4, 64, device="spyre")
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.as_strided((100, 64), (64, 1))


def test_a_view_of_another_dtype_is_refused_with_a_way_out():
    x = torch.ones(4, dtype=torch.float16, device="spyre")
    with pytest.raises(RuntimeError, match=r"cannot be viewed as Short.*\n.*try"):
        x.view(torch.int16)


def test_fallback_can_be_an_error_and_is_counted():
    x = torch.ones(3, device="spyre")
    before = torch.spyre.metrics()["fallbacks"].get("aten::erfinv.out", {"calls": 0})["calls"]
    mode = torch.spyre.get_fallback_mode()
    try:
        torch.spyre.set_fallback_mode("error")
        with pytest.raises(RuntimeError, match="aten::erfinv.out is falling back to cpu"):
            x.erfinv()
        torch.spyre.set_fallback_mode("silent")
        x.erfinv()
    finally:
        torch.spyre.set_fallback_mode(mode)
    assert torch.spyre.metrics()["fallbacks"]["aten::erfinv.out"]["calls"] == before + 1
    with pytest.raises(ValueError, match="warn, error, silent"):
        torch.spyre.set_fallback_mode("loud")


def test_fallback_warns_once_per_operator_and_line():
    code = """
import torch, warnings
x = torch.ones(3, device="spyre")
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(3):
        x.erfinv()
    x.erfinv()
print(len(seen), seen[0].category.__name__, seen[0].lineno)
"""
    assert run(code, TORCH_SPYRE_FALLBACK="warn").stdout == "2 FallbackWarning 7\n"


def test_int64_warning_comes_once_and_can_be_silenced():
    code = """
import torch, warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    torch.arange(3).to("spyre"); torch.arange(4).to("spyre")
print(sum("downcasting to int32" in str(w.message) for w in seen))
"""
    assert run(code, TORCH_SPYRE_DOWNCAST_WARN="1").stdout == "1\n"
    assert run(code, TORCH_SPYRE_DOWNCAST_WARN="off").stdout == "0\n"


MALFORMED = [
    ("AIU_WORLD_SIZE", "99"),
    ("DXP_LX_FRAC_AVAIL", "nan"),
    ("FLEX_DEVICE", "GPU"),
    ("LAYOUT_SOLVER", "magic"),
    ("LOCAL_RANK", "first"),
    ("LX_PLANNING", "maybe"),
    ("SENCORES", "33"),
    ("SPYRE_CARD_MEMORY_GIB", "lots"),
    ("SPYRE_DEVICES", "0,one"),
    ("SPYRE_EAGER_CACHE_SIZE", "-1"),
    ("SPYRE_THREADS", "many"),
    ("TORCH_SPYRE_DEBUG", "loud"),
    ("TORCH_SPYRE_FALLBACK", "maybe"),
]


#: One of each kind: a fraction, a choice, a switch, a number, a list, and one that the glue reads. Each is a process.
OF_EACH_KIND = (
    "DXP_LX_FRAC_AVAIL",
    "LAYOUT_SOLVER",
    "LX_PLANNING",
    "SENCORES",
    "SPYRE_DEVICES",
    "TORCH_SPYRE_FALLBACK",
)


@pytest.mark.parametrize(
    "name, value",
    [row if row[0] in OF_EACH_KIND else pytest.param(*row, marks=pytest.mark.full) for row in MALFORMED],
)
def test_a_malformed_setting_is_named_once_when_the_device_is_first_used(name, value):
    code = """
import torch
print("torch works", torch.ones(2).add(1).tolist())
try:
    torch.ones(2).to("spyre")
except RuntimeError as error:
    print(error)
print(torch.spyre.show_config().count("is not allowed"))
"""
    done = run(code, **{name: value})
    assert done.stderr == "" and done.stdout.startswith("torch works [2.0, 2.0]\n"), done.stderr
    assert done.stdout.count(f"{name}='{value}' is not allowed") == 1, done.stdout
    in_table = name != "SPYRE_DEVICES"  # a list, which the device reads
    assert done.stdout.endswith(f"\n{in_table:d}\n"), done.stdout


def test_malformed_settings_leave_programs_of_the_cpu_alone():
    # A product is called, not generated: no C++ compiler has to run.
    code = "import torch; print(torch.compile(lambda x: x @ x)(torch.ones(2, 2)).tolist())"
    assert run(code, SENCORES="garbage", DXP_LX_FRAC_AVAIL="x", LX_PLANNING="?").stdout == "[[2.0, 2.0], [2.0, 2.0]]\n"


WRONG = {
    "matmul": lambda x: x @ x[:3],
    "cat": lambda x: torch.cat([x, x[:, :3]]),
    "add": lambda x: x + x[:3, :3],
    "index_select": lambda x: x.index_select(0, torch.tensor([9]).to(x.device)),
    "index": lambda x: x[torch.tensor([9]).to(x.device)],
    "gather": lambda x: x.gather(0, torch.tensor([[9]]).to(x.device)),
    "softmax": lambda x: x.softmax(5),
    "sum": lambda x: x.sum(7),
    "linear": lambda x: torch.nn.functional.linear(x, x[:, :3]),
    "embedding": lambda x: torch.nn.functional.embedding(torch.tensor([9]).to(x.device), x),
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, (3,)),
    "bmm": lambda x: torch.bmm(x, x),
    "conv": lambda x: torch.nn.functional.conv1d(x, x),
    "scatter": lambda x: x.scatter(0, torch.tensor([[9]]).to(x.device), 1.0),
    "topk": lambda x: x.topk(99),
    "where": lambda x: torch.where(x > 0, x, x[:3, :3]),
    "cumsum": lambda x: x.cumsum(4),
}


# Forms that decline to run: a fallback that raises, which is counted.
DECLINED = {"gather", "scatter", "topk", "cumsum", "conv"}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_gets_pytorchs_error_and_nothing_else(name):
    x = torch.arange(64.0).reshape(8, 8)
    with pytest.raises(Exception) as expected:
        WRONG[name](x)
    before = torch.spyre.metrics()["fallbacks"]
    given = torch.spyre.get_fallback_mode()
    torch.spyre.set_fallback_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with pytest.raises(type(expected.value)) as found:
                WRONG[name](x.half().to("spyre"))
    finally:
        torch.spyre.set_fallback_mode(given)
    said, wanted = (str(error.value).split("\n")[0].replace("Half", "Float") for error in (found, expected))
    assert said == wanted
    assert not [w for w in seen if issubclass(w.category, FallbackWarning)]
    if name not in DECLINED:
        assert torch.spyre.metrics()["fallbacks"] == before


def test_a_fallback_that_raises_is_counted():
    x = -torch.eye(4, device="spyre")
    before = torch.spyre.metrics()["fallbacks"]
    with pytest.raises(RuntimeError, match="positive-definite"):
        torch.linalg.cholesky(x)
    after = torch.spyre.metrics()["fallbacks"]
    calls = [sum(entry["calls"] for entry in counts.values()) for counts in (before, after)]
    assert calls[1] == calls[0] + 1


def test_a_tensor_without_readable_memory_still_prints():
    x = torch.ones(4, 64, dtype=torch.float16, device="spyre")
    from torch_spyre._C import DataFormats, SpyreTensorLayout, set_spyre_tensor_layout

    set_spyre_tensor_layout(x, SpyreTensorLayout([2, 2, 64], [64, 64, 1], DataFormats.SEN169_FP16))
    assert "unreadable" in repr(x) and x.shape == (4, 64)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x[1:].copy_(x[:-1]),
        lambda x: x[1:].add_(x[:-1]),
        lambda x: x[:1].expand(3).mul_(2),
        lambda x: x[:1].expand(3).copy_(torch.arange(3.0)),
    ],
    ids=["copy of neighbours", "sum of neighbours", "one element thrice", "copies into one element"],
)
def test_writes_that_overlap_are_pytorchs_error(write):
    x = torch.arange(8.0)
    on_card = x.to("spyre")
    with pytest.raises(RuntimeError, match="single memory location"):
        write(x)
    with pytest.raises(RuntimeError, match="single memory location"):
        write(on_card)
    assert torch.equal(on_card.cpu(), x)


def test_a_slice_written_in_place_is_not_copied_onto_itself():
    x = torch.arange(40.0).half()
    on_card = x.to("spyre")
    x[10:16] *= 2
    on_card[10:16] *= 2
    assert torch.equal(on_card.cpu(), x)


def test_unknown_settings_are_said_once_when_a_device_is_used_with_the_nearest_name():
    code = """
import sys, torch
print("imported", file=sys.stderr)
torch.ones(3, device="spyre").add(1).cpu()
torch.ones(3, device="spyre:0").sum().cpu()
"""
    environment = {**os.environ, "SPYRE_EXECUTER": "fast", "SPYRE_CHEKER": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    before, after = done.stderr.split("imported")
    said = "the environment sets what is no setting of Spyre: SPYRE_CHEKER (nearest: SPYRE_CHECKER), "
    assert "SPYRE_CHEKER" not in before
    assert after.count(said + "SPYRE_EXECUTER (nearest: SPYRE_EXECUTOR)") == 1


class TestRefusalsOfTheCompiler:
    GRAPH = """graph g {
      input x : float16[4, 64]
      buffer y : float16[4, 64]
      node y (p0: 4, p1: 64) aten="aten.what" at="model.py:7" {
        v0 = load x[64*p0 + p1]
        v1 = what v0
        store y[64*p0 + p1] v1
      }
      return y
    }
    """

    def test_know_their_node(self):
        from torch_spyre import _C

        with pytest.raises(_C.CompileError, match="note it comes from aten.what") as refused:
            _C.compile_graph(self.GRAPH)
        error = refused.value
        assert (error.kind, error.node, error.aten, error.source) == ("unsupported", "y", "aten.what", "model.py:7")

    def test_of_text_have_the_node_too(self):
        from torch_spyre import _C

        with pytest.raises(_C.CompileError, match="is not an element type of the card") as refused:
            _C.compile_graph(self.GRAPH.replace("buffer y : float16", "buffer y : float64"))
        assert refused.value.kind == "parse error" and refused.value.node == "y"


def test_compile_options_are_values_checked_by_the_table():
    from torch_spyre import _C

    options = _C.CompileOptions(sencores=4, lx_planning=False, layout_solver="greedy", dxp_lx_frac_avail=1)
    assert (options.cores, options.lx_planning, options.solver) == (4, False, "greedy")
    assert "SENCORES" not in os.environ
    with pytest.raises(RuntimeError, match="SENCORES='33' is not allowed: expected 1 to 32"):
        _C.CompileOptions(sencores=33)
    with pytest.raises(TypeError, match="has no option 'sencore'"):
        _C.CompileOptions(sencore=4)
