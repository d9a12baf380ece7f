"""Which lowerings and decompositions a script has registered: kernels in Inductor's cache depend on them."""

import hashlib
import inspect

_known: dict[str, str] = {}


def note(operators, function) -> None:
    """Later ones replace earlier ones of the same operator."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):  # typed into an interpreter, or built at run time: known by its code
        code = getattr(function, "__code__", None)
        source = repr((code.co_code, code.co_consts, code.co_names)) if code is not None else repr(function)
    for operator in operators if isinstance(operators, (list, tuple)) else [operators]:
        _known[str(operator)] = hashlib.sha256(source.encode()).hexdigest()


def for_key() -> list[tuple[str, str]]:
    return sorted(_known.items())
