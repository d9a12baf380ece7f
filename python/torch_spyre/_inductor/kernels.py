"""Kernels at run time: from graph text to something that runs, cached in memory and on disk."""

import contextlib
import contextvars
import functools
import itertools
import json
import logging
import os
import re
import struct
import weakref

import torch
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.runtime.cache_dir_utils import cache_dir

from torch_spyre import _C, profiler
from torch_spyre._inductor import artifacts, config
from torch_spyre._inductor.errors import SpyreUnsupportedError

log = logging.getLogger(__name__)
STICK = 64  # elements of the narrowest type that is computed with


def compile_graph(text: str):
    """The C++ compiler. Tests put another reader of the same text here."""
    try:
        return _C.compile_graph(text, config.compile_options())
    except _C.CompileError as error:
        raise SpyreUnsupportedError(str(error), error.node, tuple(error.extents)) from error


_OURS = compile_graph


@functools.cache
def compiler_id() -> str:
    """Changes with the compiler and with this package: part of the key of cached graphs."""
    from torch._inductor.custom_graph_pass import get_hash_for_files

    here = os.path.dirname(__file__)
    sources = sorted(os.path.join(here, name) for name in os.listdir(here) if name.endswith(".py"))
    return f"{_C.__version__}-{get_hash_for_files((_C.__file__, *sources)).hex()}"


@functools.lru_cache(maxsize=4096)
def eager_layout(size: tuple, stride: tuple, dtype: torch.dtype):
    """How a tensor lies that nobody chose a layout for: the result of an eager operator, say."""
    return torch.empty_strided(size, stride, dtype=dtype, device="spyre").device_tensor_layout()


def made_by() -> dict:
    """What a kernel depends on besides its text."""
    return {"compiler": compiler_id(), "settings": config.values()}


#: A folder of kernels that all come from there: none is compiled.
_package: contextvars.ContextVar[str | None] = contextvars.ContextVar("spyre_package", default=None)


@contextlib.contextmanager
def only_from(folder: str):
    """Kernels that are loaded inside come from this folder; one that it has not, or not whole, is an error."""
    token = _package.set(folder)
    try:
        yield
    finally:
        _package.reset(token)


def _saved(text: str):
    """The kernel that another process left on disk, or this one earlier."""
    folder = os.path.join(_package.get() or artifact_directory(), artifacts.folder_name(text, made_by()))
    try:
        return artifacts.read(folder, text, made_by())
    except artifacts.ArtifactError as error:
        if _package.get() is not None:
            raise
        log.debug("compiled again: %s", error)
        return None


@functools.lru_cache(maxsize=1024)
def _compiled(text: str, compiler, settings):
    if compiler is _OURS and (saved := _saved(text)) is not None:
        kernel, refused_hints = saved
    else:
        kernel = compiler(text)
        refused_hints = getattr(kernel, "refused_hints", ())
    for reason in refused_hints:
        log.warning("%s; the work is divided without this hint", reason)
    return kernel


def compile_for_codegen(text: str):
    return _compiled(text, compile_graph, tuple(config.values().items()))


def empty_with_layout(size, stride, dtype, fields, device, room=None):
    """``room``: the sizes that its memory has, where ``size`` is smaller in this call."""
    device_size, stride_map, device_dtype, arrangement = fields
    layout = _C.SpyreTensorLayout(
        device_size,
        stride_map,
        getattr(_C.DataFormats, device_dtype),
        getattr(_C.ElementArrangement, arrangement),
    )
    device = torch.device(device)
    tensor = _C._empty_with_compiled_layout(list(room or size), list(stride), dtype, layout, device)
    return tensor if room is None else _C.reinterpret_tensor(tensor, list(size), list(stride), 0)


def reinterpret_tensor(tensor, size, stride, offset):
    """A view of the wrapper's buffers; graphs may mix the card's tensors and the host's."""
    if tensor.device.type != "spyre":
        return torch._C._dynamo.guards._reinterpret_tensor(tensor, size, stride, offset)
    return _C.reinterpret_tensor(tensor, list(size), list(stride), offset)


_SCALARS_AT_MOST = 256  # a stick of device memory each


@functools.lru_cache(maxsize=_SCALARS_AT_MOST)
def _scalar_on_card(bits: bytes, dtype: torch.dtype, device: str) -> torch.Tensor:
    (value,) = struct.unpack("=q" if bits[:1] == b"i" else "=d", bits[1:])
    return torch.tensor(value, dtype=torch.int64 if bits[:1] == b"i" else torch.float64).to(dtype).to(device)


def launch_scalar(value, dtype: torch.dtype, device: str) -> torch.Tensor:
    """A number of the program as a kernel takes it: in memory of the card. Numbers that come again are there already.

    Told apart by their bits: a NaN is no other number, and zeros have signs.
    """
    value = value.item() if isinstance(value, torch.Tensor) else value
    whole = not isinstance(value, float)
    return _scalar_on_card(struct.pack("=cq" if whole else "=cd", b"i" if whole else b"f", value), dtype, device)


#: Who is asked to run kernels: given the kernel, its inputs, its results, the modules it computes, and its launch.
_observer: contextvars.ContextVar = contextvars.ContextVar("spyre_kernel_observer", default=None)


@contextlib.contextmanager
def observed_by(observer):
    """Kernels that run inside are launched by the observer."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


#: Kernels of this process, in the order they were loaded; they go with the code that owns them.
loaded: "weakref.WeakSet[LoadedKernel]" = weakref.WeakSet()
_numbers = itertools.count()


def traffic() -> list[dict]:
    """What the last run of every loaded kernel moved: one entry per op, with the kernel's name and the op's counts."""
    entries = []
    for kernel in sorted((k for k in loaded if k.has_run), key=lambda k: k.number):
        for op in kernel.plan().last_run_counts()["ops"]:
            entries.append({"kernel": kernel.name, **op})
    return entries


def hbm_bytes(among) -> tuple[int, int]:
    """Device memory traffic of the last run of these kernels, and their inputs and results once: the least possible."""
    moved = sum(op["hbm_read"] + op["hbm_written"] for k in among for op in k.plan().last_run_counts()["ops"])
    return moved, sum(k.compulsory_bytes() for k in among)


def explain(html: str | os.PathLike | None = None) -> list[dict]:
    """The scratchpad plans of the kernels of this process, in the order they were loaded.

    One dict per kernel: ``kernel`` is its name, ``buffers`` says of every buffer where it lives, and why, ``saved``,
    ``moved`` and ``bound`` are bytes of device memory traffic. ``html`` names a folder: every plan is written there
    too, as a page with the map of LX, and ``page`` is its path. Kernels compiled with ``LX_PLANNING=0`` have no plan.
    """
    plans = []
    for kernel in sorted((k for k in loaded if k.has_run), key=lambda k: k.number):
        planned = kernel.as_compiled()
        if not getattr(planned, "planned", False):
            continue
        plan = {"kernel": kernel.name, **json.loads(planned.plan_facts())}
        if html is not None:
            os.makedirs(html, exist_ok=True)
            plan["page"] = os.path.join(html, f"{kernel.number:03d}_{kernel.name}"[:120] + ".html")
            artifacts.write_text(plan["page"], planned.plan_page())
        plans.append(plan)
    return plans


_EXTENT = re.compile(r"^  extent (\w+) <= (\d+) ", re.MULTILINE)


def _range_of(size: int) -> int:
    """All sizes up to the next power of two of sticks are served by one program."""
    most = STICK
    while most < size:
        most *= 2
    return most


def for_calls_of(text: str, sizes) -> str:
    """The text of the program for calls of these sizes, one for each of its extents."""
    given = iter(sizes)

    def shorter(extent: re.Match) -> str:
        name, room, most = extent[1], int(extent[2]), _range_of(next(given))
        return f"  extent {name} <= {most} room={room} " if most < room else extent[0]

    return _EXTENT.sub(shorter, text)


def with_layouts(text: str, layouts: dict[str, str]) -> str:
    """The text whose results lie like this: programs for other sizes write the same tensors."""
    for name, layout in layouts.items():
        text = re.sub(rf"^  buffer {name} : .*$", rf"\g<0> layout={layout}", text, flags=re.MULTILINE)
    return text


def latest(graph: str) -> "LoadedKernel | None":
    """The kernel of this graph that was loaded last and has run."""
    found = [k for k in loaded if k.has_run and k.text.startswith(f"graph {graph} ")]
    return max(found, key=lambda k: k.number, default=None)


def _described(tensor: torch.Tensor) -> dict:
    described = {"shape": list(tensor.shape), "stride": list(tensor.stride()), "dtype": str(tensor.dtype)}
    return {**described, "device": str(tensor.device)}


class LoadedKernel:
    """A compiled kernel under the name that the wrapper knows it by.

    Of one whose sizes change from call to call there is a program for every range of them, compiled when first needed.
    """

    def __init__(self, name: str, text: str):
        self.name, self.text = name, text
        self.is_open = _EXTENT.search(text) is not None
        self._settings, self._package = config.values(), _package.get()
        self._programs: dict[str, object] = {}  # by their texts
        self._as_compiled: dict[str, object] = {}
        self._text = None  # of the program that runs, or ran last
        self._text_of: dict[tuple[int, ...], str] = {}  # by ranges: a launch does not read its text again
        self._facts_of: dict[tuple[str, str], _C.CallFacts] = {}  # by program and modules
        if not self.is_open:
            self._use(text)
        self.number = next(_numbers)
        self.last_call: dict = {}  # what it was given, for reports of failures
        self._keeps_calls = bool(_C.setting("TORCH_SPYRE_FFDC"))
        loaded.add(self)

    def _use(self, text: str) -> None:
        """Makes the program of this text the one that runs. A kernel of a package has those of the package only."""
        if text not in self._programs:
            with only_from(self._package) if self._package else contextlib.nullcontext():
                self._programs[text] = compile_for_codegen(text)
                _save(text, self._programs[text])
        self._text = text

    def _text_for(self, sizes) -> str:
        ranges = tuple(map(_range_of, sizes))
        if ranges not in self._text_of:
            self._text_of[ranges] = for_calls_of(self.text, ranges)
        return self._text_of[ranges]

    @property
    def _kernel(self):
        return self._programs[self._text]

    @property
    def has_run(self) -> bool:
        """Whether there is a program yet."""
        return self._text is not None

    def texts(self) -> list[str]:
        """Of its programs."""
        return list(self._programs)

    def programs(self) -> list[str]:
        """For which sizes there are programs, as text: ``s0 <= 64``."""
        extents = (re.findall(r"^  extent \w+ <= (\d+) .*of='(.*)'$", text, re.MULTILINE) for text in self._programs)
        return [", ".join(f"{source} <= {most}" for most, source in found) for found in extents]

    def plan(self):
        """The kernel on the first card; its counts are those of its last run."""
        return self._kernel.plan()

    def program(self):
        """The text of the program that runs, or ran last, and the program."""
        return self._text, self._kernel

    def as_compiled(self):
        """The kernel with what the compiler found out on the way; one that was read from disk is compiled for it."""
        if not getattr(self._kernel, "was_read", False):
            return self._kernel
        if self._text not in self._as_compiled:
            self._as_compiled[self._text] = _C.compile_graph(self._text, _C.CompileOptions(**self._settings))
        return self._as_compiled[self._text]

    @property
    def opspec(self):
        """Its operations with everything decided, a ``_C.Kernel``; ``str`` gives the text."""
        return self.as_compiled().opspec

    def compulsory_bytes(self) -> int:
        """What is used of every input and result, each stick once: the least that can be moved."""
        return self.as_compiled().compulsory_bytes()

    def run(self, inputs: list[torch.Tensor], outputs: list[torch.Tensor], sizes=(), modules="") -> None:
        """``sizes``: what its extents are in this call, in the order of the text.

        ``modules``: the modules of the model that it computes, for profiles.
        """
        if self.is_open:
            self._use(self._text_for(sizes))
        if self._keeps_calls:
            self.last_call = {"inputs": list(map(_described, inputs)), "outputs": list(map(_described, outputs))}
        launch = functools.partial(self._kernel.run, inputs, outputs, self._facts(modules))
        try:
            if (observer := _observer.get()) is not None:
                observer(self, inputs, outputs, modules, launch)
            else:
                launch()
        except Exception as error:
            profiler.record_failure("runtime_launch", error)
            raise

    def _facts(self, modules: str):
        key = (self._text, modules)
        if key not in self._facts_of:
            self._facts_of[key] = _C.CallFacts(self._text, modules, self.folder())
        return self._facts_of[key]

    def folder(self) -> str:
        """Where the program that ran last is on disk."""
        return os.path.join(self._package or artifact_directory(), artifacts.folder_name(self._text, made_by()))


class SpyreAsyncCompile(AsyncCompile):
    """The wrapper's ``async_compile``: kernels of the card, and those of the CPU in mixed graphs."""

    def sdsc(self, name: str, text: str) -> LoadedKernel:
        return LoadedKernel(name, text)


def artifact_directory() -> str:
    """Where kernels are left, one folder each: for later processes, and for a person to look at."""
    return os.path.join(cache_dir(), "inductor-spyre")


def _save(text: str, kernel) -> None:
    if getattr(kernel, "was_read", False) or _package.get() is not None:
        return
    folder = os.path.join(artifact_directory(), artifacts.folder_name(text, made_by()))
    if os.path.exists(os.path.join(folder, artifacts.FACTS)) and _saved(text) is not None:
        return
    os.makedirs(artifact_directory(), exist_ok=True)
    kernel.save(folder, text)
    if isinstance(kernel, _C.CompiledKernel):
        artifacts.seal(folder, kernel, made_by())


def saved_folder(text: str) -> str:
    """The folder of a kernel, whole: compiled and written first where it is not."""
    folder = os.path.join(artifact_directory(), artifacts.folder_name(text, made_by()))
    if _saved(text) is None:
        _save(text, compile_graph(text))
    return folder
