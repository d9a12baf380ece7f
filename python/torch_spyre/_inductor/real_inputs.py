"""The caller's tensors behind the inputs of the graph being compiled: their device layouts matter, fakes have none."""

import torch
from torch._inductor.virtualized import V


def _tensors() -> list:
    found = V.real_inputs
    return list(found) if isinstance(found, (list, tuple)) else []


def real_input(position: int, declared) -> torch.Tensor | None:
    """The tensor given for graph input ``position``, or None where it is not known (a backward graph, say)."""
    tensors = _tensors()
    if position >= len(tensors) or len(tensors) != len(V.graph.graph_input_names):
        return None
    tensor = tensors[position]
    if not isinstance(tensor, torch.Tensor) or isinstance(tensor, torch._subclasses.FakeTensor):
        return None
    if tensor.device.type != "spyre" or tensor.device != declared.get_device() or tensor.dtype != declared.get_dtype():
        return None
    hint = V.graph.sizevars.guarding_hint_or_throw
    same = list(tensor.shape) == [hint(s) for s in declared.get_size()] and list(tensor.stride()) == [
        hint(s) for s in declared.get_stride()
    ]
    return tensor if same else None


def layouts_for_key() -> list:
    """What the cache keys of compiled graphs must distinguish: device layouts and storage offsets."""
    result = []
    for tensor in _tensors():
        if isinstance(tensor, torch.Tensor) and not isinstance(tensor, torch._subclasses.FakeTensor):
            layout = tensor.device_tensor_layout()
            result.append((str(layout), tensor.storage_offset()) if layout is not None else None)
        else:
            result.append(None)
    return result
