"""Changes that hold while one is inside, and are undone whatever happens there."""

import contextlib

_ABSENT = object()


def is_from(function, file: str) -> bool:
    """Whether it is what this file put in its place, perhaps behind what others did."""
    while function is not None:
        if getattr(getattr(function, "__code__", None), "co_filename", None) == file:
            return True
        function = getattr(function, "__wrapped__", None)
    return False


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
