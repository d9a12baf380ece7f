"""What Dynamo traced, kept for later processes: where kernels are in the cache, it is what a start costs (ADR 0076).

    frame, guards fail           convert_frame._compile, replaced here
      a program in the folder    its guards hold for this call: it runs; nothing is traced
      else                       traced and compiled as ever, and written down

A program is what Dynamo made of one call: guards, bytecode, and what the back end returned. PyTorch can write down all
of it but guards on globals and on identities (of functions, classes, modules), which mean nothing in another process.
Those become *facts*: the same question, about names and code. Every fact is checked when a program is read, and is a
guard of it from then on; so no guard of Dynamo's is left out. One that has no such form keeps the program off the disk.

What Dynamo takes for granted inside a process is compared, too: the sources of everything that was traced, the classes
of all modules, versions, settings. Kept are whole functions (no graph breaks) compiled for the card under ``no_grad``.
"""

import contextlib
import contextvars
import dataclasses
import functools
import hashlib
import importlib
import inspect
import io
import logging
import os
import pickle
import platform
import re
import sys
import types
import weakref

import torch

from torch_spyre import _C
from torch_spyre._inductor import patches, progress, replaced

log = logging.getLogger(__name__)

_VERSION = 1
_BUILTINS = "__builtins_dict__"  # what Dynamo calls the builtins of a program, among its globals
LEAST_NODES = 100  # smaller graphs are traced as quickly as read
MOST_PROGRAMS = 16  # of one function: the oldest go


class _NotPortable(Exception):
    """Something that cannot be said to another process; the message says what."""


class _Unfit(Exception):
    """A program that does not serve this call, or no longer; the message says why."""


# --- values and code, by what they are -------------------------------------------------------------------------------


_PLAIN = (type(None), bool, int, float, str, bytes, torch.dtype, torch.device)


def _digest(value) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:32]


def _constant(value):
    """A constant of code, in an order that does not depend on hashes of strings."""
    if isinstance(value, types.CodeType):
        return code_digest(value)
    if isinstance(value, tuple):
        return [_constant(part) for part in value]
    if isinstance(value, frozenset):
        return sorted(map(repr, value))
    return repr(value)


@functools.lru_cache(maxsize=4096)
def code_digest(code: types.CodeType) -> str:
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags)
    return _digest((code.co_code, names, [_constant(value) for value in code.co_consts], code.co_exceptiontable))


def _function_digest(function: types.FunctionType, seen=()) -> str:
    """Of its code, its defaults, and what it holds on to."""
    if function in seen:
        return "itself"
    seen = (*seen, function)
    cells = []
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # an empty one
            cells.append(_held(cell.cell_contents, seen))
    defaults = [_held(value, seen) for value in function.__defaults__ or ()]
    named = [(name, _held(value, seen)) for name, value in (function.__kwdefaults__ or {}).items()]
    return _digest((code_digest(function.__code__), cells, defaults, named))


def _held(value, seen) -> str:
    value = getattr(value, "__func__", value)
    if isinstance(value, types.FunctionType):
        return _function_digest(value, seen)
    return repr(value) if isinstance(value, _PLAIN) else type(value).__qualname__


_CALLED = (
    "forward",
    "__call__",
    "_call_impl",
    "_wrapped_call_impl",
    "__getattr__",
    "__getitem__",
    "__iter__",
    "__len__",
)


@functools.lru_cache(maxsize=4096)
def class_digest(cls: type) -> str:
    """Of its methods and those of the classes above it, as they are in this compilation. Of PyTorch's own classes those
    that calls of a module go through: others it replaces itself, the first time that something compiles."""
    found = []
    for base in cls.__mro__:
        if base.__module__ == "builtins":
            continue
        of_torch = base.__module__.startswith("torch.")
        for name, value in sorted(vars(base).items()):
            if of_torch and name not in _CALLED:
                continue
            for part in (value, *(getattr(value, how, None) for how in ("__func__", "fget", "fset", "func"))):
                if isinstance(part, types.FunctionType):
                    found.append((base.__qualname__, name, _function_digest(part)))
    return _digest(found)


def portable(value) -> tuple:
    """What names a value in every process that has the like of it."""
    if isinstance(value, _PLAIN):
        return type(value).__name__, repr(value)
    if isinstance(value, types.ModuleType):
        return "module", value.__name__
    if isinstance(value, type):
        return "class", value.__module__, value.__qualname__, class_digest(value)
    if isinstance(value, types.CodeType):
        return "code", code_digest(value)
    if isinstance(value, types.FunctionType):
        return "function", value.__module__, value.__qualname__, _function_digest(value)
    if isinstance(value, (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)):
        return "builtin", getattr(value, "__module__", None), value.__qualname__
    if isinstance(value, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return "operator", str(value)
    raise _NotPortable(f"{type(value).__name__} {value!r:.80}")


# --- guards that PyTorch does not write down -------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Fact:
    """One guard as an expression over ``L`` and ``G``, the locals and globals of a frame.

    ``holds``: the expression is true. ``is``: its value is what ``value`` names; ``type``: its type is.
    """

    kind: str
    expression: str
    value: tuple = ()


def _facts_of(guard) -> list[Fact]:
    kind = guard.create_fn_name()
    arguments = getattr(guard.create_fn, "keywords", {}), getattr(guard.create_fn, "args", ())
    if kind == "EMPTY_NN_MODULE_HOOKS_DICT" and torch._dynamo.config.skip_nnmodule_hook_guards:
        return []
    if kind == "NOT_PRESENT_IN_GENERIC_DICT":
        (attribute,) = (*arguments[0].values(), *arguments[1])
        return [Fact("holds", f"not ___dict_contains({attribute!r}, {guard.name}.__dict__)")]
    if kind == "CLOSURE_MATCH" or any(k in ("ID_MATCH", "CLOSURE_MATCH") for k in (kind, *(guard.guard_types or ()))):
        return [Fact("is", guard.name)]
    facts = []
    for code in guard.code_list or ():
        if code.startswith("___check_type_id("):
            facts.append(Fact("type", guard.name))
        elif "___check_obj_id(" in code or "___key_to_id" in code or "___dict_version" in code:
            raise _NotPortable(f"guard {code}")
        else:
            facts.append(Fact("holds", code))
    if not facts:
        raise _NotPortable(f"guard {kind} on {guard.name}")
    return facts


def _is_portable(guard) -> bool:
    """Whether PyTorch writes it down, and it means the same where it is read."""
    from torch._dynamo.guards import CheckFunctionManager
    from torch._dynamo.source import get_global_source_name

    from torch_spyre import packages

    types_of = {guard.create_fn_name(), *(guard.guard_types or ())}
    return (
        get_global_source_name(guard.originating_source) is None
        and not types_of & {*CheckFunctionManager.UNSUPPORTED_SERIALIZATION_GUARD_TYPES, "EMPTY_NN_MODULE_HOOKS_DICT"}
        and not any(word in guard.name for word in packages._OF_THE_PROGRAM)
    )


def _names() -> dict:
    from torch._dynamo.guards import _get_closure_vars

    return dict(_get_closure_vars())


def _known(facts: list[Fact], scope: dict) -> list[Fact]:
    """The facts, each once, with the values they have here."""
    found = {}
    for fact in facts:
        value = eval(fact.expression, scope)
        if fact.kind == "holds" and value is not True:
            raise _NotPortable(f"guard {fact.expression} does not hold")
        named = {"holds": lambda _: (), "is": portable, "type": lambda v: portable(type(v))}[fact.kind](value)
        found[dataclasses.replace(fact, value=named)] = None
    return list(found)


def _guard_of(facts: list[Fact], scope: dict):
    """A function of a frame's locals: whether all facts hold. The values it compares with are those of now, which have
    the names that were written down."""
    names, parts = dict(scope), []
    for number, fact in enumerate(facts):
        value = eval(fact.expression, scope)
        if fact.kind == "holds":
            parts.append(f"({fact.expression})")
            if value is not True:
                raise _Unfit(f"not: {fact.expression}")
            continue
        value = type(value) if fact.kind == "type" else value
        if portable(value) != fact.value:
            raise _Unfit(f"{fact.expression} was {fact.value}, is {portable(value)}")
        names[f"v{number}"] = value
        parts.append(
            f"type({fact.expression}) is v{number}" if fact.kind == "type" else f"{fact.expression} is v{number}"
        )
    del names["L"]
    check = eval("lambda L: " + " and ".join(parts or ["True"]), names)

    def facts_hold(local_scope) -> bool:
        try:
            return bool(check(local_scope))
        except (AttributeError, LookupError, TypeError):
            return False

    return facts_hold


# --- one compilation -------------------------------------------------------------------------------------------------


class _Recorder:
    """Takes the place of PyTorch's ``CompilePackage`` while one frame is compiled.

    It is false, by which PyTorch leaves it alone, and silently, where a package would be given up with a warning.
    """

    def __init__(self, code: types.CodeType, frame_globals: dict, frame_locals: dict):
        self.globals, self.locals = frame_globals, frame_locals
        self.own_names = set(code.co_names)
        self.why_not: str | None = None
        self.nodes = 0
        self.imports: dict[str, str] = {}
        self.backends: list[str] = []
        self.contents: list[bytes] = []  # of the back end: what PyTorch's own cache gets, or has
        self.facts: list[Fact] = []
        self.guards_state = b""
        self.inputs: dict[str, list] = {}
        self.code: types.CodeType | None = None
        self.sources: dict[str, str] = {}

    def __bool__(self) -> bool:
        return False

    def give_up(self, why: str) -> None:
        self.why_not = self.why_not or why

    # What Dynamo calls.

    @contextlib.contextmanager
    def code_context(self, code):
        yield

    def is_initialized(self) -> bool:
        return True

    def add_import_source(self, alias: str, module: str) -> None:
        self.imports[alias] = module

    def add_resume_function(self, code, module, name) -> None:
        self.give_up("it has graph breaks")

    def add_backend_id(self, name: str, backend=None) -> None:
        self.backends.append(name)

    def bypass_current_entry(self) -> None:
        self.give_up("PyTorch writes down no graph like it")

    def update_device_type(self, graph) -> None:
        pass

    def add_guarded_code(self, guards_state: bytes, code: types.CodeType) -> None:
        self.guards_state, self.code = guards_state, code

    def add_inlined_source(self, codes) -> None:
        if self.why_not is None:
            try:
                self.sources = _sources_of(codes)
            except _NotPortable as error:
                self.give_up(str(error))

    def guards(self, builder, guards, output_graph, write) -> bytes:
        """Facts of the guards that ``write``, PyTorch's own, does not take; of the others what it writes."""
        if self.why_not is not None or self.nodes < LEAST_NODES:
            self.give_up("it is traced quickly")
            return b""
        try:
            kept = [guard for guard in guards if _is_portable(guard)]
            facts = [fact for guard in guards if not _is_portable(guard) for fact in _facts_of(guard)]
            self.facts = _known(facts, {**_names(), "L": self.locals, "G": self.globals})
            for source, facts in output_graph.input_source_to_sizes_strides.items():
                if source.name.startswith("L[") and "_parameters" not in source.name:
                    sizes = [size if type(size) is int else None for size in facts["size"]]
                    self.inputs[source.name] = sizes
            return write(builder, [dataclasses.replace(g, stack=None, user_stack=None) for g in kept], output_graph)
        except Exception as error:  # what PyTorch cannot pickle raises whatever it likes
            self.give_up(f"{type(error).__name__}: {error}")
            return b""


_recorder: contextvars.ContextVar[_Recorder | None] = contextvars.ContextVar("spyre_trace", default=None)


def note_graph(graph) -> None:
    """Called for every graph that is compiled for the card, before its back end."""
    recorder = _recorder.get()
    if recorder is None or not isinstance(graph, torch.fx.GraphModule):
        return
    graph.__dict__.pop("_backend_id", None)  # a new name each time: with it, PyTorch's cache knows no graph again
    recorder.nodes += len(graph.graph.nodes)
    if next(graph.parameters(), None) is not None:
        recorder.give_up("its graph holds parameters")


def _file_digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def _sources_of(codes) -> dict[str, str]:
    """The modules that traced code is from, with the content of their files."""
    found = {}
    for code in codes:
        module = inspect.getmodule(code)
        if module is None:
            # Python's own is that of its version, a dataclass's that of its class, which guards hold.
            if not code.co_filename.startswith("<frozen ") and not code.co_qualname.startswith("__create_fn__"):
                raise _NotPortable(f"code of {code.co_qualname}, which is in no file")
            continue
        if module.__name__ not in found:
            path = inspect.getsourcefile(module)
            if path is None or not os.path.exists(path):
                raise _NotPortable(f"code of {module.__name__}, which has no file")
            found[module.__name__] = _file_digest(path)
    return found


def _changed(sources: dict[str, str]) -> str | None:
    """A module whose file is another one now."""
    for name, digest in sources.items():
        path = inspect.getsourcefile(sys.modules.get(name) or importlib.import_module(name))
        if path is None or not os.path.exists(path) or _file_digest(path) != digest:
            return name
    return None


# --- on disk ---------------------------------------------------------------------------------------------------------


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _described(module: torch.nn.Module) -> list:
    for name, part in module.named_modules():
        if any(getattr(part, hooks) for hooks in _HOOKS):  # Dynamo has no guards on them
            raise _NotPortable(f"hooks of module {name!r}")
    tensors = [*module.named_parameters(), *module.named_buffers()]
    return [
        [(name, type(part).__qualname__) for name, part in module.named_modules()],
        sorted(map(portable, {type(part) for part in module.modules()})),
        [(name, tuple(t.shape), str(t.dtype), str(t.device), t.requires_grad) for name, t in tensors],
    ]


def _of_dynamo() -> list:
    """Its configuration. Its own hash is of sets as they are printed, in any order."""
    settings = torch._dynamo.config.get_config_copy()
    return [
        (n, sorted(map(str, v)) if isinstance(v, (set, frozenset)) else str(v)) for n, v in sorted(settings.items())
    ]


def _folder_of(code: types.CodeType, frame_globals: dict, frame_locals: dict, backend, one_graph: bool) -> str:
    """By what decides which programs may serve a call, short of guards."""
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    from torch_spyre._inductor import kernels, registered

    held = [v for v in frame_locals.values() if isinstance(v, types.FunctionType)]
    key = [
        _VERSION, torch.__version__, platform.python_version(), kernels.made_by(), registered.for_key(),
        _of_dynamo(), torch._inductor.config.get_hash(), torch._functorch.config.get_hash(),
        backend, one_graph, frame_globals.get("__name__"), code.co_qualname, code_digest(code),
        list(map(_function_digest, held)), list(map(_described, patches.modules_of_frame(frame_locals))),
    ]  # fmt: skip
    return os.path.join(cache_dir(), "spyre-traces", _digest(key))


def _write(folder: str, recorder: _Recorder, sizes: dict) -> None:
    from torch._dynamo.package import SerializedCode

    if not recorder.backends or len(recorder.backends) != len(recorder.contents):
        raise _NotPortable(f"{len(recorder.backends)} graphs, {len(recorder.contents)} of them in PyTorch's cache")
    head = {"sources": recorder.sources, "inputs": recorder.inputs}
    body = {
        "imports": recorder.imports,
        "globals": {
            name: None if name.startswith(_BUILTINS) else _dumped(recorder.globals[name])
            for name in _names_of_dynamo(recorder)
        },
        "facts": recorder.facts,
        "guards": recorder.guards_state,
        "code": SerializedCode.from_code_object(recorder.code),
        "backends": dict(zip(recorder.backends, recorder.contents, strict=True)),
        "sizes": sizes,
    }
    buffer = io.BytesIO()
    for part in (head, body):
        pickle.dump(part, buffer)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, hashlib.sha256(buffer.getvalue()).hexdigest()[:16])
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "wb") as file:
        file.write(buffer.getvalue())
    os.replace(temporary, path)
    for old in _programs(folder)[MOST_PROGRAMS:]:
        with contextlib.suppress(OSError):
            os.remove(old)


def _names_of_dynamo(recorder: _Recorder) -> set[str]:
    """What Dynamo put among the program's globals for its bytecode and guards, beside modules and graphs."""
    found, pending = set(), [recorder.code]
    for code in pending:
        found |= {name for name in code.co_names if name.startswith("_")}
        pending += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    for fact in recorder.facts:
        found |= set(re.findall(r"\bG\['(_\w+)'\]", fact.expression))
    known = {*recorder.imports, *recorder.backends, *recorder.own_names}
    return {name for name in found - known if name in recorder.globals}


def _dumped(value) -> bytes:
    from torch._dynamo.aot_compile import AOTCompilePickler

    buffer = io.BytesIO()
    pickler = AOTCompilePickler({}, buffer)
    pickler.dump(value)
    if pickler.errors:
        raise _NotPortable(f"a module among the program's globals: {value!r:.80}")
    return buffer.getvalue()


def _programs(folder: str) -> list[str]:
    """Newest first."""
    try:
        paths = [entry.path for entry in os.scandir(folder) if "." not in entry.name]
        return sorted(paths, key=os.path.getmtime, reverse=True)
    except OSError:
        return []


def _fits(inputs: dict[str, list], frame_locals: dict) -> bool:
    """Whether the sizes of tensors are those of a program, or may be: spares reading its guards."""
    for name, sizes in inputs.items():
        try:
            found = eval(name, {"L": frame_locals}).shape
        except (AttributeError, LookupError, TypeError, NameError):
            return False
        if len(found) != len(sizes) or any(s is not None and s != f for s, f in zip(sizes, found, strict=True)):
            return False
    return True


def _read(path: str, code: types.CodeType, frame_globals: dict, frame_locals: dict):
    """The guards, the bytecode and the sizes seen of a program that serves this call."""
    from torch._dynamo.bytecode_transformation import unique_id
    from torch._dynamo.output_graph import get_builtins_dict
    from torch._dynamo.package import SerializedCode
    from torch._dynamo.utils import CleanupHook, CleanupManager
    from torch._functorch._aot_autograd.aot_autograd_result import deserialize_bundled_cache_entry

    with open(path, "rb") as file:
        head = pickle.load(file)
        if not _fits(head["inputs"], frame_locals):
            raise _Unfit("other sizes")
        if changed := _changed(head["sources"]):
            raise _Unfit(f"{changed} was changed")
        body = pickle.load(file)
    for alias, module in body["imports"].items():
        frame_globals.setdefault(alias, importlib.import_module(module))
    named = {name: unique_id(name, with_uuid=True) for name in (*body["globals"], *body["backends"])}
    scope = {**_names(), "L": frame_locals, "G": frame_globals}
    installed = []
    for name, value in body["globals"].items():
        value = get_builtins_dict(frame_globals) if value is None else pickle.loads(value)
        installed.append(CleanupHook.create(frame_globals, named[name], value))
    try:
        facts_hold = _guard_of([_renamed_fact(fact, named) for fact in body["facts"]], scope)
        guards = _guards(body["guards"], facts_hold, code, frame_globals, frame_locals)
        for name, content in body["backends"].items():
            compiled = torch._dynamo.disable(deserialize_bundled_cache_entry(pickle.loads(content)))
            installed.append(CleanupHook.create(frame_globals, named[name], compiled))
        program = SerializedCode.to_code_object(_renamed_code(body["code"], named))
    except BaseException:
        for hook in installed:
            hook()
        raise
    CleanupManager.instance[program] = installed  # gone with it
    return guards, program, body["sizes"]


def _guards(state: bytes, facts_hold, code: types.CodeType, frame_globals: dict, frame_locals: dict):
    from torch._dynamo.package import load_guard_manager, load_guards_state

    guards = load_guard_manager(load_guards_state(state), code, frame_globals)
    guards.root.add_lambda_guard(facts_hold, ["the program is the one that was traced (torch_spyre)"], None)
    if not guards.check(frame_locals):
        raise _Unfit(str(guards.check_verbose(frame_locals).verbose_code_parts)[:400])
    return guards


# Dynamo numbers the names that it gives, from 0 in every process.


def _renamed_fact(fact: Fact, named: dict[str, str]) -> Fact:
    other = re.sub(r"\bG\['(\w+)'\]", lambda m: f"G['{named.get(m[1], m[1])}']", fact.expression)
    return dataclasses.replace(fact, expression=other)


def _renamed_code(code, named: dict[str, str]):
    constants = [_renamed_code(c, named) if isinstance(c, type(code)) else c for c in code.co_consts]
    names = [named.get(name, name) for name in code.co_names]
    return dataclasses.replace(code, co_consts=tuple(constants), co_names=tuple(names))


# --- in the place of a compilation -----------------------------------------------------------------------------------


def _backend_key(compiler) -> list | None:
    """What decides about the code that a back end makes; None for others than Inductor."""
    from torch._dynamo.eval_frame import innermost_backend

    backend = innermost_backend(compiler)
    if not isinstance(backend, torch._TorchCompileInductorWrapper):
        return None
    return ["inductor", sorted((name, repr(value)) for name, value in backend.config.items()), backend.dynamic]


def _are_kept(package, export: bool, hooks, code: types.CodeType) -> bool:
    return (
        package is None
        and not export
        and not any(getattr(hooks, field.name) for field in dataclasses.fields(hooks))
        and not torch.is_grad_enabled()
        and not code.co_name.startswith("torch_dynamo_resume_in")
        and not torch._inductor.config.force_disable_caches
        and torch._inductor.config.fx_graph_cache
        and torch._functorch.config.enable_autograd_cache
        and _C.setting("SPYRE_TRACE_CACHE")
        and _C.setting("SPYRE_REQUIRE_PRECOMPILED") == "0"
    )


#: Bytecode that was read, by its files.
_programs_read: dict[str, weakref.ref] = {}


def _load(folder: str, code, frame_globals: dict, frame_locals: dict, closure, compile_id, asked: list):
    """What Dynamo would return for this frame, if a program of another process serves the call.

    ``asked``: bytecode of this frame whose guards do not hold.
    """
    from torch._dynamo import convert_frame, pgo
    from torch._dynamo.types import GuardedCode, wrap_guarded_code
    from torch._dynamo.utils import dynamo_timed
    from torch._guards import CompileContext, compile_context

    for path in _programs(folder):
        if (reference := _programs_read.get(path)) is not None and reference() in asked:
            continue
        progress.now("reading", "what was traced before")
        try:
            with compile_context(CompileContext(compile_id)), dynamo_timed("spyre_trace"):
                guards, program, sizes = _read(path, code, frame_globals, frame_locals)
        except Exception as error:  # whatever is wrong with a file: tracing is always right
            log.debug("%s does not serve this call: %s: %s", path, type(error).__name__, error)
            continue
        _programs_read[path] = weakref.ref(program)
        convert_frame.orig_code_map[program] = code
        convert_frame.output_codes.add(program)
        seen = pgo.get_code_state()[pgo.CodeId.make(code, closure)].automatic_dynamic
        for name, entry in sizes.items():
            seen[name] |= entry
        _C._count_trace_read()
        return wrap_guarded_code(GuardedCode(program, guards, compile_id, f"Torch-Compiled Region: {compile_id}"))
    progress.now("tracing")
    return None


@contextlib.contextmanager
def _recording(recorder: _Recorder):
    from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCache

    write, look_up = AOTAutogradCache._write_to_local_cache, AOTAutogradCache._lookup

    def written(key, content):
        recorder.contents.append(content)
        return write(key, content)

    def looked_up(*args, **kwargs):
        found = look_up(*args, **kwargs)
        if found is not None:
            recorder.contents.append(found[1])
        return found

    token = _recorder.set(recorder)
    try:
        with (
            torch._functorch.config.patch(bundled_autograd_cache=True),
            replaced.attribute(AOTAutogradCache, "_write_to_local_cache", staticmethod(written)),
            replaced.attribute(AOTAutogradCache, "_lookup", staticmethod(looked_up)),
        ):
            yield
    finally:
        _recorder.reset(token)


def install() -> None:
    """May be run again (``register_with_dynamo``)."""
    from torch._dynamo import convert_frame, guards

    original, write = convert_frame._compile, guards.CheckFunctionManager.serialize_guards
    if replaced.is_from(original, __file__):
        return
    parameters = inspect.signature(original)

    @functools.wraps(original)
    def _compile(*args, **kwargs):
        from torch._dynamo import pgo

        call = parameters.bind(*args, **kwargs)
        call.apply_defaults()
        given = call.arguments
        code, frame_globals, frame_locals = given["code"], given["globals"], given["locals"]
        backend = _backend_key(given["compiler_fn"])
        kept = backend is not None and _are_kept(given["package"], given["export"], given["hooks"], code)
        if not kept or not patches.frame_uses_spyre(frame_locals):
            return original(*call.args, **call.kwargs)
        class_digest.cache_clear()  # a class may have got other methods since
        try:
            folder = _folder_of(code, frame_globals, frame_locals, backend, given["one_graph"])
        except _NotPortable as error:
            log.debug("not kept: %s", error)
            return original(*call.args, **call.kwargs)
        asked = [entry.code for entry in given["cache_entries"]]
        found = _load(folder, code, frame_globals, frame_locals, given["closure"], given["compile_id"], asked)
        if found is not None:
            return found
        recorder = _Recorder(code, frame_globals, frame_locals)
        given["package"] = recorder
        with _recording(recorder):
            result = original(*call.args, **call.kwargs)
        if recorder.why_not is None and result.guarded_code is not None:
            progress.now("writing", "what was traced")
            try:
                seen = pgo.get_code_state()[pgo.CodeId.make(code, given["closure"])].automatic_dynamic
                _write(folder, recorder, dict(seen))
            except Exception as error:  # a full disk, what cannot be pickled: the program runs all the same
                recorder.give_up(f"{type(error).__name__}: {error}")
        if recorder.why_not is not None:
            log.debug("%s is not kept: %s", code.co_qualname, recorder.why_not)
        return result

    @functools.wraps(write)
    def serialize_guards(self, builder, sorted_guards, output_graph):
        recorder = _recorder.get()
        if recorder is None:
            return write(self, builder, sorted_guards, output_graph)
        return recorder.guards(builder, sorted_guards, output_graph, functools.partial(write, self))

    convert_frame._compile = _compile
    guards.CheckFunctionManager.serialize_guards = serialize_guards
