"""Compiled models: every kernel, judged by what its text means, and inside of it every step.

A kernel runs as it was compiled, and its results are judged as those of a module are. It is then compiled once more to
return all that it computes on the way, and run on the same inputs: each step is judged from the card's own operands.
"""

import re

import torch

from torch_spyre import _C
from torch_spyre._compare import formats, graph_eval
from torch_spyre._compare.judge import Judge, ModuleRow, OperatorRow, Shaken, named, random_operator
from torch_spyre._compare.values import Values, read

#: What the evaluator raises for a text with something that it does not know.
_UNKNOWN = (AssertionError, AttributeError, KeyError, NotImplementedError, TypeError, ValueError)


class Kernels:
    def __init__(self, judge: Judge):
        self.judge = judge
        wide = judge.compute or torch.float32
        exact = graph_eval.as_the_host if judge.compute is None else lambda value, dtype: value
        self._exact = graph_eval.Numbers(wide, exact)
        self._rounding = graph_eval.Numbers(wide, formats.rounded)
        self._seen = Values(lambda dtype: torch.float32, read)  # what the card held when the reference last looked

    def __enter__(self):
        from torch_spyre._inductor import kernels

        self._on_cpu = {name: entry["calls"] for name, entry in _C.fallback_counts().items()}
        self._observing = kernels.observed_by(self._run)
        self._observing.__enter__()
        return self

    def __exit__(self, kind, *error):
        self._observing.__exit__(kind, *error)
        if kind is None:
            self._report_others()

    def _report_others(self) -> None:
        """What the program computed on the CPU, between kernels, is not judged."""
        for name, entry in _C.fallback_counts().items():
            if entry["calls"] == self._on_cpu.get(name):
                continue
            namespace, _, operator = name.partition("::")
            packet = getattr(getattr(torch.ops, namespace), operator.partition(".")[0])
            overload = getattr(packet, operator.partition(".")[2] or "default")
            if torch.Tag.nondeterministic_seeded in overload.tags:
                raise random_operator(name, "the compiled program")
            self.judge.note(f"{name} ran on the CPU, and is not judged")

    def _run(self, kernel, inputs, outputs, modules: str, launch) -> None:
        """Launches a kernel, once, and judges it."""
        judge = self.judge
        text, program = kernel.program()
        given = dict(zip(program.inputs, inputs, strict=True))
        for tensor in given.values():
            self._start_again_where_others_wrote(tensor)
        try:
            if "\n  extent " in text:
                raise NotImplementedError("it is for any size; try torch.compile(model, dynamic=False)")
            graph = graph_eval.parse(text)
            memories = self._computed(graph, given)
        except (*_UNKNOWN, RuntimeError) as error:
            launch()
            about = f"not judged, the reference goes on from the card's results: {str(error).splitlines()[0][:200]}"
            first = next((t for t in outputs), inputs[0])
            row = OperatorRow("kernel", modules, kernel.name, "", list(first.shape), named(first.dtype), note=about)
            judge.operators.append(row)
            for tensor in (*inputs, *outputs):
                for values in (judge.reference, judge.rounded, self._seen):
                    values.forget(tensor)
            return
        written = [name for name in graph.results if graph.buffers[name].is_input]
        copies = {n: t.clone() if n in written else t for n, t in given.items()}
        before = self._memory(graph, given, judge.held, self._exact)
        launch()
        results = {**dict(zip(program.outputs, outputs, strict=True)), **{name: given[name] for name in written}}
        for name, tensor in results.items():
            for which, values in (("reference", judge.reference), ("rounded", judge.rounded)):
                values.set(tensor, _view(memories[which][name], tensor))
            if tensor.is_floating_point():
                self._seen.set(tensor, read(tensor))
        first = len(judge.operators)
        self._judge_steps(kernel.name, graph, text, copies, before, memories, modules)
        for name, tensor in results.items():
            if tensor.is_floating_point():
                self._judge_result(f"{kernel.name} {name}", name, tensor, memories, first)

    def _computed(self, graph, given) -> dict[str, dict[str, torch.Tensor]]:
        """What is in memory after the kernel: of the two that begin with the model's inputs, and of those that begin
        with the card's operands."""
        judge = self.judge
        ways = {
            "reference": (judge.reference.get, self._exact),
            "rounded": (judge.rounded.get, self._rounding),
            "own": (judge.held, self._exact),
            "own rounded": (judge.held, self._rounding),
        }
        memories = {}
        for name, (value_of, numbers) in ways.items():
            memories[name] = self._memory(graph, given, value_of, numbers)
            for step in graph.nodes:
                graph_eval.run_step(graph, step, memories[name], numbers)
        return memories

    def _judge_result(self, path: str, name: str, tensor: torch.Tensor, memories, first: int) -> None:
        judge = self.judge
        accumulated, rounding = judge.errors(tensor)
        exact = _view(memories["own"][name], tensor)
        own = formats.relative_error(judge.held(tensor), exact, tensor.dtype)
        own_rounding = formats.relative_error(_view(memories["own rounded"][name], tensor), exact, tensor.dtype)
        judge.modules.append(
            ModuleRow(path, "result of a kernel", list(tensor.shape), named(tensor.dtype), accumulated, rounding,
                      first, len(judge.operators), own, own_rounding)
        )  # fmt: skip

    def _start_again_where_others_wrote(self, tensor: torch.Tensor) -> None:
        """Between kernels the CPU computes, too, and memory is used again: there the reference goes on from the card's
        values."""
        judge = self.judge
        if not judge.reference.knows(tensor):
            return
        if not self._seen.knows(tensor) or not _same(self._seen.get(tensor), read(tensor)):
            for values in (judge.reference, judge.rounded, self._seen):
                values.forget(tensor)
            judge.note("tensors written by the CPU between kernels: the reference goes on from the card's values")

    def _memory(self, graph, given, value_of, numbers) -> dict[str, torch.Tensor]:
        memory = graph_eval.memory_for(graph, numbers)
        for name, tensor in given.items():
            buffer = graph.buffers[name]
            value = value_of(tensor)
            value = value.to(numbers.wide) if value.is_floating_point() else value
            flat = torch.zeros(graph_eval.storage_of(buffer, tensor.storage_offset()), dtype=value.dtype)
            _view(flat, tensor).copy_(value)
            memory[name] = flat
        return memory

    # --- steps -------------------------------------------------------------------------------------------------------

    def _judge_steps(self, name: str, graph, text: str, inputs, memory, chains, modules: str) -> None:
        """``memory``: what the card's inputs hold; ``chains``: what reference and rounded reference end with."""
        try:
            found = self._all_results(graph, text, inputs)
        except RuntimeError as error:
            self.judge.note(f"a kernel that cannot return all its steps: {str(error).splitlines()[0]}")
            return
        steps = [(step, *graph_eval.touched(graph, step)) for step in graph.nodes]
        last = {buffer: i for i, (_, _, writes) in enumerate(steps) for buffer in writes}
        for i, (step, reads, writes) in enumerate(steps):
            operands = {b: memory[b].clone() for b in reads | writes}
            graph_eval.run_step(graph, step, memory, self._exact)
            done = [b for b in writes if last[b] == i]
            self._judge_step(name, graph, step, reads, done, operands, memory, found, chains, modules)
            for b in done:
                if not memory[b].is_complex():
                    memory[b] = _flat(graph.buffers[b], found[b], memory[b])

    def _judge_step(self, name, graph, step, reads, done, operands, memory, found, chains, modules) -> None:
        judge = self.judge
        done = [b for b in done if not memory[b].is_complex()]
        if not done:
            return
        buffers = [graph.buffers[b] for b in done]

        def result(memories, buffer):
            return memories[buffer.name].as_strided(buffer.size, buffer.stride, buffer.offset)

        def again(trial):
            shaken = Shaken(trial, judge.compute is None)
            off = {
                b: shaken(flat, graph.buffers[b].dtype) if b in reads else flat.clone() for b, flat in operands.items()
            }
            graph_eval.run_step(graph, step, off, self._exact)
            return [result(off, b) for b in buffers]

        operator = getattr(step, "operator", "") or step.name
        row = OperatorRow(operator, modules, name, step.source, buffers[0].size, named(buffers[0].dtype))
        values = [found[b] for b in done]
        held = [read(v).to(result(memory, b).dtype) for v, b in zip(values, buffers, strict=True)]
        own = [result(memory, b) for b in buffers]
        floats = [b for b in buffers if b.dtype.is_floating_point and 0 not in b.size]
        errors = [
            tuple(
                formats.relative_error(there, result(chains["reference"], b), b.dtype)
                for there in (read(found[b.name]), result(chains["rounded"], b))
            )
            for b in floats
        ]
        judge.judge(row, values, held, own, again, errors=max(errors, default=(0.0, 0.0)))

    def _all_results(self, graph, text: str, inputs) -> dict[str, torch.Tensor]:
        """By name, everything that a kernel computes from these inputs."""
        from torch_spyre._inductor import kernels

        names = [b.name for b in graph.buffers.values() if not b.is_input]
        written = [name for name in graph.results if graph.buffers[name].is_input]
        everything = re.sub(r"^  return .*$", f"  return {', '.join([*names, *written])}", text, flags=re.MULTILINE)
        program = kernels.compile_for_codegen(everything)
        device = next(t.device for t in inputs.values())
        outputs = {}
        for name in program.outputs:
            b = graph.buffers[name]
            outputs[name] = _C._empty_with_compiled_layout(
                b.size, b.stride, b.dtype, program.output_layout(name), device
            )
        facts = _C.CallFacts(everything, "", "")
        program.run([inputs[n] for n in program.inputs], [outputs[n] for n in program.outputs], facts)
        return {**outputs, **{name: inputs[name] for name in written}}


def _view(flat: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    return flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(((a == b) | (a.isnan() & b.isnan())).all())


def _flat(buffer, tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    flat = torch.zeros_like(like)
    flat.as_strided(buffer.size, buffer.stride, buffer.offset).copy_(read(tensor))
    return flat
