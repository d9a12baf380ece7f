"""Kernels written as OpSpec text, compiled to bundles, run on the card, judged by PyTorch on the CPU."""

import json
import subprocess
import sys

import pytest
import torch
from torch_spyre import _C

pytestmark = pytest.mark.skipif(not hasattr(_C, "launch_jobplan"), reason="this build of torch_spyre has no launch")

# The card's 16-bit format has 9 fraction bits: one rounding is at most 2^-10 of the value.
ULP = 2.0**-9


def argument(i: int, role: str, shape, size, strides) -> str:
    return f"argument {i} {{ role={role} dtype=float16 shape={shape} device_size={size} stride_map={strides} }}"


def rows(i: int, role: str, m: int, n: int) -> str:
    """A (m, n) tensor with sticks along n, as `.to("spyre")` lays it out."""
    sticks = -(-n // 64)
    return argument(i, role, [m, n], [sticks, m, 64], [64, n, 1])


def tensor(direction: str, name: str, m: int, n: int, where: str, row: str = "c0", col: str = "c1") -> str:
    sticks = -(-n // 64)
    coords = f"[floor({col}/64), {row}, Mod({col}, 64)]"
    return f"{direction} {name} {{ device_size=[{sticks}, {m}, 64] coords={coords} {where} }}"


def pointwise(op: str, m: int, n: int, inputs: int, splits: int = 1) -> str:
    args = [rows(i, "input", m, n) for i in range(inputs)] + [rows(inputs, "output", m, n)]
    tensors = [tensor("in", f"X{i}", m, n, f"hbm={i}") for i in range(inputs)]
    tensors.append(tensor("out", "Y", m, n, f"hbm={inputs}"))
    body = "\n".join(tensors)
    return f"""kernel {op} {{
  {chr(10).join(args)}
  op {op} {{
    iteration_space={{c0: ({m}, {splits}), c1: ({n}, 1)}}
    core_id_to_work_slice={{c0: Mod(core_id, {splits}), c1: 0}}
    {body}
  }}
}}"""


def matmul(m: int, k: int, n: int, m_splits: int, k_splits: int) -> str:
    return f"""kernel matmul {{
  {rows(0, "input", m, k)}
  {rows(1, "input", k, n)}
  {rows(2, "output", m, n)}
  op batchmatmul {{
    is_reduction=True
    iteration_space={{m: ({m}, {m_splits}), n: ({n}, 1), k: ({k}, {k_splits})}}
    core_id_to_work_slice={{m: Mod(floor(core_id/{k_splits}), {m_splits}), n: 0, k: Mod(core_id, {k_splits})}}
    {tensor("in", "X", m, k, "hbm=0", "m", "k")}
    {tensor("in", "W", k, n, "hbm=1", "k", "n")}
    {tensor("out", "Y", m, n, "hbm=2", "m", "n")}
  }}
}}"""


def softmax(m: int, n: int, splits: int) -> str:
    """max, sub, exp, sum, realdiv over rows; maxima in the pool, the rest in LX."""
    space = f"""iteration_space={{c0: ({m}, {splits}), c1: ({n}, 1)}}
    core_id_to_work_slice={{c0: Mod(core_id, {splits}), c1: 0}}"""
    local = "kernel_local=True"
    scratch = -(-n // 64) * (m // splits) * 128
    maxima = f"M {{ device_size=[1, {m}, 64] coords=[0, c0, 0] hbm_pool=0 {local} }}"
    sums = f"S {{ device_size=[1, {m}, 64] coords=[0, c0, 0] lx={scratch} {local} }}"
    x = tensor("in", "X", m, n, "hbm=0")
    return f"""kernel softmax {{
  pool_bytes={m * 128}
  {rows(0, "input", m, n)}
  {rows(1, "output", m, n)}
  op max {{
    is_reduction=True
    {space}
    {x}
    out {maxima}
  }}
  op sub {{
    {space}
    {x}
    in {maxima}
    {tensor("out", "D", m, n, f"lx=0 {local}")}
  }}
  op exp {{
    {space}
    {tensor("in", "D", m, n, f"lx=0 {local}")}
    {tensor("out", "E", m, n, f"lx=0 {local}")}
  }}
  op sum {{
    is_reduction=True
    {space}
    {tensor("in", "E", m, n, f"lx=0 {local}")}
    out {sums}
  }}
  op realdiv {{
    {space}
    {tensor("in", "E", m, n, f"lx=0 {local}")}
    in {sums}
    {tensor("out", "Y", m, n, "hbm=1")}
  }}
}}"""


def column_sum(m: int, n: int) -> str:
    """Sum over the rows; the stick stays along the columns."""
    return f"""kernel column_sum {{
  {rows(0, "input", m, n)}
  {argument(1, "output", [n], [n // 64, 64], [64, 1])}
  op sum {{
    is_reduction=True
    iteration_space={{c0: ({m}, 1), c1: ({n}, 1)}}
    core_id_to_work_slice={{c0: 0, c1: 0}}
    {tensor("in", "X", m, n, "hbm=0")}
    out Y {{ device_size=[{n // 64}, 64] coords=[floor(c1/64), Mod(c1, 64)] hbm=1 }}
  }}
}}"""


@pytest.fixture
def prepare(tmp_path):
    """Text in, prepared kernel out."""
    count = 0

    def from_text(text: str, **options) -> "_C.JobPlan":
        nonlocal count
        count += 1
        _C.write_bundle(text, str(tmp_path / f"kernel{count}"))
        return _C.prepare_kernel(str(tmp_path / f"kernel{count}" / "spyreCodeDir"), **options)

    return from_text


def on_card(x: torch.Tensor) -> torch.Tensor:
    return x.to("spyre")


def as_card(x: torch.Tensor) -> torch.Tensor:
    """The values the card has after a transfer, in fp32."""
    return x.to("spyre").cpu().float()


def close(actual: torch.Tensor, expected: torch.Tensor, rtol: float, atol: float = 0.0) -> None:
    torch.testing.assert_close(actual.cpu().float(), expected.float(), rtol=rtol, atol=atol)


def small(*shape, seed: int = 0) -> torch.Tensor:
    """Multiples of 1/8 in [-4, 4): exact in every format here."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randint(-32, 32, shape, generator=generator) / 8).half()


class TestAnswers:
    def test_add_of_exact_values_is_exact(self, prepare):
        plan = prepare(pointwise("add", 8, 192, 2, splits=4))
        a, b = small(8, 192), small(8, 192, seed=1)
        y = torch.empty(8, 192, dtype=torch.float16, device="spyre")
        _C.launch_jobplan(plan, [on_card(a), on_card(b), y])
        assert torch.equal(y.cpu(), a + b)

    def test_add_rounds_once(self, prepare):
        plan = prepare(pointwise("add", 16, 100, 2, splits=2))
        torch.manual_seed(0)
        a, b = torch.randn(16, 100).half(), torch.randn(16, 100).half()
        y = torch.empty(16, 100, dtype=torch.float16, device="spyre")
        _C.launch_jobplan(plan, [on_card(a), on_card(b), y])
        close(y, as_card(a) + as_card(b), rtol=ULP)

    def test_matmul_with_k_over_two_cores(self, prepare):
        plan = prepare(matmul(32, 128, 64, m_splits=2, k_splits=2))
        torch.manual_seed(0)
        x, w = torch.randn(32, 128).half(), torch.randn(128, 64).half()
        y = torch.empty(32, 64, dtype=torch.float16, device="spyre")
        _C.launch_jobplan(plan, [on_card(x), on_card(w), y])
        # fp32 sums of 128 products, rounded once: half a unit of the result, and the order of the sum.
        close(y, as_card(x) @ as_card(w), rtol=ULP, atol=1e-5)

    def test_matmul_of_exact_values_is_exact(self, prepare):
        plan = prepare(matmul(4, 64, 64, m_splits=1, k_splits=1))
        x, w = torch.zeros(4, 64).half(), torch.eye(64).half()
        x[:, ::3] = small(4, 22)
        y = torch.empty(4, 64, dtype=torch.float16, device="spyre")
        _C.launch_jobplan(plan, [on_card(x), on_card(w), y])
        assert torch.equal(y.cpu(), x)

    def test_reduction_over_rows(self, prepare):
        plan = prepare(column_sum(10, 128))
        x = small(10, 128)
        y = torch.empty(128, dtype=torch.float16, device="spyre")
        _C.launch_jobplan(plan, [on_card(x), y])
        assert torch.equal(y.cpu().float(), x.float().sum(0))

    def test_softmax_chain_through_pool_and_lx(self, prepare):
        plan = prepare(softmax(8, 100, splits=4))
        torch.manual_seed(0)
        x = torch.randn(8, 100).half()
        y = torch.empty(8, 100, dtype=torch.float16, device="spyre")
        _C.launch_jobplan(plan, [on_card(x), y])
        # x - max up to 8 rounded to 2^-9 of itself moves exp by up to 2^-6; sum and quotient round once more each.
        close(y, torch.softmax(as_card(x), 1), rtol=2.0**-6, atol=1e-4)

    def test_launches_of_one_plan_bind_their_own_tensors(self, prepare):
        plan = prepare(pointwise("neg", 4, 64, 1))
        xs = [small(4, 64, seed=s) for s in range(4)]
        ys = [torch.empty(4, 64, dtype=torch.float16, device="spyre") for _ in xs]
        for x, y in zip(xs, ys, strict=True):
            _C.launch_jobplan(plan, [on_card(x), y])
        for x, y in zip(xs, ys, strict=True):
            assert torch.equal(y.cpu(), -x)

    def test_streams_compute_side_by_side(self, prepare):
        plan = prepare(pointwise("neg", 4, 64, 1))
        torch.spyre.synchronize()
        x, ys = small(4, 64), []
        dx = on_card(x)
        for _ in range(4):
            with torch.spyre.Stream():
                y = torch.empty(4, 64, dtype=torch.float16, device="spyre")
                _C.launch_jobplan(plan, [dx, y])
                ys.append(y)
        torch.spyre.synchronize()
        for y in ys:
            assert torch.equal(y.cpu(), -x)


class TestPlan:
    def test_says_what_it_will_do(self, prepare):
        plan = prepare(pointwise("neg", 4, 64, 1))
        assert plan.num_steps() == 3
        assert [plan.get_step_type(i) for i in range(3)] == ["HostCompute", "H2D", "Compute"]
        assert [plan.get_step_stream_role(i) for i in range(3)] == ["Prep", "Prep", "Dev"]
        assert all(plan.get_step_pipeline_barrier(i) for i in range(3))
        assert plan.get_step_name(2) == "kernel1/spyreCodeDir/bundle.mlir#2"
        size = plan.job_allocation_size()
        assert repr(plan) == f"<JobPlan steps=3 job_allocation_size={size} expected_inputs=0 pinned_buffers=1>"
        with pytest.raises(IndexError, match="step 3 of a plan of 3"):
            plan.get_step_type(3)

    def test_takes_a_name_for_profiles(self, prepare):
        assert prepare(pointwise("neg", 4, 64, 1), profiler_name="fused").get_step_name(0) == "fused#0"

    def test_counts_the_last_launch(self, prepare):
        plan = prepare(pointwise("neg", 4, 64, 1))
        y = torch.empty(4, 64, dtype=torch.float16, device="spyre")
        _C.launch_jobplan(plan, [on_card(small(4, 64)), y])
        torch.spyre.synchronize()
        counts = plan.last_run_counts()
        assert (counts["hbm_read"], counts["hbm_written"]) == (512, 512)
        assert counts["ops"][0]["op"] == "neg"

    def test_the_summary_names_ops_and_parameters(self, prepare, tmp_path):
        prepare(softmax(8, 100, splits=4))
        summary = _C.read_bundle_summary(str(tmp_path / "kernel1"))
        assert [op["op"] for op in summary["ops"]] == ["max", "sub", "exp", "sum", "realdiv"]
        assert summary["parameters"] == ["arg_0_base_addr", "arg_1_base_addr"]
        assert summary["pool_bytes"] == 1024


class TestRefusals:
    def test_arguments_are_spyre_tensors(self, prepare):
        plan = prepare(pointwise("neg", 4, 64, 1))
        with pytest.raises(RuntimeError, match="SpyreStream::launch: argument 0 must be on Spyre device, found cpu"):
            _C.launch_jobplan(plan, [small(4, 64), on_card(small(4, 64))])

    def test_the_number_of_arguments_is_checked(self, prepare):
        plan = prepare(pointwise("neg", 4, 64, 1))
        with pytest.raises(RuntimeError, match="found 1 arguments, allowed: 2"):
            _C.launch_jobplan(plan, [on_card(small(4, 64))])

    def test_missing_directories_are_named(self):
        with pytest.raises(RuntimeError, match="/no/such/kernel"):
            _C.prepare_kernel("/no/such/kernel")

    def test_a_bad_command_is_named(self, prepare, tmp_path):
        prepare(pointwise("neg", 4, 64, 1))
        path = tmp_path / "kernel1" / "spyreCodeDir" / "spyrecode.json"
        path.write_text(path.read_text().replace("ComputeOnDevice", "ComputeOnMoon"))
        with pytest.raises(RuntimeError, match="Failed to parse SpyreCode command:.*ComputeOnMoon"):
            _C.prepare_kernel(str(path.parent))

    def test_text_that_is_no_kernel_is_refused(self, tmp_path):
        with pytest.raises(RuntimeError, match="opspec"):
            _C.write_bundle("kernel {", str(tmp_path / "k"))


class TestFaults:
    def test_a_fault_poisons_its_stream_and_reset_recovers(self, prepare):
        plan = prepare(pointwise("neg", 64, 64, 1))
        good = prepare(pointwise("neg", 4, 64, 1))
        x, kept = small(4, 64), on_card(small(64, 64))
        short = torch.empty(4, 64, dtype=torch.float16, device="spyre")
        dx = on_card(x)
        torch.spyre.synchronize()
        stream = torch.spyre.Stream()
        with stream:
            _C.launch_jobplan(plan, [dx, short])  # the kernel wants 64 rows, the tensors have 4
            with pytest.raises(RuntimeError, match=r"core 0, address 0x[0-9a-f]+, sdsc_0.json \(neg\), instruction 0"):
                stream.synchronize()
            with pytest.raises(RuntimeError, match="instruction 0"):
                _C.launch_jobplan(good, [dx, short])
        assert torch.equal(kept.cpu(), small(64, 64)), "other streams and data live on"
        _C._reset_device(0)
        with stream:
            _C.launch_jobplan(good, [dx, short])
            stream.synchronize()
        assert torch.equal(short.cpu(), -x)

    def test_other_streams_go_on(self, prepare):
        """Queued or waited for: what fails leaves every other stream, its data and the same plan usable."""
        bad, good = prepare(pointwise("neg", 64, 64, 1)), prepare(pointwise("neg", 4, 64, 1))
        x, wide = small(4, 64), small(64, 64)
        dx, y = on_card(x), torch.empty(4, 64, dtype=torch.float16, device="spyre")
        torch.spyre.synchronize()
        failed, other = torch.spyre.Stream(), torch.spyre.Stream()
        for wait in (False, True):
            with failed, pytest.raises(RuntimeError, match="instruction 0"):
                _C.launch_jobplan(bad, [dx, y], wait=wait)
                failed.synchronize()
            assert _C.stream_get_error(failed) == _C.SpyreStreamError.Shutdown
            assert _C.stream_get_error(other) == _C.SpyreStreamError.Success
            y.zero_()
            with other:
                _C.launch_jobplan(good, [dx, y])
                other.synchronize()
            assert torch.equal(y.cpu(), -x)
            with other:  # the plan that failed, with tensors that fit
                result = torch.empty(64, 64, dtype=torch.float16, device="spyre")
                _C.launch_jobplan(bad, [on_card(wide), result])
                other.synchronize()
            assert torch.equal(result.cpu(), -wide)
            assert torch.equal((dx + dx).cpu(), x + x), "eager operators of the default stream"
            _C._reset_device(0)


class TestPlans:
    def plan(self, directory, *commands):
        """A SpyreCode directory with these commands and an image of zeros."""
        folder = directory / "spyreCodeDir"
        folder.mkdir()
        preparation = [
            {"command": "Allocate", "properties": {"size": "1024"}},
            {"command": "InitTransfer",
             "properties": {"init_bin_file": "init_binary.bin", "dev_ptr": str(7 << 34), "size": "1024"}},
        ]  # fmt: skip
        code = {"JobPreparationPlan": preparation, "JobExecPlan": list(commands)}
        (folder / "spyrecode.json").write_text(json.dumps(code))
        (folder / "init_binary.bin").write_bytes(bytes(1024))
        return _C.prepare_kernel(str(folder))

    def fetch(self, pointer: int, size: int = 128):
        properties = {"dirn": "true", "host_handle": "out", "dev_ptr": str(pointer), "size": str(size)}
        return {"command": "DataTransfer", "properties": properties}

    def test_bytes_of_a_tensor_go_to_the_host(self, tmp_path):
        plan = self.plan(tmp_path, self.fetch((1 << 34) + 128))
        assert (plan.num_steps(), plan.get_step_type(0), plan.get_step_stream_role(0)) == (1, "D2H", "Dev")
        x, y = on_card(small(128)), on_card(small(128, seed=1))
        torch.spyre.synchronize()
        torch.spyre.reset_metrics()
        _C.launch_jobplan(plan, [x, y])
        torch.spyre.synchronize()
        assert torch.spyre.metrics()["bytes_to_host"] == 128 and torch.spyre.metrics()["launches"] == 0
        with pytest.raises(RuntimeError, match="D2H tensor-segment lookup out of range"):
            _C.launch_jobplan(plan, [x])
        with pytest.raises(RuntimeError, match="D2H transfer out of bounds"):
            _C.launch_jobplan(plan, [x, on_card(small(64))])

    def test_the_host_may_compute_and_nothing_else(self, tmp_path):
        hcm = {"vdci": {}, "senConstants": []}
        properties = {"ihandle": "", "ishape": ["0"], "ohandle": "o", "size": "64", "hcm": hcm}
        plan = self.plan(tmp_path, {"command": "ComputeOnHost", "properties": properties})
        _C.launch_jobplan(plan, [on_card(small(64))])
        torch.spyre.synchronize()


class TestSymbolicArgs:
    ADDRESS, DIMENSION = _C.SymbolicArgKind.kAddress, _C.SymbolicArgKind.kDimension

    def test_its_fields(self):
        arg = _C.SymbolicArg(kind=self.ADDRESS, tensor_id=1)
        assert (arg.kind, arg.tensor_id, arg.dim_index, arg.value) == (self.ADDRESS, 1, -1, -1)
        assert repr(arg) == "SymbolicArg(kind=kAddress, tensor_id=1, dim_index=-1, value=-1)"
        arg = _C.SymbolicArg(self.DIMENSION, 0, dim_index=2, value=48)
        assert (arg.kind, arg.dim_index, arg.value) == (self.DIMENSION, 2, 48)

    def test_they_say_which_tensor_is_which_parameter(self, prepare):
        plan = prepare(pointwise("neg", 4, 64, 1))
        x, y = on_card(small(4, 64)), torch.zeros(4, 64, dtype=torch.float16, device="spyre")
        _C.launch_jobplan(plan, [y, x], [_C.SymbolicArg(self.ADDRESS, 1), _C.SymbolicArg(self.ADDRESS, 0)])
        assert torch.equal(y.cpu(), -small(4, 64))
        with pytest.raises(RuntimeError, match="found 1 symbolic arguments, allowed: 2"):
            _C.launch_jobplan(plan, [x, y], symbolic_args=[_C.SymbolicArg(self.ADDRESS, 0)])
        with pytest.raises(RuntimeError, match=r"tensor_id=5 out of range \[0, 2\)"):
            _C.launch_jobplan(plan, [x, y], symbolic_args=[_C.SymbolicArg(self.ADDRESS, 5)] * 2)
        with pytest.raises(RuntimeError, match="is an extent, the kernel .* takes an address"):
            _C.launch_jobplan(plan, [x, y], symbolic_args=[_C.SymbolicArg(self.DIMENSION, 0, 0)] * 2)

    def test_their_values(self):
        x, y = on_card(small(4, 64)), on_card(small(4, 64))
        one, two = (_C._resolve_symbolic_args([t], [_C.SymbolicArg(self.ADDRESS, 0)])[0] for t in (x, y))
        assert one != two
        args = [_C.SymbolicArg(self.ADDRESS, 1), _C.SymbolicArg(self.ADDRESS, 0), _C.SymbolicArg(self.DIMENSION, 1, 1)]
        assert _C._resolve_symbolic_args([x, y], args) == [two, one, 64]


def test_a_failed_launch_leaves_other_streams_usable():
    code = """
import torch
table = torch.arange(64.0, dtype=torch.float16).reshape(8, 8).to("spyre")
look_up = torch.compile(lambda t, i: t.index_select(0, i))
good, bad = (torch.tensor([i], device="spyre") for i in (3, 99))
assert look_up(table, good).tolist() == [[24.0 + i for i in range(8)]]
failed = torch.spyre.Stream()
with failed:
    look_up(table, bad)
    for f in (torch.exp, torch.neg, torch.abs):  # kernels whose programs are first loaded behind the failure
        try:
            f(table)
        except RuntimeError as error:
            assert "fault" in str(error).lower() or "core" in str(error), error
try:
    failed.synchronize()
    raise SystemExit("the failure was lost")
except RuntimeError as error:
    pass
assert (-table).abs().equal(table) and look_up(table, good).shape == (1, 8)
assert torch.equal(table.neg().exp().cpu() >= 0, torch.ones(8, 8, dtype=torch.bool))
with torch.spyre.Stream():
    assert (table + table)[1, 1].item() == 18
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_argument_without_memory_is_refused_before_anything_runs(tmp_path):
    _C.write_bundle(pointwise("neg", 2, 64, 1), str(tmp_path))
    plan = _C.prepare_kernel(str(tmp_path / "spyreCodeDir"))
    x, y = (torch.ones(2, 64, dtype=torch.float16, device="spyre") for _ in range(2))
    y.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="no memory"):
        _C.launch_jobplan(plan, [x, y], wait=True)
    with pytest.raises(RuntimeError, match="no memory"):
        _C.launch_jobplan(plan, [x, torch.empty(0, 64, dtype=torch.float16, device="spyre")], wait=True)
    y.untyped_storage().resize_(256)
    _C.launch_jobplan(plan, [x, y], wait=True)
    assert torch.equal(y.cpu(), -x.cpu())
