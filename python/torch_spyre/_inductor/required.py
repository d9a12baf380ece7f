"""``SPYRE_REQUIRE_PRECOMPILED``: a graph that PyTorch is about to compile for the card is an error."""

import torch

from torch_spyre import _C

_NAMED_AT_MOST = 8


def describe(named: dict) -> str:
    """``x float16[4, 64], mask bool[4]``: tensors by name, parameters left out, and numbers as they are."""
    words = []
    for name, value in named.items():
        if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
            words.append(f"{name} {str(value.dtype).removeprefix('torch.')}{list(value.shape)}")
        elif isinstance(value, (int, float)):
            words.append(f"{name} {value}")
    more = len(words) - _NAMED_AT_MOST
    return ", ".join(words[:_NAMED_AT_MOST] + ([f"and {more} more"] if more > 0 else [])) or "no tensors"


def refuse_compilation(model, example_inputs) -> None:
    setting = _C.setting("SPYRE_REQUIRE_PRECOMPILED")
    if setting == "0":
        return
    inputs = list(example_inputs)
    names = [f"input {i}" for i in range(len(inputs))]
    if isinstance(model, torch.fx.GraphModule):
        placeholders = [node.target for node in model.graph.nodes if node.op == "placeholder"]
        if len(placeholders) == len(inputs):
            names = placeholders
    graph = torch._guards.CompileContext.current_compile_id()
    raise RuntimeError(
        f"SPYRE_REQUIRE_PRECOMPILED={setting}: the graph {graph or type(model).__name__} would be compiled for "
        f"{describe(dict(zip(names, inputs, strict=True)))}\n"
        "  try  torch_spyre.load of a package that was saved after a call with these shapes, or without the setting"
    )
