"""Packages: what was compiled, as a folder that other processes run without compiling (ADR 0058).

    with torch_spyre.packaging():                    # in the process that compiles
        compiled = torch.compile(model)
        compiled(x)
    torch_spyre.save(compiled, "model.spyre")

    model = torch_spyre.load("model.spyre", model)   # in the process that runs: nothing is traced or compiled
    model(x)

    model.spyre/
        manifest.json   format and version, who made it and with which settings, its calls, sha256 of every file
        program.pkl     PyTorch's record: guards, bytecode, the calling convention of every graph
        wrappers/       Inductor's wrapper code, a Python file per graph
        kernels/        a folder per kernel, as the compiler wrote it (_inductor/artifacts.py)
        weights.pt      of an exported program alone

``program.pkl`` and the wrappers are code: a package is to be trusted like a program.
"""

import ast
import contextlib
import copy
import dataclasses
import functools
import inspect
import io
import itertools
import json
import os
import pickle
import platform
import shutil
import sys
import types
import weakref

import torch

from torch_spyre import _C

_FORMAT, _VERSION = "spyre-package", 1
_MANIFEST, _PROGRAM, _WEIGHTS = "manifest.json", "program.pkl", "weights.pt"


class PackageError(RuntimeError):
    """A package that cannot be written, or that is not what this process can run. The message names the file."""


# --- recording -------------------------------------------------------------------------------------------------------

#: What PyTorch recorded of functions compiled inside ``packaging``: a ``CompilePackage`` each.
_records: "list[weakref.ref]" = []

#: A guard through one of these asks about functions of the program, not about a call. Their sources are compared
#: when a package is loaded.
_OF_THE_PROGRAM = ("__closure__", "__code__", "__defaults__", "__kwdefaults__")


def _keep_portable(entries) -> list[bool]:
    """Which guards go into a package: those on arguments and on PyTorch's modes. PyTorch's own rule for saved programs,
    ``aot_compile``, leaves out the same: what is global, and what compares identities. Where in the source a guard
    comes from goes too: with it, guards of 40 layers take twice as long to load."""
    from torch._dynamo import config
    from torch._dynamo.guards import CheckFunctionManager

    unsupported = set(CheckFunctionManager.UNSUPPORTED_SERIALIZATION_GUARD_TYPES)
    if config.skip_nnmodule_hook_guards:  # they look at nothing then
        unsupported.add("EMPTY_NN_MODULE_HOOKS_DICT")
    for entry in entries:
        entry.orig_guard.stack = entry.orig_guard.user_stack = None
    return [
        not entry.is_global
        and not unsupported & {entry.guard_type, *entry.derived_guard_types}
        and not any(word in entry.name for word in _OF_THE_PROGRAM)
        for entry in entries
    ]


@contextlib.contextmanager
def packaging():
    """What ``torch.compile`` wraps and compiles inside can be saved by ``torch_spyre.save``.

    PyTorch keeps guards and bytecode in a form that can be written down. Guards on globals and on identities are left
    out, here too: what is compiled inside runs as it will run from the package.
    """
    from torch._dynamo import config, guards, package

    from torch_spyre._inductor import replaced

    initialize, build = package.CompilePackage.initialize, guards.CheckFunctionManager.__init__

    @functools.wraps(initialize)
    def recorded(self, *args, **kwargs):
        initialize(self, *args, **kwargs)
        _records.append(weakref.ref(self, _records.remove))

    @functools.wraps(build)
    def portable(self, *args, **kwargs):
        call = inspect.signature(build).bind(self, *args, **kwargs)
        call.arguments["guard_filter_fn"] = call.arguments.get("guard_filter_fn") or _keep_portable
        build(*call.args, **call.kwargs)

    with (
        config.patch(caching_precompile=True, strict_precompile=True),
        replaced.attribute(package.CompilePackage, "initialize", recorded),
        replaced.attribute(package.DynamoCache, "load", lambda fn: None),  # recorded anew
        replaced.attribute(guards.CheckFunctionManager, "__init__", portable),
    ):
        yield


def _record_of(compiled):
    from torch._dynamo.eval_frame import OptimizedModule, innermost_fn

    if isinstance(compiled, OptimizedModule):
        compiled = compiled._orig_mod.forward
    elif isinstance(compiled, torch.nn.Module):
        compiled = compiled.forward
    function = innermost_fn(compiled)
    for reference in reversed(_records):
        record = reference()
        if record is not None and record._innermost_fn == function:
            return record
    name = getattr(function, "__qualname__", type(function).__name__)
    raise PackageError(
        f"{name} was not compiled for a package\n"
        "  try  torch.compile and a first call of it inside `with torch_spyre.packaging():`"
    )


# --- writing ---------------------------------------------------------------------------------------------------------


def _results(backends: dict) -> list:
    """Inductor's graphs, forward and backward."""
    graphs = []
    for artifact in backends.values():
        for compiled in (artifact.content.compiled_fw, artifact.content.compiled_bw):
            if compiled is not None:
                graphs.append(compiled.result)
    return graphs


def _kernel_texts(source: str) -> list[str]:
    """The graph texts of the kernels that wrapper code defines."""
    texts = []
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "async_compile"):
            continue
        if node.func.attr == "sdsc":
            texts.append(ast.literal_eval(node.args[1]))
        elif node.func.attr != "wait":
            raise PackageError(
                f"found a kernel of the CPU (async_compile.{node.func.attr}), allowed: kernels of the card\n"
                "  try  inputs and constants of the program on the card"
            )
    return texts


def _program_texts(source: str) -> list[str]:
    """The texts of their programs: of a kernel whose sizes change from call to call, those for the ranges that were
    called."""
    from torch_spyre._inductor import kernels

    programs = {kernel.text: kernel.texts() for kernel in kernels.loaded}
    return [text for kernel in _kernel_texts(source) for text in programs.get(kernel, [kernel])]


def _write_code(graphs: list, staged: str) -> None:
    from torch._inductor.runtime.cache_dir_utils import temporary_cache_dir

    from torch_spyre._inductor import kernels

    for graph in graphs:
        for text in _program_texts(graph.source_code):
            folder = kernels.saved_folder(text)
            shutil.copytree(folder, os.path.join(staged, "kernels", os.path.basename(folder)), dirs_exist_ok=True)
    wrappers = os.path.join(staged, "wrappers")
    os.makedirs(wrappers)
    with temporary_cache_dir(wrappers):
        for graph in graphs:
            graph.write_to_disk()


def _made_by() -> dict:
    """What a package has in common with the process that runs it."""
    import torch_spyre
    from torch_spyre._inductor import kernels

    made_by = kernels.made_by()
    return {
        "torch_spyre": torch_spyre.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        **made_by,
    }


def _seal(staged: str, kind: str, facts: dict) -> None:
    from torch_spyre._inductor import artifacts

    files = sorted(
        os.path.relpath(os.path.join(folder, name), staged) for folder, _, names in os.walk(staged) for name in names
    )
    manifest = {
        "format": _FORMAT,
        "version": _VERSION,
        "kind": kind,
        **_made_by(),
        **facts,
        "files": files,
        "sha256": {name: artifacts.sha256(os.path.join(staged, name)) for name in files},
    }
    artifacts.write_text(os.path.join(staged, _MANIFEST), json.dumps(manifest, indent=1))


def _pickle(path: str, value) -> None:
    with open(path, "wb") as file:
        pickle.dump(value, file)


def save(compiled, path: str | os.PathLike) -> None:
    """Writes a package: all that was compiled of ``compiled`` so far, for every call it saw.

    ``compiled`` is a module or function that ``torch.compile`` wrapped inside ``packaging()``, or a
    ``torch.export.ExportedProgram``, which is compiled here. Weights of a compiled module are not written: ``load`` is
    given the module. Those of an exported program are.

    ``path`` is a new or an empty folder, or an older package, which is replaced. A new folder appears whole.
    """
    path = os.fspath(path)
    staged = _C.staging_name(path)
    os.makedirs(staged)
    try:
        if isinstance(compiled, torch.export.ExportedProgram):
            _stage_exported(compiled, staged)
        else:
            _stage_compiled(_record_of(compiled), staged)
        _C.publish_package(staged, path)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _installed_globals(record, dynamo) -> bytes:
    """What Dynamo put beside the program's globals for its bytecode (modules, constants), pickled. PyTorch's record has
    the programs and the imports only."""
    from torch._dynamo.aot_compile import AOTCompilePickler
    from torch._dynamo.package import SerializedCode

    recorded, used = set(dynamo.backend_ids), set()
    for code in dynamo.codes:
        recorded |= {*code.import_sources, *code.function_names}
        for guarded in code.guarded_codes:
            pending = [guarded.dynamo_code]
            for part in pending:
                used |= {name for name in part.co_names if name.startswith("__") and not name.endswith("__")}
                pending += [constant for constant in part.co_consts if isinstance(constant, SerializedCode)]
    scopes = [record._innermost_fn.__globals__]
    scopes += [sys.modules[code.python_module].__dict__ for code in dynamo.codes]
    found = {}
    for name in used - recorded:
        for scope in scopes:
            if name in scope:
                found[name] = scope[name]
    buffer = io.BytesIO()
    pickler = AOTCompilePickler({}, buffer)
    try:
        pickler.dump(found)
    except Exception as error:
        raise PackageError(f"{dynamo.fn_name}: its bytecode uses what cannot be saved: {error}") from error
    if pickler.errors:
        raise PackageError(f"{dynamo.fn_name}: its bytecode uses a module: {list(pickler.errors.values())[0]!r:.200}")
    return buffer.getvalue()


def _stage_compiled(record, staged: str) -> None:
    from torch._dynamo.package import load_guards_state
    from torch._dynamo.precompile_context import PrecompileContext

    dynamo = record.cache_entry()
    backends = {name: PrecompileContext.serialize_artifact_by_key(name) for name in dynamo.backend_ids}
    missing = [name for name, artifact in backends.items() if artifact is None]
    if missing or not backends:
        raise PackageError(
            f"{dynamo.fn_name}: found {'no program of ' + missing[0] if missing else 'nothing compiled'}\n"
            "  try  the first calls inside `with torch_spyre.packaging():`, too"
        )
    _write_code(_results(backends), staged)
    program = {"dynamo": dynamo, "backends": backends, "globals": _installed_globals(record, dynamo)}
    _pickle(os.path.join(staged, _PROGRAM), program)
    calls = []
    for code in dynamo.codes:
        for guarded in code.guarded_codes:
            inputs = load_guards_state(guarded.guards_state).output_graph.input_source_to_sizes_strides
            sizes = {source.name: list(facts["size"]) for source, facts in inputs.items()}  # None: any size
            calls.append({name: size for name, size in sizes.items() if "_parameters" not in name})
    _seal(staged, "compiled", {"function": dynamo.fn_name, "calls": calls})


# --- reading ---------------------------------------------------------------------------------------------------------


def _read_manifest(path: str) -> dict:
    """The manifest of a package that is whole and fits this process."""
    from torch_spyre._inductor import artifacts

    manifest_path = os.path.join(path, _MANIFEST)
    try:
        manifest = artifacts.read_json(manifest_path)
        artifacts.check_format(manifest_path, manifest, _FORMAT, _VERSION)
        artifacts.check_maker(manifest_path, manifest, _made_by())
    except artifacts.ArtifactError as error:
        raise PackageError(f"{error}\n  try  saving the package again, with the same settings and versions") from error
    for name in manifest["files"]:
        file = os.path.join(path, name)
        if not os.path.isfile(file):
            raise PackageError(f"{file}: found no such file, {_MANIFEST} lists it\n  try  a whole copy of the package")
        if artifacts.sha256(file) != manifest["sha256"].get(name):
            raise PackageError(
                f"{file}: found other content than was written: its sha256 is not that of {_MANIFEST}\n"
                "  try  a whole copy of the package"
            )
    return manifest


@contextlib.contextmanager
def _code_of(path: str):
    """Wrapper code and kernels come from the package and from nowhere else."""
    from torch._inductor.runtime.cache_dir_utils import temporary_cache_dir

    from torch_spyre._inductor import artifacts, kernels

    try:
        with temporary_cache_dir(os.path.join(path, "wrappers")), kernels.only_from(os.path.join(path, "kernels")):
            yield
    except artifacts.ArtifactError as error:
        raise PackageError(str(error)) from error


def load(path: str | os.PathLike, target=None):
    """A package, ready to run; nothing is traced or compiled, now or later.

    ``target`` is the module or function that was compiled, or the like of it: the same code, with weights of the same
    shapes. Of a module the result is one, too: it shares the parameters of ``target``, and its ``forward`` comes from
    the package. An exported program needs no target and returns a function.

    A call that the package has no program for raises ``PackageError``, which says why none fits.
    """
    path = os.fspath(path)
    manifest = _read_manifest(path)
    import torch._inductor.compile_fx  # noqa: F401 - its registrations, which unpickling needs

    with open(os.path.join(path, _PROGRAM), "rb") as file:
        program = pickle.load(file)
    if manifest["kind"] == "exported":
        return _load_exported(path, program)
    if target is None:
        raise PackageError(
            f"{path}: it was saved without weights, of {manifest['function']}\n"
            f"  try  torch_spyre.load({path!r}, module), with the module or function that was compiled"
        )
    if not isinstance(target, torch.nn.Module):
        return _load_function(path, manifest, program, target)
    module = copy.copy(target)
    function = type(target).forward
    module.forward = _load_function(path, manifest, program, types.MethodType(function, module))
    return module


def _own_code(function):
    """The same function with code of its own: PyTorch keeps programs by code, and other packages have theirs."""
    if isinstance(function, types.MethodType):
        return types.MethodType(_own_code(function.__func__), function.__self__)
    own = types.FunctionType(
        function.__code__.replace(),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    own.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(own, function)


_loads = itertools.count()


def _with_names_of_its_own(program: dict) -> dict:
    """Programs call each other through globals. Dynamo's names for these are unique in the process that saved them
    only: here others may have them, or had them and take them away when ``torch._dynamo.reset`` clears up."""
    from torch._dynamo.package import SerializedCode

    installed, dynamo, suffix = pickle.loads(program["globals"]), program["dynamo"], f"_of_package_{next(_loads)}"
    names = {*program["backends"], *installed}
    for entry in dynamo.codes:
        names.update(entry.function_names if entry.install_to_global else [])
    own = {name: name + suffix for name in names}

    def renamed(names):
        return [own.get(name, name) for name in names]

    def rewritten(code):
        if not isinstance(code, SerializedCode):
            return code
        constants = tuple(rewritten(constant) for constant in code.co_consts)
        return dataclasses.replace(code, co_names=tuple(renamed(code.co_names)), co_consts=constants)

    codes = [
        dataclasses.replace(
            entry,
            python_code=rewritten(entry.python_code),
            function_names=renamed(entry.function_names) if entry.install_to_global else entry.function_names,
            backend_ids=renamed(entry.backend_ids),
            guarded_codes=[
                dataclasses.replace(guarded, dynamo_code=rewritten(guarded.dynamo_code))
                for guarded in entry.guarded_codes
            ],
        )
        for entry in dynamo.codes
    ]
    return {
        "dynamo": dataclasses.replace(dynamo, codes=codes),
        "backends": {own[name]: backend for name, backend in program["backends"].items()},
        "globals": {own[name]: value for name, value in installed.items()},
    }


def _load_function(path: str, manifest: dict, program: dict, function):
    from torch._C._dynamo.eval_frame import set_eval_frame
    from torch._dynamo.eval_frame import innermost_fn
    from torch._dynamo.package import CompilePackage

    function = innermost_fn(function)
    if getattr(function, "__qualname__", None) != manifest["function"]:
        raise PackageError(
            f"{path}: it was saved of {manifest['function']}, found {getattr(function, '__qualname__', function)!r}"
        )
    own = _own_code(function)
    program = _with_names_of_its_own(program)
    try:
        package = CompilePackage(own, program["dynamo"])
    except RuntimeError as error:  # sources of the program that are not those that were compiled
        raise PackageError(f"{os.path.join(path, _PROGRAM)}: {error}") from error
    with _code_of(path):
        package.install(program["backends"])
    installed = dict(program["globals"])
    for module, names in package._installed_globals.items():
        module.__dict__.update(installed)
        installed.update({name: module.__dict__[name] for name in names})
    own.__globals__.update(installed)  # not those of its module, where it is wrapped by a decorator of another
    refuse = functools.partial(_refuse_call, path, manifest)

    @functools.wraps(function)
    def loaded(*args, **kwargs):
        before = set_eval_frame(refuse)
        try:
            return own(*args, **kwargs)
        finally:
            set_eval_frame(before)

    loaded._package = package  # what is installed goes with it
    return loaded


def _refuse_call(path: str, manifest: dict, frame, *_):
    """What Dynamo calls for a frame that no program fits."""
    from torch._C._dynamo.eval_frame import _debug_get_precompile_entries
    from torch._dynamo import convert_frame, trace_rules
    from torch._dynamo.types import ConvertFrameReturn

    from torch_spyre._inductor import required

    entries = _debug_get_precompile_entries(frame.f_code)
    if not entries and (trace_rules.check(frame.f_code) or not convert_frame.has_tensor_in_frame(frame)):
        return ConvertFrameReturn()
    tensors = {}
    for keys, value in torch.utils._pytree.tree_leaves_with_path(dict(frame.f_locals)):
        if isinstance(value, torch.Tensor):
            tensors[torch.utils._pytree.keystr(keys)] = value
    reasons = []
    for entry in entries:
        reasons += entry.guard_manager.check_verbose(frame.f_locals).verbose_code_parts[:1]
    why = "".join(f"\n  note {reason.splitlines()[0][:300]}" for reason in reasons)
    raise PackageError(
        f"{path}: no program of {manifest['function']} fits a call of {frame.f_code.co_name} with "
        f"{required.describe(tensors)}{why}\n"
        "  try  saving the package after a call like this one"
    )


# --- exported programs -----------------------------------------------------------------------------------------------


def _stage_exported(exported, staged: str) -> None:
    from torch._inductor.standalone_compile import standalone_compile
    from torch.export.graph_signature import InputKind, OutputKind

    signature = exported.graph_signature
    known = {**exported.state_dict, **exported.constants}
    weights, inputs, user_inputs = {}, [], torch.utils._pytree.tree_leaves(exported.example_inputs)
    for spec in signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            inputs.append(None)
        elif spec.target in known and isinstance(known[spec.target], torch.Tensor):
            weights[spec.target] = known[spec.target]
            inputs.append(spec.target)
        else:
            raise PackageError(f"an exported program with an input of kind {spec.kind.name} has no package")
    results = []
    for spec in signature.output_specs:
        if spec.kind is OutputKind.USER_OUTPUT:
            results.append(None)
        elif spec.kind is OutputKind.BUFFER_MUTATION:
            results.append(spec.target)
        else:
            raise PackageError(f"an exported program with a result of kind {spec.kind.name} has no package")
    given = iter(user_inputs)
    flat = [next(given) if name is None else weights[name] for name in inputs]
    artifact = standalone_compile(
        exported.graph_module, flat, dynamic_shapes="from_example_inputs", options={}, aot=True
    )
    compiled = artifact.serialize()
    entry = pickle.loads(compiled)[0]
    graphs = [c.result for c in (entry.compiled_fw, entry.compiled_bw) if c is not None]
    _write_code(graphs, staged)
    takes = [(str(x.dtype), list(x.shape), str(x.device)) if isinstance(x, torch.Tensor) else x for x in user_inputs]
    program = {
        "compiled": compiled,
        "inputs": inputs,
        "results": results,
        "in_spec": torch.utils._pytree.treespec_dumps(exported.call_spec.in_spec),
        "out_spec": torch.utils._pytree.treespec_dumps(exported.call_spec.out_spec),
        "takes": takes,
    }
    _pickle(os.path.join(staged, _PROGRAM), program)
    torch.save(weights, os.path.join(staged, _WEIGHTS))
    _seal(staged, "exported", {"function": "exported program", "calls": [takes]})


def _load_exported(path: str, program: dict):
    from torch._inductor.standalone_compile import AOTCompiledArtifact
    from torch.utils import _pytree

    weights = torch.load(os.path.join(path, _WEIGHTS))
    in_spec, out_spec = (_pytree.treespec_loads(program[name]) for name in ("in_spec", "out_spec"))
    with _code_of(path):
        compiled = AOTCompiledArtifact.deserialize(program["compiled"])

    def run(*args, **kwargs):
        flat, spec = _pytree.tree_flatten((args, kwargs))
        takes = [(str(x.dtype), list(x.shape), str(x.device)) if isinstance(x, torch.Tensor) else x for x in flat]
        if spec != in_spec or takes != program["takes"]:
            raise PackageError(f"{path}: it was exported for {program['takes']}, found {takes}")
        given = iter(flat)
        results = compiled(*[next(given) if name is None else weights[name] for name in program["inputs"]])
        user = []
        for name, result in zip(program["results"], results, strict=True):
            if name is None:
                user.append(result)
            else:
                weights[name].copy_(result)
        return _pytree.tree_unflatten(user, out_spec)

    return run
