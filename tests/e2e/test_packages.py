"""Packages: a fresh process computes the same bytes from one and compiles nothing; one that is not whole is refused."""

import gc
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch_spyre
from torch_spyre._inductor import artifacts, config, kernels

from tests.e2e import packaged
from tests.e2e.packaged import batch

ROOT = Path(__file__).resolve().parents[2]


def compiled_in_a_package(function, *calls):
    torch._dynamo.reset()
    with torch_spyre.packaging(), torch.no_grad():
        compiled = torch.compile(function)
        results = [compiled(*args, **kwargs) for args, kwargs in calls]
    return compiled, results


def elsewhere(path, what, tmp_path, **environment) -> dict:
    """What a process makes of a package that has no cache and may not compile."""
    finished = subprocess.run(
        [sys.executable, "-m", "tests.e2e.packaged", str(path), what],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "SPYRE_REQUIRE_PRECOMPILED": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "no cache"),
            **environment,
        },
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout.splitlines()[-1])


NOTHING = {"graphs_compiled": 0, "frames": 0, "graphs": 0, "lowered": 0}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A package of a function, to look at and to copy."""
    path = tmp_path_factory.mktemp("saved") / "residual"
    compiled, (result,) = compiled_in_a_package(packaged.residual, ((batch(64, 64), batch(64, 64)), {}))
    torch_spyre.save(compiled, path)
    return path, result


@pytest.fixture
def copied(saved, tmp_path):
    shutil.copytree(saved[0], tmp_path / "copy")
    return tmp_path / "copy"


def files_of(path):
    return sorted(str(p.relative_to(path)) for p in Path(path).rglob("*") if p.is_file())


@pytest.fixture(autouse=True)
def without_gradients():
    """As everything here is compiled: PyTorch guards its mode."""
    with torch.no_grad():
        yield


# --- a fresh process -------------------------------------------------------------------------------------------------


def test_a_function_runs_where_nothing_is_compiled(saved, tmp_path):
    path, result = saved
    assert elsewhere(path, "function", tmp_path) == {"result": packaged.digest(result), "compiled": NOTHING}


def test_a_module_runs_with_weights_that_load_is_given(tmp_path):
    compiled, results = compiled_in_a_package(
        packaged.mlp(), ((batch(4, 128),), {}), ((batch(4, 128),), {"twice": True}), ((batch(9, 128),), {})
    )
    torch_spyre.save(compiled, tmp_path / "mlp")
    row = packaged.Mlp().half().up.weight[0].numpy().tobytes()
    assert not any(row in (tmp_path / "mlp" / name).read_bytes() for name in files_of(tmp_path / "mlp"))
    assert elsewhere(tmp_path / "mlp", "module", tmp_path) == {"result": packaged.digest(results), "compiled": NOTHING}


def test_a_program_for_many_sizes_is_one_program_of_a_package(tmp_path):
    calls = [((batch(n, 64), batch(64, 64)), {}) for n in (8, 17, 130)]
    for (x, _), _ in calls:
        torch._dynamo.mark_dynamic(x, 0, min=2, max=256)
    compiled, results = compiled_in_a_package(packaged.rows, *calls)
    torch_spyre.save(compiled, tmp_path / "rows")
    (call,) = json.loads((tmp_path / "rows" / "manifest.json").read_text())["calls"]
    assert call == {"L['x']": [None, 64], "L['y']": [64, 64]}
    assert elsewhere(tmp_path / "rows", "rows", tmp_path) == {"result": packaged.digest(results), "compiled": NOTHING}


def test_graphs_with_python_between_them_are_one_package(tmp_path):
    compiled, results = compiled_in_a_package(packaged.Broken(), ((batch(4, 64),), {}))
    torch_spyre.save(compiled, tmp_path / "broken")
    found = elsewhere(tmp_path / "broken", "broken", tmp_path)
    assert found == {"result": packaged.digest(results), "compiled": NOTHING}


def test_a_model_generates_where_nothing_is_compiled(tmp_path):
    model = packaged.granite()
    torch._dynamo.reset()
    with torch_spyre.packaging():
        model.forward = torch.compile(model.forward)
        tokens = packaged.generate(model)
    torch_spyre.save(model, tmp_path / "granite")
    found = elsewhere(tmp_path / "granite", "granite", tmp_path)
    assert found == {"result": packaged.digest(tokens), "compiled": NOTHING}


def test_an_exported_program_brings_its_weights(tmp_path):
    with torch.no_grad():
        exported = torch.export.export(packaged.mlp(), (batch(4, 128),))
        expected = packaged.mlp()(batch(4, 128))
    torch_spyre.save(exported, tmp_path / "exported")
    run = torch_spyre.load(tmp_path / "exported")
    assert torch.allclose(run(batch(4, 128)).cpu(), expected.cpu(), rtol=2e-2, atol=2e-2)
    with pytest.raises(torch_spyre.PackageError, match=r"it was exported for .*\[4, 128\].*, found .*\[5, 128\]"):
        run(batch(5, 128))
    found = elsewhere(tmp_path / "exported", "exported", tmp_path)
    assert found == {"result": packaged.digest(run(batch(4, 128))), "compiled": NOTHING}


def test_an_exported_program_keeps_its_buffers(tmp_path):
    with torch.no_grad():
        exported = torch.export.export(packaged.Counting().to("spyre"), (batch(4, 64),))
    torch_spyre.save(exported, tmp_path / "counting")
    model, x = packaged.Counting(), batch(4, 64).cpu()
    run = torch_spyre.load(tmp_path / "counting")
    for _ in range(2):
        found, expected = run(batch(4, 64)), model(x)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert torch.allclose(found[name].cpu(), value, rtol=2e-2, atol=2e-2), name


# --- calls that a package has no program for -------------------------------------------------------------------------


def test_a_call_that_no_program_fits_says_why(saved):
    run = torch_spyre.load(saved[0], packaged.residual)
    with pytest.raises(torch_spyre.PackageError) as error:
        run(batch(32, 64), batch(64, 64))
    message = str(error.value)
    assert "no program of residual fits a call of residual with ['x'] float16[32, 64], ['y'] float16[64, 64]" in message
    assert "size mismatch at index 0. expected 64, actual 32" in message and "try  saving the package after" in message
    assert packaged.digest(run(batch(64, 64), batch(64, 64))) == packaged.digest(saved[1])  # others still run


def test_tensors_that_lie_otherwise_are_another_call(saved):
    run = torch_spyre.load(saved[0], packaged.residual)
    turned = torch_spyre._C.SpyreTensorLayout([64, 64], [64, 1], torch.float16, [1, 0])
    with pytest.raises(torch_spyre.PackageError, match="lies on the card as"):
        run(batch(64, 64), batch(64, 64).cpu().to("spyre", device_layout=turned))


def test_two_packages_of_one_function_do_not_meet(saved, tmp_path):
    first = torch_spyre.load(saved[0], packaged.residual)
    compiled, (wide,) = compiled_in_a_package(packaged.residual, ((batch(128, 128), batch(128, 128)), {}))
    torch_spyre.save(compiled, tmp_path / "wide")
    second = torch_spyre.load(tmp_path / "wide", packaged.residual)
    assert packaged.digest(first(batch(64, 64), batch(64, 64))) == packaged.digest(saved[1])
    assert packaged.digest(second(batch(128, 128), batch(128, 128))) == packaged.digest(wide)


@pytest.mark.parametrize("make", [lambda: packaged.residual, packaged.Broken], ids=["one graph", "two graphs"])
def test_a_package_keeps_its_programs_when_pytorch_forgets_its_own(make, tmp_path):
    """Also those it was saved from: both were in the same process, in the same module."""
    args = (batch(64, 64), batch(64, 64))[: 2 if make() is packaged.residual else 1]
    compiled, (result,) = compiled_in_a_package(make(), (args, {}))
    torch_spyre.save(compiled, tmp_path / "kept")
    loaded = torch_spyre.load(tmp_path / "kept", make())
    for _ in range(2):
        del compiled
        torch._dynamo.reset()
        gc.collect()
        assert packaged.digest(loaded(*args)) == packaged.digest(result)
        compiled = torch.compile(make())
        compiled(*args)


def test_a_module_shares_its_parameters_with_the_one_it_was_given(tmp_path):
    compiled, _ = compiled_in_a_package(packaged.mlp(), ((batch(4, 128),), {}))
    torch_spyre.save(compiled, tmp_path / "mlp")
    model = packaged.mlp()
    loaded = torch_spyre.load(tmp_path / "mlp", model)
    with torch.no_grad():
        before = loaded(batch(4, 128)).cpu()
        model.up.weight.zero_(), model.up.bias.zero_(), model.down.bias.zero_()
        after = loaded(batch(4, 128)).cpu()
        assert isinstance(loaded, packaged.Mlp) and not torch.equal(before, after)
        assert torch.equal(after, batch(4, 128).cpu())
        with pytest.raises(torch_spyre.PackageError, match="no program"):
            torch_spyre.load(tmp_path / "mlp", packaged.mlp(scale=3.0))(batch(4, 128))  # a number in the program


# --- packages that are not whole, or of others -----------------------------------------------------------------------


def refusal(path, target=packaged.residual) -> str:
    with pytest.raises(torch_spyre.PackageError) as error:
        torch_spyre.load(path, target)
    return str(error.value)


def test_every_file_is_looked_at(saved, copied):
    names = [name for name in files_of(saved[0]) if name != "manifest.json"]
    assert {"program.pkl", "kernels", "wrappers"} == {name.split("/")[0] for name in names}
    for name in names:
        content = (copied / name).read_bytes()
        middle = len(content) // 2
        (copied / name).write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        assert f"{copied / name}: found other content than was written" in refusal(copied)
        (copied / name).write_bytes(content[:-1])
        assert f"{copied / name}: found other content than was written" in refusal(copied)
        (copied / name).unlink()
        assert f"{copied / name}: found no such file, manifest.json lists it" in refusal(copied)
        (copied / name).write_bytes(content)
    torch_spyre.load(copied, packaged.residual)


def test_a_manifest_that_says_nothing_is_refused(copied):
    manifest = copied / "manifest.json"
    content = manifest.read_text()
    for text, message in [
        (content[: len(content) // 2], "found no JSON that can be read"),
        ("[]", "found list, allowed: an object"),
        ("{}", "found format None, version None, allowed: 'spyre-package', 1"),
        (content.replace('"version": 1', '"version": 2'), "found format 'spyre-package', version 2"),
    ]:
        manifest.write_text(text)
        assert f"{manifest}: {message}" in refusal(copied)
    manifest.unlink()
    assert f"{manifest}: found no such file" in refusal(copied)


@pytest.mark.parametrize("key", ["torch", "torch_spyre", "python", "compiler"])
def test_a_package_of_other_versions_is_refused(copied, key):
    manifest = json.loads((copied / "manifest.json").read_text())
    mine, manifest[key] = manifest[key], "0.0.1"
    (copied / "manifest.json").write_text(json.dumps(manifest))
    assert f"manifest.json: it was made with {key} 0.0.1, this process has {mine}" in refusal(copied)


def test_a_package_of_other_settings_is_refused(saved):
    with config.patch(sencores=8):
        assert "manifest.json: it was made with settings {'sencores': 32}, this process has {'sencores': 8}" in refusal(
            saved[0]
        )


def test_a_package_needs_what_was_compiled(saved):
    assert "it was saved without weights, of residual" in refusal(saved[0], None)
    assert "it was saved of residual, found 'batch'" in refusal(saved[0], packaged.batch)


# --- writing ---------------------------------------------------------------------------------------------------------


def test_what_was_not_recorded_has_no_package(tmp_path):
    with pytest.raises(torch_spyre.PackageError, match="Mlp.forward was not compiled for a package"):
        torch_spyre.save(torch.compile(packaged.mlp()), tmp_path / "new")
    with torch_spyre.packaging():
        compiled = torch.compile(packaged.mlp())
    with pytest.raises(torch_spyre.PackageError, match="Mlp.forward: found nothing compiled"):
        torch_spyre.save(compiled, tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_folders_of_others_are_left_alone(saved, tmp_path):
    compiled, _ = compiled_in_a_package(packaged.residual, ((batch(64, 64), batch(64, 64)), {}))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "notes.txt").write_text("mine")
    with pytest.raises(RuntimeError, match=r"found 'notes.txt' and no manifest.json of a package, allowed: a new"):
        torch_spyre.save(compiled, tmp_path / "home")
    assert files_of(tmp_path) == ["home/notes.txt"]
    # Over an older package: its files go, those of others stay.
    shutil.copytree(saved[0], tmp_path / "old")
    (tmp_path / "old" / "notes.txt").write_text("mine")
    manifest = json.loads((tmp_path / "old" / "manifest.json").read_text())
    (tmp_path / "old" / "kernels" / "gone").mkdir()
    (tmp_path / "old" / "kernels" / "gone" / "graph.ir").write_text("stale")
    manifest["files"] += ["kernels/gone/graph.ir", "notes.txt", "../home/notes.txt"]
    (tmp_path / "old" / "manifest.json").write_text(json.dumps(manifest))
    torch_spyre.save(compiled, tmp_path / "old")
    assert (tmp_path / "old" / "notes.txt").exists() and (tmp_path / "home" / "notes.txt").exists()
    assert not (tmp_path / "old" / "kernels" / "gone").exists()
    torch_spyre.load(tmp_path / "old", packaged.residual)


def test_a_program_with_kernels_of_the_cpu_has_no_package(tmp_path):
    compiled, _ = compiled_in_a_package(packaged.mixed, ((batch(4, 64), torch.ones(4, 64)), {}))
    with pytest.raises(torch_spyre.PackageError, match=r"found a kernel of the CPU \(async_compile"):
        torch_spyre.save(compiled, tmp_path / "mixed")


# --- the cache, by the same means ------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    kernels._compiled.cache_clear()
    return tmp_path / "cache" / "inductor-spyre"


def compiles(x) -> int:
    """How often the compiler runs for a program that this process has forgotten."""
    torch._dynamo.reset()
    kernels._compiled.cache_clear()
    torch.spyre.reset_metrics()
    expected = x.cpu() * 3 + 1
    assert torch.equal(torch.compile(lambda x: x * 3 + 1)(x).cpu(), expected)
    return torch.spyre.metrics()["graphs_compiled"]


def test_a_kernel_on_disk_is_not_compiled_again(cache):
    x = torch.ones(4, 64, dtype=torch.float16, device="spyre")
    assert compiles(x) == 1
    assert compiles(x) == 0
    (plan,) = [p for p in torch_spyre.explain() if "mul" in p["kernel"]][-1:]  # compiled for it
    assert plan["moved"] >= plan["compulsory"] > 0
    with config.patch(lx_planning=False):
        assert compiles(x) == 1
        assert compiles(x) == 0


def test_a_kernel_on_disk_that_is_not_whole_is_compiled_again(cache):
    x = torch.ones(4, 64, dtype=torch.float16, device="spyre")
    assert compiles(x) == 1
    (folder,) = cache.iterdir()
    names = files_of(folder)
    assert artifacts.FACTS in names and "spyreCodeDir/init_binary.bin" in names
    for name in names:
        if name == "manifest.json":
            continue
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])
        assert compiles(x) == 1, name
        assert (folder / name).read_bytes() == content  # mended
        assert compiles(x) == 0, name
        (folder / name).unlink()
        assert compiles(x) == 1, name
        assert compiles(x) == 0, name


def test_a_kernel_of_several_bundles_is_read_back(cache):
    x = torch.ones(4, 64, dtype=torch.float16, device="spyre")
    with config.patch(bundle_ops=1):
        assert compiles(x) == 1
        assert compiles(x) == 0


def test_an_input_that_is_written_is_known_again(cache):
    def program(x, y):
        x.mul_(2)
        return x + y

    for compiled in (1, 0):
        torch._dynamo.reset()
        kernels._compiled.cache_clear()
        torch.spyre.reset_metrics()
        x, y = batch(4, 64), batch(4, 64)
        expected = x.cpu() * 2
        found = torch.compile(program)(x, y)
        assert torch.spyre.metrics()["graphs_compiled"] == compiled
        assert torch.equal(x.cpu(), expected) and torch.allclose(found.cpu(), expected + y.cpu(), atol=1e-2)


# --- what reading a kernel refuses -----------------------------------------------------------------------------------


def test_a_launch_specification_that_does_not_fit_is_refused(saved):
    (folder,) = (saved[0] / "kernels").iterdir()
    facts = json.loads((folder / artifacts.FACTS).read_text())
    files = {name: (folder / name).read_bytes() for name in facts["sha256"]}
    name = "spyreCodeDir/launch_spec.json"

    def refused(change=None, inputs=facts["inputs"], text=None) -> str:
        spec = json.loads(files[name])
        if change is not None:
            change(spec)
        given = {**files, name: json.dumps(spec).encode() if text is None else text}
        with pytest.raises(RuntimeError) as error:
            torch_spyre._C.read_kernel(given, inputs, facts["outputs"], {})
        return str(error.value)

    kernel = torch_spyre._C.read_kernel(files, facts["inputs"], facts["outputs"], {})
    assert kernel.inputs == facts["inputs"] and kernel.outputs == facts["outputs"] and kernel.was_read
    compiled = "kernel '.*' was read back from its artifact, which does not say what the compiler decided on the way"
    with pytest.raises(RuntimeError, match=compiled):
        str(kernel.opspec)
    with pytest.raises(RuntimeError, match=f"{name}: found no such file, allowed: what the kernel is launched with"):
        torch_spyre._C.read_kernel({}, [], [], {})
    wrong = {facts["inputs"][0]: [0] * 9}
    with pytest.raises(RuntimeError, match="found bounds of 9 dimensions of 'arg.*', allowed: . of them"):
        torch_spyre._C.read_kernel(files, facts["inputs"], facts["outputs"], wrong)
    assert f"{name}: found something else, allowed: JSON" in refused(text=b"no")
    many = [*facts["inputs"], *"abcdefgh"]
    assert f"arguments, allowed: {len(many)} inputs and {len(facts['outputs'])} outputs" in refused(inputs=many)
    assert "' with the extent s0, allowed: fixed sizes" in refused(lambda s: s["args"][0]["shape"].append("s0"))
    whole = "allowed: a dtype of the card and a whole layout"
    assert f"' with dtype 'complex7' and a layout, {whole}" in refused(lambda s: s["args"][0].update(dtype="complex7"))
    assert f"and no layout, {whole}" in refused(lambda s: s["args"][0].pop("layout"))


# --- SPYRE_REQUIRE_PRECOMPILED ---------------------------------------------------------------------------------------

REQUIRED = """
import torch, torch_spyre
x = torch.ones(4, 64, dtype=torch.float16).to("spyre")
graph = open({!r}).read()
for what in (lambda: x + 1, lambda: torch.compile(lambda x: x + 1)(x), lambda: torch_spyre._C.compile_graph(graph)):
    try:
        what()
        print("ran")
    except RuntimeError as error:
        print(str(error).replace("\\n", " "))
"""


@pytest.mark.parametrize("setting", ["1", "all"])
def test_a_compilation_is_an_error_where_none_is_wanted(setting, saved):
    (graph,) = (saved[0] / "kernels").glob("*/graph.ir")
    finished = subprocess.run(
        [sys.executable, "-c", REQUIRED.format(str(graph))],
        capture_output=True,
        text=True,
        env={**os.environ, "SPYRE_REQUIRE_PRECOMPILED": setting},
    )
    eager, compiled, direct = finished.stdout.splitlines()
    if setting == "1":
        assert eager == "ran"
    else:
        assert "SPYRE_REQUIRE_PRECOMPILED=all: the eager operator 'aten_add" in eager and "float16[4, 64]" in eager
        assert "try  SPYRE_REQUIRE_PRECOMPILED=1, which lets eager operators be compiled" in eager
    assert f"SPYRE_REQUIRE_PRECOMPILED={setting}: the graph 0/0 would be compiled for " in compiled
    assert "x_ float16[4, 64]" in compiled and "try  torch_spyre.load of a package" in compiled
    assert f"SPYRE_REQUIRE_PRECOMPILED={setting}: the graph 'fused_" in direct
    assert "' would be compiled for " in direct and "float16[64, 64]" in direct
