"""An independent reader and evaluator of the compiler's input text, in plain PyTorch on the CPU.

It shares nothing with the compiler: every buffer is a flat array, and a node is run by spelling out all of its loop
points at once. Slow, plain, and meant to be obviously right. In which floats it computes, and how what is stored is
rounded, says ``Numbers``.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

_COMPARISONS = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge}
_TYPES = {
    name: getattr(torch, name)
    for name in ("float16", "bfloat16", "float32", "int8", "uint8", "int16", "int32", "int64", "bool")
}


# What the card can do by itself, besides the operations with constants below. Everything else is refused, as the
# compiler does: a test that passes here has not leant on an operation the card lacks.
_PLAIN = {
    **{
        name: getattr(torch, name)
        for name in (
            "abs",
            "add",
            "ceil",
            "cos",
            "erf",
            "exp",
            "floor",
            "log",
            "logical_and",
            "logical_not",
            "logical_or",
            "maximum",
            "minimum",
            "mul",
            "neg",
            "pow",
            "reciprocal",
            "relu",
            "rsqrt",
            "sigmoid",
            "sign",
            "sin",
            "sqrt",
            "square",
            "sub",
            "tanh",
            "where",
        )
    },
    "logical_xor": torch.ne,
    "truediv": torch.true_divide,
}
_WITH_CONSTANTS = ("checked_index", "clamp", "softplus", "gelu", "gelu_tanh", "silu", "layernormscale", "layernormnorm")
_REDUCTIONS = ("sum", "mean", "max", "min", "prod", "dot", "exx2", "any", "argmax", "argmin")


def refused(graph: "Graph") -> tuple[str, str] | None:
    """The first node the card could not run, and its operation."""
    for node in graph.nodes:
        for line in node.body if isinstance(node, Node) else ():
            op = line.split("=", 1)[1].split()[0] if "=" in line else "store"
            kind = op.removeprefix("reduce.")
            if op.startswith("reduce."):
                known = kind in _REDUCTIONS
            else:
                known = op in (
                    *_PLAIN,
                    *_COMPARISONS,
                    *_WITH_CONSTANTS,
                    "load",
                    "store",
                    "constant",
                    "index",
                    "to_dtype",
                )
            if not known:
                return node.name, op
    return None


@dataclass
class Buffer:
    name: str
    dtype: torch.dtype
    size: list[int]
    stride: list[int]
    is_input: bool
    layout: str | None = None
    offset: int = 0


@dataclass
class Node:
    name: str
    loops: list[tuple[str, int]]
    reduced: list[tuple[str, int]]
    operator: str = ""
    source: str = ""
    body: list[str] = field(default_factory=list)


@dataclass
class Call:
    """A PyTorch operator kept whole: what it means PyTorch knows."""

    name: str
    operator: str
    arguments: str
    results: str
    source: str = ""


@dataclass
class Graph:
    name: str
    buffers: dict[str, Buffer] = field(default_factory=dict)
    nodes: list[Node | Call] = field(default_factory=list)
    results: list[str] = field(default_factory=list)

    @property
    def inputs(self) -> list[str]:
        return [b.name for b in self.buffers.values() if b.is_input]


def _numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",") if n.strip()]


def _loops(text: str) -> list[tuple[str, int]]:
    return [(n.strip(), int(e)) for n, e in (item.split(":") for item in text.split(",") if item.strip())]


def _quoted(line: str, key: str) -> str:
    match = re.search(rf' {key}="([^"]*)"', line)
    return match[1] if match else ""


def parse(text: str) -> Graph:
    """Line by line: the text is written one statement per line."""
    graph, node = None, None
    for line in (raw.split("#")[0].strip() for raw in text.splitlines()):
        if not line:
            continue
        if line.startswith("graph "):
            graph = Graph(line.split()[1])
        elif line.startswith(("input ", "buffer ")):
            match = re.fullmatch(
                r"(input|buffer) (\w+) : (\w+)\[([^\]]*)\] stride=\[([^\]]*)\]"
                r"(?: offset=(\d+))?(?: storage=\d+)?(?: layout=(\(.*\)))?",
                line,
            )
            assert match, f"cannot read {line!r}"
            kind, name, dtype, size, stride, offset, layout = match.groups()
            assert name not in graph.buffers, f"{name} is declared twice"
            numbers = _numbers(size), _numbers(stride)
            graph.buffers[name] = Buffer(name, _TYPES[dtype], *numbers, kind == "input", layout, int(offset or 0))
        elif line.startswith("node "):
            match = re.match(r"node (\w+) \(([^;)]*)(?:;([^)]*))?\)", line)
            assert match and line.endswith("{"), f"cannot read {line!r}"
            name, loops, reduced = match.groups()
            node = Node(name, _loops(loops), _loops(reduced or ""), _quoted(line, "aten"), _quoted(line, "at"))
            graph.nodes.append(node)
        elif line.startswith("call "):
            match = re.match(r"call (\w+) ([\w.]+)\((.*)\) -> \(([^()]*)\)", line)
            assert match, f"cannot read {line!r}"
            graph.nodes.append(Call(*match.groups(), _quoted(line, "at")))
        elif line.startswith("return"):
            graph.results = [name.strip() for name in line[len("return") :].split(",") if name.strip()]
        elif line == "}":
            node = None
        else:
            node.body.append(line)
    return graph


def _index(text: str, symbols: dict, values: dict) -> torch.Tensor:
    """An integer expression over tensors of loop positions."""
    python = re.sub(r"floor\(", "floor_(", text.replace("/", "//"))
    names = {
        "Mod": lambda a, b: torch.remainder(torch.as_tensor(a), b),
        "floor_": lambda a: a,
        "IndirectAccess": lambda name: values[name].to(torch.int64),
        **symbols,
    }
    return torch.as_tensor(eval(python, {}, names))  # noqa: S307 - our own small grammar


def _attributes(text: str) -> tuple[str, dict[str, float]]:
    match = re.search(r"\{(.*)\}$", text)
    if not match:
        return text, {}
    pairs = (item.split(":") for item in match.group(1).split(",") if item.strip())
    return text[: match.start()].strip(), {k.strip(): float(v) for k, v in pairs}


def _widen(value: torch.Tensor) -> torch.Tensor:
    return value.float() if value.is_floating_point() else value


def as_the_host(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Rounded to PyTorch's type of that name."""
    return value.to(dtype).to(value.dtype)


@dataclass(frozen=True)
class Numbers:
    wide: torch.dtype = torch.float32  # every float is computed in it
    keep: Callable[[torch.Tensor, torch.dtype], torch.Tensor] = as_the_host  # what is left of one in a narrower type

    def cast(self, value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        if dtype == torch.bool:
            return value != 0
        return self.keep(value.to(self.wide), dtype) if dtype.is_floating_point else value.to(dtype)


def _pointwise(op: str, args: list[torch.Tensor], k: dict[str, float]) -> torch.Tensor:
    if op in _COMPARISONS:
        return _COMPARISONS[op](*args)
    if op == "checked_index":
        assert bool(((args[0] >= 0) & (args[0] < k["size"])).all()), f"an index outside of 0 to {k['size']:.0f}"
        return args[0]
    if op == "clamp":
        return args[0].clamp(k.get("min"), k.get("max"))
    if op == "softplus":
        return torch.nn.functional.softplus(args[0], k["beta"], k["threshold"])
    if op in ("gelu", "gelu_tanh"):
        return torch.nn.functional.gelu(args[0], approximate="tanh" if op == "gelu_tanh" else "none")
    if op == "silu":
        return torch.nn.functional.silu(args[0])
    if op == "layernormscale":
        return torch.rsqrt(args[0].imag - args[0].real ** 2 + k["eps"])
    if op == "layernormnorm":
        x, moments, scale, weight, bias = args
        return (x - moments.real) * scale * weight + bias
    return _PLAIN[op](*args)


def _reduce(op: str, args: list[torch.Tensor], outer: int, k: dict[str, float]) -> torch.Tensor:
    """Folds every axis from ``outer`` on."""
    flat = [a.reshape(*a.shape[:outer], -1) for a in args]
    x = flat[0]
    if op == "sum":
        return x.sum(-1)
    if op == "mean":
        return x.sum(-1) * k["scaling_factor"]
    if op in ("max", "min"):
        return x.amax(-1) if op == "max" else x.amin(-1)
    if op == "prod":
        return x.prod(-1)
    if op in ("argmax", "argmin"):
        return getattr(x, op)(-1)
    if op == "any":
        return (x != 0).any(-1)
    if op == "dot":
        return (x * flat[1]).sum(-1)
    if op == "exx2":
        scale = k["exx2scale"]
        return torch.complex(x.sum(-1) * scale, (x * x).sum(-1) * scale)
    raise AssertionError(f"no meaning for reduce.{op}")


def _run_node(graph: Graph, node: Node, memory: dict[str, torch.Tensor], numbers: Numbers) -> None:
    every = node.loops + node.reduced
    shape = [extent for _, extent in every]
    outer = len(node.loops)
    symbols = {}
    for axis, (name, extent) in enumerate(every):
        view = [1] * len(every)
        view[axis] = extent
        symbols[name] = torch.arange(extent).reshape(view)
    values: dict[str, torch.Tensor] = {}
    reduced = False
    for line in node.body:
        if line.startswith("store "):
            name, index, value = re.fullmatch(r"store (\w+)\[(.*)\] (v\d+)", line).groups()
            store_shape = shape[:outer] if reduced or not node.reduced else shape
            flat = symbols
            if reduced:
                flat = {n: symbols[n].reshape(symbols[n].shape[:outer]) for n, _ in node.loops}
            where = _index(index, flat, values).expand(store_shape).reshape(-1)
            _store(graph.buffers[name], memory, name, where, values[value].expand(store_shape).reshape(-1), numbers)
            continue
        target, rest = (part.strip() for part in line.split("=", 1))
        if rest.startswith("load "):
            name, index = re.fullmatch(r"load (\w+)\[(.*)\]", rest).groups()
            where = _index(index, symbols, values)
            assert int(where.min()) >= 0 and int(where.max()) < memory[name].numel(), (
                f"{node.name}: {rest} leaves {name} of {memory[name].numel()} elements"
            )
            values[target] = memory[name][where]
        elif rest.startswith("constant "):
            value, dtype = re.fullmatch(r"constant (\S+) : (\w+)", rest).groups()
            values[target] = numbers.cast(torch.tensor(float(value), dtype=torch.float64), _TYPES[dtype])
        elif rest.startswith("index "):
            index, dtype = re.fullmatch(r"index (.*) : (\w+)", rest).groups()
            values[target] = numbers.cast(_index(index, symbols, values), _TYPES[dtype])
        elif rest.startswith("to_dtype "):
            value, dtype = re.fullmatch(r"to_dtype (v\d+) : (\w+)", rest).groups()
            values[target] = numbers.cast(values[value], _TYPES[dtype])
        else:
            call, attributes = _attributes(rest)
            call = call.split(" : ")[0]  # a product may say that its result is wider
            op, *operands = call.split()
            args = [values[o] for o in operands]
            if op.startswith("reduce."):
                full = [a.expand(shape) for a in args]
                values[target] = _reduce(op[len("reduce.") :], full, outer, attributes)
                reduced = True
            else:
                values[target] = _pointwise(op, args, attributes)


def _items(text: str) -> list[str]:
    """What stands between the commas outside of any bracket."""
    items, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[{(") - (c in "]})")
        if c == "," and depth == 0:
            items.append(text[start:i].strip())
            start = i + 1
    return [*items, text[start:].strip()] if text.strip() else []


def _view(graph: Graph, text: str, memory: dict[str, torch.Tensor]) -> torch.Tensor:
    pattern = r"(\w+)(?: : \[([^\]]*)\])?(?: stride=\[([^\]]*)\])?(?: offset=(\d+))?"
    name, size, stride, offset = re.fullmatch(pattern, text).groups()
    buffer = graph.buffers[name]
    size = buffer.size if size is None else _numbers(size)
    stride = buffer.stride if stride is None else _numbers(stride)
    return memory[name].as_strided(size, stride, buffer.offset if offset is None else int(offset))


def _argument(graph: Graph, text: str, memory: dict[str, torch.Tensor], numbers: Numbers):
    words = {"none": None, "true": True, "false": False, "inf": float("inf"), "-inf": -float("inf")}
    if text in words:
        return words[text]
    if text[0] in "[{":
        return [_argument(graph, item, memory, numbers) for item in _items(text[1:-1])]
    if text[0] == "'":
        return text[1:-1]
    if text.startswith("dtype("):
        dtype = _TYPES[text[len("dtype(") : -1]]
        return numbers.wide if dtype.is_floating_point else dtype
    if re.match(r"-?\d", text):
        return float(text) if re.search(r"[.e]", text) else int(text)
    return _view(graph, text, memory)


def _run_call(graph: Graph, call: Call, memory: dict[str, torch.Tensor], numbers: Numbers) -> None:
    """In wide floats, rounded where it is stored, as in nodes."""
    namespace, packet, overload = call.operator.split(".")
    operator = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    given = [_argument(graph, text, memory, numbers) for text in _items(call.arguments)]
    schema = operator._schema.arguments
    options = {a.name: value for a, value in zip(schema, given, strict=True) if a.kwarg_only}
    found = operator(*(value for a, value in zip(schema, given, strict=True) if not a.kwarg_only), **options)
    results = _items(call.results)
    for text, value in zip(results, [found] if len(results) == 1 else found, strict=True):
        if text != "none":
            _view(graph, text, memory).copy_(numbers.cast(value, graph.buffers[text.split(" ")[0]].dtype))


def _store(buffer: Buffer, memory: dict, name: str, where: torch.Tensor, value: torch.Tensor, numbers: Numbers) -> None:
    target = memory[name]
    if value.is_complex() != target.is_complex():  # the two moments of a row travel as one number
        memory[name] = target = torch.zeros(target.numel(), dtype=torch.complex64)
    target[where] = value if value.is_complex() else numbers.cast(value, buffer.dtype).to(target.dtype)


def storage_of(buffer: Buffer, offset: int = 0) -> int:
    return (
        1 + offset + sum((s - 1) * t for s, t in zip(buffer.size, buffer.stride, strict=True))
        if 0 not in buffer.size
        else 0
    )


def memory_for(graph: Graph, numbers: Numbers) -> dict[str, torch.Tensor]:
    """Of every buffer that is no input, a flat array that nobody has written yet."""
    memory = {}
    for buffer in graph.buffers.values():
        if not buffer.is_input:
            dtype = numbers.wide if buffer.dtype.is_floating_point else buffer.dtype
            nothing = float("nan") if dtype.is_floating_point else 0
            memory[buffer.name] = torch.full((storage_of(buffer),), nothing, dtype=dtype)
    return memory


def run_step(graph: Graph, step: Node | Call, memory: dict[str, torch.Tensor], numbers: Numbers) -> None:
    (_run_node if isinstance(step, Node) else _run_call)(graph, step, memory, numbers)


def touched(graph: Graph, step: Node | Call) -> tuple[set[str], set[str]]:
    """The buffers that a step reads, and those that it writes."""
    if isinstance(step, Node):
        lines = "\n".join(step.body)
        return set(re.findall(r"\bload (\w+)\[", lines)), set(re.findall(r"^store (\w+)\[", lines, re.MULTILINE))
    return tuple(set(re.findall(r"\w+", text)) & graph.buffers.keys() for text in (step.arguments, step.results))


class EvaluatedKernel:
    """Stands in for the compiled kernel: the same interface, run on copies of the tensors on the CPU."""

    def __init__(self, text: str):
        from torch_spyre._C import SpyreTensorLayout

        self.text, self.graph = text, parse(text)
        self.inputs = self.graph.inputs
        self.outputs = [name for name in self.graph.results if not self.graph.buffers[name].is_input]
        self._layout = SpyreTensorLayout

    def output_layout(self, name: str):
        buffer = self.graph.buffers[name]
        order = list(range(len(buffer.size)))
        return self._layout(buffer.size, buffer.stride, buffer.dtype, order)

    def run(self, inputs: list[torch.Tensor], outputs: list[torch.Tensor], facts=None) -> None:
        memory = memory_for(self.graph, Numbers())
        for name, tensor in zip(self.inputs, inputs, strict=True):
            buffer = self.graph.buffers[name]
            assert list(tensor.shape) == buffer.size and list(tensor.stride()) == buffer.stride, (
                f"{name}: {tuple(tensor.shape)} strides {tensor.stride()}, compiled for {buffer.size} {buffer.stride}"
            )
            host = _widen(tensor.cpu())
            flat = torch.zeros(storage_of(buffer, tensor.storage_offset()), dtype=host.dtype)
            flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).copy_(host)
            memory[name] = flat
        for step in self.graph.nodes:
            run_step(self.graph, step, memory, Numbers())
        for name, tensor in zip(self.outputs, outputs, strict=True):
            tensor.copy_(memory[name].as_strided(tensor.shape, tensor.stride(), 0).to(tensor.dtype))
        for name, tensor in zip(self.inputs, inputs, strict=True):
            if name in self.graph.results:
                view = memory[name].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
                tensor.copy_(view.to(tensor.dtype))

    def save(self, directory: str, graph: str) -> None:
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, "graph.ir"), "w") as file:
            file.write(graph)
