"""What a compilation does, told to whoever waits at a terminal: phase, layer, kernel (``SPYRE_PROGRESS``).

    spyre: tracing: layer 12 of 40, 3 s

C++ draws (spyre/driver/progress_line.h), and adds passes by their names. Here PyTorch is listened to, and what Python
writes to the same terminal is kept apart from the line.
"""

import contextlib
import functools
import inspect
import re
import sys

from torch_spyre import _C
from torch_spyre._inductor import replaced

_line = _C._progress


def now(what: str, step: str = "") -> None:
    _line.now(what, step)


@contextlib.contextmanager
def shown():
    """Work that is told of inside. Of work inside other work, the outer one counts."""
    if not _line.is_shown():
        yield
        return
    _line.begin()
    try:
        with _written_apart(sys.stderr), _written_apart(sys.stdout):
            yield
    finally:
        _line.end()


@contextlib.contextmanager
def _written_apart(stream):
    """Others hold on to the stream itself (handlers of logging do), so it is the stream that is changed."""
    try:
        if not stream.isatty() or "write" in vars(stream):
            raise TypeError
        write = stream.write
    except (AttributeError, TypeError, ValueError):  # none, a closed one, or one in whose place something else is
        yield
        return

    def watched(text):
        if not text:
            return write(text)
        _line.erase()
        try:
            return write(text)
        finally:
            _line.others_wrote(str(text).endswith("\n"))

    stream.write = watched
    try:
        yield
    finally:
        if vars(stream).get("write") is watched:
            del stream.write


# --- layers ----------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _layer_in(path: str) -> tuple[str, int] | None:
    """The list of modules that a path goes through, and where: ``L['self'].model.layers.3.mlp``."""
    found = re.search(r"\.(\d+)(?=\.|$)", path)
    return (path[: found.start()], int(found[1])) if found else None


def _layer_of(node) -> tuple[str, int] | None:
    stack = node.meta.get("nn_module_stack")
    return _layer_in(next(reversed(stack.values()))[0]) if stack else None


class _Layers:
    """Tells of the layers of a graph, whose nodes come one after the other."""

    def __init__(self, what: str, length_of):
        """``length_of``: how many layers a list has, by its path; 0: nobody knows."""
        self.what, self.length_of, self.layer = what, functools.cache(length_of), None

    def at(self, node) -> None:
        layer = _layer_of(node)
        if layer is None or layer == self.layer:
            return
        self.layer, length = layer, self.length_of(layer[0])
        now(self.what, f"layer {layer[1] + 1}" + (f" of {length}" if length else ""))


def layers_of_graph(what: str, nodes) -> _Layers:
    layers = [layer for layer in map(_layer_of, nodes) if layer is not None]
    return _Layers(what, lambda path: max((place + 1 for list_, place in layers if list_ == path), default=0))


def _traced(output_graph) -> _Layers:
    """Of a graph that is not whole yet: how long a list is, the program says."""

    def length_of(path: str) -> int:
        try:
            return len(eval(path, {"L": output_graph.local_scope}))
        except (AttributeError, LookupError, NameError, SyntaxError, TypeError):
            return 0

    return _Layers("tracing", length_of)


def install() -> None:
    """Dynamo tells of every frame that is for the card, and in which module every node is that it traces. May be run
    again."""
    from torch._dynamo import convert_frame
    from torch._dynamo.output_graph import SubgraphTracer

    compile_frame, create = convert_frame._compile, SubgraphTracer.create_proxy
    parameters = inspect.signature(compile_frame)
    if replaced.is_from(compile_frame, __file__) or not _line.is_shown():
        return

    @functools.wraps(compile_frame)
    def _compile(*args, **kwargs):
        from torch_spyre._inductor import patches

        if not patches.frame_uses_spyre(parameters.bind(*args, **kwargs).arguments["locals"]):
            return compile_frame(*args, **kwargs)
        with shown():
            now("tracing")
            return compile_frame(*args, **kwargs)

    @functools.wraps(create)
    def create_proxy(self, *args, **kwargs):
        proxy = create(self, *args, **kwargs)
        if not hasattr(self, "spyre_layers"):
            self.spyre_layers = _traced(self.output_graph)
        self.spyre_layers.at(proxy.node)
        return proxy

    SubgraphTracer.create_proxy = create_proxy
    convert_frame._compile = _compile


@contextlib.contextmanager
def lowering_told():
    """While inside, Inductor's lowering says in which layer it is."""
    from torch._inductor.graph import GraphLowering

    if not _line.is_shown():
        yield
        return
    original = GraphLowering.run_node

    @functools.wraps(original)
    def run_node(self, node):
        if not hasattr(self, "spyre_layers"):
            self.spyre_layers = layers_of_graph("lowering", self.module.graph.nodes)
        self.spyre_layers.at(node)
        return original(self, node)

    with replaced.attribute(GraphLowering, "run_node", run_node):
        yield


# --- kernels ---------------------------------------------------------------------------------------------------------


class Kernels:
    """Counts kernels of one compilation; regions of a graph bring theirs when they are reached."""

    def __init__(self):
        self.number = self.of = 0

    def begin(self) -> None:
        self.number = self.of = 0

    def found(self, number: int) -> None:
        self.of += number

    def next(self, modules: str) -> None:
        self.number += 1
        now(f"kernel {self.number} of {max(self.of, self.number)}", modules)


kernels = Kernels()
