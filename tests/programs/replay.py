"""Kernels that a program ran, and the same from their saved artifacts."""

import contextlib


@contextlib.contextmanager
def recorded():
    yield []
