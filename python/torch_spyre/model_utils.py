"""Helpers for whole models."""

import torch


def load_model_to_spyre(model: torch.nn.Module, dtype: torch.dtype | None = None) -> torch.nn.Module:
    """Moves a model to the card, converting floating-point weights to ``dtype`` if given. Safe to call twice."""
    return model.to(device="spyre", dtype=dtype)
