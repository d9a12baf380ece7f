"""Changes that hold while one is inside, and are undone whatever happens there."""

import contextlib

_ABSENT = object()


@contextlib.contextmanager
def attribute(owner, name: str, value):
    """``owner.name`` is ``value``."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextlib.contextmanager
def entries(table: dict, changes: dict):
    """``table`` has these entries instead of its own, or besides them. What others add meanwhile stays."""
    before = {key: table.get(key, _ABSENT) for key in changes}
    table.update(changes)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is _ABSENT:
                table.pop(key, None)
            else:
                table[key] = value
