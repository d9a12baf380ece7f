"""What the tests of this folder share: compile a function for the card, run it, compare with the CPU."""

from dataclasses import dataclass, field

import torch
from torch_spyre._compare import graph_eval


@dataclass
class Recorder:
    texts: list[str] = field(default_factory=list)
    on_card: bool = False  # compiled and run, rather than evaluated

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    def check(self, function, *args, rtol=2e-2, atol=2e-2, fallbacks=(), **options):
        """The compiled function on the card gives what the function gives on the CPU, with these fallbacks only."""
        torch.spyre.reset_metrics()
        expected = function(*[_copy(a) for a in args])
        torch.spyre.reset_metrics()
        on_card = [a.to("spyre") if isinstance(a, torch.Tensor) else a for a in args]
        found = torch.compile(function, fullgraph=True, **options)(*on_card)
        counted = set(torch.spyre.metrics()["fallbacks"])
        assert counted == set(fallbacks), f"fell back to the CPU: {sorted(counted)}, expected {sorted(fallbacks)}"
        flat_found, flat_expected = torch.utils._pytree.tree_leaves(found), torch.utils._pytree.tree_leaves(expected)
        assert len(flat_found) == len(flat_expected)
        for f, e in zip(flat_found, flat_expected, strict=True):
            if isinstance(e, torch.Tensor):
                assert f.device.type == "spyre", f"a result stayed on {f.device}"
                assert f.shape == e.shape and f.dtype == e.dtype, f"{f.dtype}{f.shape}, expected {e.dtype}{e.shape}"
                assert_near(f, e, rtol, atol)
            else:
                assert f == e
        return found


def assert_near(found, expected, rtol=2e-2, atol=2e-2):
    """Equal up to the card's 16-bit format, which has a bit less precision than float16."""
    torch.testing.assert_close(found.cpu(), expected, rtol=rtol, atol=atol, equal_nan=True)


def _copy(value):
    return value.clone() if isinstance(value, torch.Tensor) else value


def use_evaluator(monkeypatch) -> Recorder:
    from torch_spyre._inductor import kernels
    from torch_spyre._inductor.errors import SpyreUnsupportedError

    recorder = Recorder()

    def compile_graph(text):
        if "\n  extent " in text:
            raise SpyreUnsupportedError("the evaluator knows one shape")
        refused = graph_eval.refused(graph_eval.parse(text))
        if refused:
            raise SpyreUnsupportedError(f"the card has no {refused[1]}", refused[0])
        recorder.texts.append(text)
        return graph_eval.EvaluatedKernel(text)

    monkeypatch.setattr(kernels, "compile_graph", compile_graph)
    monkeypatch.setattr(kernels, "compiler_id", lambda: "evaluator")  # or a cached graph of the other would be used
    return recorder


def use_compiler(monkeypatch) -> Recorder:
    from torch_spyre._inductor import kernels

    recorder, compiler = Recorder(on_card=True), kernels.compile_graph

    def compile_graph(text):
        kernel = compiler(text)
        recorder.texts.append(text)
        return kernel

    monkeypatch.setattr(kernels, "compile_graph", compile_graph)
    return recorder
