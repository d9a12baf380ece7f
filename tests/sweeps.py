"""Sweeps of which `make test` runs a part, and `make test-full` all."""

import itertools

import pytest


def in_turn(*axes, one_in: int | None = None):
    """Every combination of the axes' values, as parameters of a test: one in so many is quick, the others are `full`.

    The values take turns. As many combinations as the last axis has values make a round, and neighbours on one axis
    meet different values of the others, so that the quick run leaves no value out:

        in_turn("ab", "xyz")  ->  quick a-x and b-y; full a-y, a-z, b-x and b-z
        in_turn("abc", "xy")  ->  quick a-x, b-y and c-x
    """
    axes = [list(axis) for axis in axes]
    one_in = one_in or len(axes[-1])
    combinations = []
    for places in itertools.product(*(range(len(axis)) for axis in axes)):
        quick = (places[-1] - sum(places[:-1])) % one_in == 0
        values = (axis[place] for axis, place in zip(axes, places, strict=True))
        combinations.append(pytest.param(*values, marks=() if quick else pytest.mark.full))
    return combinations
