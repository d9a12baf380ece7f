"""Every artifact written from the corpus follows docs/spec/schema, and spoiled ones do not.

Needs `jsonschema` and the spyre-bundle program: SPYRE_BUNDLE names it, default build/dev/tools/spyre-bundle.
"""

import copy
import json
import os
import pathlib
import subprocess

import pytest

jsonschema = pytest.importorskip("jsonschema", reason="checks artifacts with a stock JSON Schema validator")
referencing = pytest.importorskip("referencing", reason="resolves references between our schema files")

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "docs" / "spec" / "schema"
CORPUS = sorted((ROOT / "tests" / "corpus" / "opspec").glob("*.opspec"))
WRITER = pathlib.Path(os.environ.get("SPYRE_BUNDLE", ROOT / "build" / "dev" / "tools" / "spyre-bundle"))

needs_writer = pytest.mark.skipif(not WRITER.exists(), reason=f"{WRITER} is not built")


def validator(name):
    """A draft 2020-12 validator for one schema file; the files may refer to each other."""
    loaded = {path.name: json.loads(path.read_text()) for path in SCHEMAS.glob("*.schema.json")}
    registry = referencing.Registry().with_resources(
        (key, referencing.Resource.from_contents(schema)) for key, schema in loaded.items()
    )
    return jsonschema.Draft202012Validator(loaded[f"{name}.schema.json"], registry=registry)


def write(kernel, directory, *options):
    subprocess.run([WRITER, kernel, "-o", directory / "k", *options], check=True, capture_output=True)
    return directory / "k"


def schema_of(path):
    return "sdsc" if path.stem.startswith("sdsc_") else path.stem


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.schema.json")), ids=lambda p: p.name)
def test_schemas_are_themselves_valid(path):
    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text()))


@needs_writer
@pytest.mark.parametrize("options", [(), ("--frontend-pool", "--no-share")], ids=["default", "pool-passed"])
@pytest.mark.parametrize("kernel", CORPUS, ids=lambda p: p.stem)
def test_written_artifacts_follow_the_schema(kernel, options, tmp_path):
    written = sorted(write(kernel, tmp_path, *options).rglob("*.json"))
    assert {schema_of(path) for path in written} == {
        "sdsc",
        "launch_spec",
        "manifest",
        "symbol_kinds",
        "spyrecode",
    }
    for path in written:
        validator(schema_of(path)).validate(json.loads(path.read_text()))


@needs_writer
@pytest.mark.parametrize("graph", sorted((ROOT / "tests/corpus/graphs").glob("*.ir")), ids=lambda p: p.stem)
def test_compiled_graphs_follow_the_schema(graph, tmp_path):
    subprocess.run([WRITER.parent / "spyre-compile", graph, "-o", tmp_path / "k"], check=True, capture_output=True)
    for path in sorted((tmp_path / "k").rglob("*.json")):
        validator(schema_of(path)).validate(json.loads(path.read_text()))


def test_a_constant_has_a_fill_and_nothing_else_has_one():
    layout = {"device_size": [1, 64], "stride_map": [-1, -1], "device_dtype": "SEN169_FP16"}
    layout["element_arrangement"] = "STANDARD"
    arg = {"arg_index": 0, "role": "constant", "shape": [], "dtype": "float16", "layout": layout}
    spec = {"version": 1, "kernel_name": "k", "pool_size": 0, "bundle_symbolic_args": True}
    check = validator("launch_spec")
    for start in (1.5, -0.0, "nan", "-inf"):
        check.validate({**spec, "args": [{**arg, "fill": {"start": start, "step": 0.0}}]})
    assert not check.is_valid({**spec, "args": [arg]})
    assert not check.is_valid({**spec, "args": [{**arg, "fill": {"start": "one", "step": 0}}]})
    assert not check.is_valid({**spec, "args": [{**arg, "role": "input", "fill": {"start": 1, "step": 0}}]})


def spoiled(document):
    """The document with one thing wrong, many times over, each with a word on what."""

    def config(doc):
        return next(iter(next(iter(doc.values()))["dscs_"][0].values()))

    def variant(what, change):
        broken = copy.deepcopy(document)
        change(broken)
        return pytest.param(broken, id=what)

    def rename(doc):
        doc["add"] = doc.pop("0_add")

    return [
        variant("root key without number", rename),
        variant("extra key", lambda d: config(d).update(colour=1)),
        variant("missing N_", lambda d: config(d).pop("N_")),
        variant("unknown dimension", lambda d: config(d)["N_"].update(z_=4)),
        variant("scale of 2", lambda d: config(d)["labeledDs_"][0].update(scale_=[2, 1])),
        variant(
            "address as number",
            lambda d: config(d)["scheduleTree_"][0]["startAddressCoreCorelet_"]["data_"].update({"[0, 0, 0]": -1}),
        ),
        variant("mask id without mask", lambda d: config(d).update(maskingConstId_=0)),
        variant("nine tensors", lambda d: config(d).update(labeledDs_=config(d)["labeledDs_"] * 3)),
        variant("bad operand", lambda d: config(d)["computeOp_"][0].update(outputLabeledDs=["Tensor2"])),
    ]


def test_spoiled_artifacts_are_refused(tmp_path):
    if not WRITER.exists():
        pytest.skip(f"{WRITER} is not built")
    kernel = ROOT / "tests" / "corpus" / "opspec" / "broadcast_add.opspec"
    document = json.loads((write(kernel, tmp_path) / "sdsc_0.json").read_text())
    check = validator("sdsc")
    check.validate(document)
    accepted = [case.id for case in spoiled(document) if check.is_valid(case.values[0])]
    assert accepted == []
