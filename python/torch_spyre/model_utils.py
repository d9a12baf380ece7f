"""Helpers for whole models."""

from collections import Counter

import torch
from torch import nn

from torch_spyre._C import SpyreTensorLayout

_TURNED = (torch.float16, torch.bfloat16)


def load_model_to_spyre(model: nn.Module, dtype: torch.dtype | None = None) -> nn.Module:
    """Moves a model to the card, converting floating-point weights to ``dtype`` if given. Safe to call twice."""
    return model.to(device="spyre", dtype=dtype)


def patch_module_to_for_spyre() -> None:
    """Makes ``model.to("spyre")`` do what ``load_model_to_spyre`` does. ``import torch`` has done so already."""
    from torch_spyre._tensor_methods import place_weights_in_module_to

    place_weights_in_module_to()


def shared_tensors(model: nn.Module) -> list[list[tuple[dict, str]]]:
    """Of every parameter and buffer that several modules hold, who holds it: a dictionary and a name in it each."""
    holders: dict[int, list[tuple[dict, str]]] = {}
    for module in model.modules():
        for held in (module._parameters, module._buffers):
            for name, tensor in held.items():
                if tensor is not None:
                    holders.setdefault(id(tensor), []).append((held, name))
    return [places for places in holders.values() if len(places) > 1]


def tie(shared: list[list[tuple[dict, str]]]) -> None:
    """Makes one tensor again of each that several modules held."""
    for (first, first_name), *others in shared:
        for held, name in others:
            held[name] = first[first_name]


def _moved_by_us(module: nn.Module):
    """A module and those inside, less the ones with an ``_apply`` of their own: they decide how their weights move."""
    if "_apply" in vars(module) or type(module)._apply is not nn.Module._apply:
        return
    yield module
    for child in module.children():
        yield from _moved_by_us(child)


def _linears(model: nn.Module) -> list[nn.Linear]:
    """The linear layers whose weights nobody else holds."""
    linears = [m for m in dict.fromkeys(_moved_by_us(model)) if type(m) is nn.Linear and type(m.weight) is nn.Parameter]
    holders = Counter(id(p) for m in model.modules() for p in m._parameters.values() if p is not None)
    in_linears = Counter(id(m.weight) for m in linears)
    return [m for m in linears if holders[id(m.weight)] == in_linears[id(m.weight)]]


def _layout_for_matmul(weight: torch.Tensor, dtype: torch.dtype) -> SpyreTensorLayout:
    return SpyreTensorLayout(list(weight.shape), list(weight.stride()), dtype, [1, 0])


def place_linear_weights(model: nn.Module, device: torch.device, dtype: torch.dtype | None) -> None:
    """Moves the weights of linear layers with the stick along ``out_features``; those on the card are laid out anew.

    That is how a matmul wants its right operand, so no call turns them. A weight that something else than a linear
    layer also holds (a tied embedding) keeps the standard layout, which is the one rows can be gathered from; and so
    does one of 32 bits, which the card could not turn beside its gradient.
    """
    moved: dict[int, nn.Parameter] = {}
    for module in _linears(model):
        weight = module.weight
        wanted = weight.dtype if dtype is None else dtype
        if wanted not in _TURNED:
            continue
        if weight.device.type == "spyre" and wanted == weight.dtype:
            # The parameter stays the one that an optimizer may hold.
            weight.data = weight.detach().to(device_layout=_layout_for_matmul(weight, wanted))
        elif weight.device.type == "cpu":
            if id(weight) not in moved:
                host = weight.detach().to(wanted)
                placed = host.to(device, device_layout=_layout_for_matmul(host, wanted))
                moved[id(weight)] = nn.Parameter(placed, weight.requires_grad)
            module.weight = moved[id(weight)]


def place_empty_linear_weights(model: nn.Module, recurse: bool) -> None:
    """The same for weights on the card whose elements nobody has written yet."""
    for module in _linears(model):
        weight = module.weight
        if not recurse and module is not model:
            continue
        if weight.device.type == "spyre" and weight.dtype in _TURNED:
            layout = _layout_for_matmul(weight, weight.dtype)
            weight.data = torch.empty(weight.shape, dtype=weight.dtype, device=weight.device, device_layout=layout)
