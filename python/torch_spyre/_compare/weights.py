"""The card's weights beside those of a reference module."""

import torch
from torch import nn

from torch_spyre._compare import formats
from torch_spyre._compare.judge import CompareError, WeightRow
from torch_spyre._compare.values import read


def _unwrapped(model: nn.Module) -> nn.Module:
    return getattr(model, "_orig_mod", model)


def _pairs(model: nn.Module, reference: nn.Module):
    theirs = {**dict(reference.named_parameters()), **dict(reference.named_buffers())}
    model = _unwrapped(model)
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        other = theirs.get(name)
        if other is None or other.shape != tensor.shape or other.device.type != "cpu":
            found = "none" if other is None else f"{tuple(other.shape)} on {other.device}"
            raise CompareError(
                f"the reference is another model: found {found} for {name}, allowed: {tuple(tensor.shape)} on cpu"
            )
        yield name, tensor, other.detach()


def by_storage(model: nn.Module, reference: nn.Module) -> dict[int, torch.Tensor]:
    return {tensor.untyped_storage()._cdata: other.contiguous() for _, tensor, other in _pairs(model, reference)}


def differing(model: nn.Module, reference: nn.Module) -> list[WeightRow]:
    """Weights that are more than rounding away from the reference's."""
    rows = []
    for name, tensor, other in _pairs(model, reference):
        held, expected = read(tensor), other.to(torch.float32) if other.is_floating_point() else other
        # Rounded twice on its way: to the model's type, then to the card's.
        rounds = tensor.dtype in formats.NARROW
        step, least = (of(tensor.dtype, True) if rounds else 0.0 for of in (formats.step_of, formats.least_of))
        allowed = step * expected.double().abs() + least
        off = formats.most_off(held, expected, allowed, tensor.dtype)
        if off is not None and off.is_out:
            differ = int(((held.double() - expected.double()).abs() > allowed).sum())
            rows.append(WeightRow(name, tensor.numel(), differ, off))
    return rows
