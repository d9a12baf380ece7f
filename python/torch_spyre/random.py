"""Random state of the cards."""

import torch

from torch_spyre import _C
from torch_spyre.streams import _index


def _generator(device="spyre") -> torch.Generator:
    return _C._get_default_generator(_index(device))


def manual_seed(seed: int) -> None:
    """Seeds the current card's generator."""
    _generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all cards."""
    for index in range(_C._device_count()):
        _generator(index).manual_seed(int(seed))


def seed() -> int:
    """Seeds the current card's generator from the system's entropy."""
    return _generator(None).seed()


def seed_all() -> None:
    manual_seed_all(torch.seed())


def initial_seed(device="spyre") -> int:
    return _generator(device).initial_seed()


def get_rng_state(device="spyre") -> torch.Tensor:
    return _generator(device).get_state()


def set_rng_state(new_state: torch.Tensor, device="spyre") -> None:
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    return [get_rng_state(index) for index in range(_C._device_count())]


def set_rng_state_all(states) -> None:
    for index, state in enumerate(states):
        set_rng_state(state, index)
