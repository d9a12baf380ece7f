"""Which layer, and which operator of it, lost the digits: a model on the card, judged by the CPU (ADR 0082)."""

import contextlib
from collections.abc import Mapping

import torch
from torch import nn

_COMPUTE = {"cpu": None, "cpu-fp32": torch.float32, "cpu-fp64": torch.float64}


def compare(model: nn.Module, inputs=None, reference: str | nn.Module = "cpu-fp32", **kwargs):
    """Runs the model on the card once and computes beside it, on the CPU, what should come out. Returns a ``Report``.

    ``inputs``: a tensor, a tuple of them, or a dict of arguments, on the card or on the CPU; ``kwargs`` are further
    arguments of the model. One forward call is compared, without gradients; ``generate()`` is many.

    ``reference``: ``cpu-fp32``, ``cpu-fp64``, or ``cpu``, the model's own types as the CPU computes them. Its weights
    are the card's. A module on the CPU is a reference in float32 with weights of its own: those of the card are
    compared with them first, and errors count what rounding the weights costs.

    >>> print(torch_spyre.compare(model, tokens))
    >>> torch_spyre.compare(model, tokens, reference=checkpoint).save("report.html")
    """
    from torch_spyre._compare.judge import Judge
    from torch_spyre._compare.kernels import Kernels
    from torch_spyre._compare.modules import compiled_parts, hooked
    from torch_spyre._compare.operators import Operators
    from torch_spyre._compare.report import Report
    from torch_spyre._compare.weights import by_storage, differing

    _refuse_model(model)
    arguments, named = _arguments_of(model, inputs, kwargs)
    if isinstance(reference, nn.Module):
        weights, compute, about = by_storage(model, reference), torch.float32, "a module on the CPU, in float32"
        changed = differing(model, reference)
    elif reference in _COMPUTE:
        weights, compute, about, changed = {}, _COMPUTE[reference], reference, []
    else:
        raise _error(f"found reference={reference!r}, allowed: {', '.join(_COMPUTE)}, or a module on the CPU")
    judge = Judge(compute, weights)
    compiled = compiled_parts(model)
    with torch.no_grad(), contextlib.ExitStack() as stack:
        stack.enter_context(hooked(model, judge, compiled))
        # PyTorch compiles nothing, and runs nothing compiled, where operators are watched.
        stack.enter_context(Kernels(judge) if compiled else Operators(judge))
        model(*arguments, **named)
    return Report(type(getattr(model, "_orig_mod", model)).__name__, about, bool(compiled), changed, judge)


def _error(text: str):
    from torch_spyre._compare.judge import CompareError

    return CompareError(text)


def _refuse_model(model) -> None:
    if not isinstance(model, nn.Module):
        raise _error(f"found a {type(model).__name__}, allowed: a module, or what torch.compile made of one")
    tensors = [*model.named_parameters(), *model.named_buffers()]
    if tensors and not any(t.device.type == "spyre" for _, t in tensors):
        name, tensor = tensors[0]
        raise _error(f"the model is not on the card: found {name} on {tensor.device}\n  try  model.to('spyre')")
    drops = [path for path, m in model.named_modules() if isinstance(m, nn.modules.dropout._DropoutNd) and m.training]
    drops = [path for path in drops if model.get_submodule(path).p > 0]
    if drops:
        raise _error(
            f"found {drops[0] or 'dropout'} in training mode, which drops other elements each time "
            f"({len(drops)} such modules)\n  try  model.eval()"
        )


def _arguments_of(model, inputs, kwargs) -> tuple[tuple, dict]:
    if inputs is None and not kwargs:
        raise _error(
            "found no inputs, allowed: a tensor, a tuple, or a dict of arguments\n  try  compare(model, tokens)"
        )
    if isinstance(inputs, Mapping):
        arguments, kwargs = (), {**inputs, **kwargs}
    elif isinstance(inputs, tuple | list):
        arguments = tuple(inputs)
    else:
        arguments = () if inputs is None else (inputs,)
    device = next((t.device for t in model.parameters() if t.device.type == "spyre"), torch.device("spyre"))

    def moved(value):
        return value.to(device) if isinstance(value, torch.Tensor) and value.device.type == "cpu" else value

    return torch.utils._pytree.tree_map(moved, (arguments, kwargs))
