"""What is logged, by component: ``set_log_level("spyre.runtime", "DEBUG")``.

Components are ``spyre``, ``spyre.inductor`` and the modules inside, and the layers of C++ (``spyre.runtime``). One
without a level of its own has its parent's. ``TORCH_LOGS="+torch_spyre"`` does so from outside, for Python's part.
"""

import enum
import logging
import os
import sys

from torch_spyre import _C


class LogLevel(enum.IntEnum):
    NOTSET = 0
    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40
    CRITICAL = 50
    DISABLED = 60


_COMPONENTS = """
    spyre spyre.inductor spyre.inductor.accepted spyre.inductor.hints spyre.inductor.kernels spyre.inductor.patches
    spyre.driver spyre.passes spyre.runtime
"""
DEFAULT_LOG_LEVELS = dict.fromkeys(_COMPONENTS.split(), LogLevel.WARNING)

_levels: dict[str, LogLevel] = {}
_file: logging.FileHandler | None = None
_passes = ""
_FORMAT = logging.Formatter("[%(levelname)s] [%(name)s] %(message)s")


class _Stderr(logging.StreamHandler):
    """Speaks where nobody else listens: an application with handlers of its own prints our messages by those."""

    def emit(self, record):
        if not logging.getLogger().handlers:
            self.stream = sys.stderr
            super().emit(record)


_stderr = _Stderr()
_stderr.setFormatter(_FORMAT)


def _logger(component: str) -> logging.Logger:
    head, _, rest = component.partition(".")
    if head != "spyre":
        raise ValueError(f"component {component!r} is not spyre or spyre.<name>; known: {list_components()}")
    rest = f"_{rest}" if rest.split(".")[0] == "inductor" else rest
    return logging.getLogger(f"torch_spyre.{rest}" if rest else "torch_spyre")


def _parse(level) -> LogLevel:
    try:
        return LogLevel[level.upper()] if isinstance(level, str) else LogLevel(level)
    except (KeyError, ValueError):
        raise ValueError(f"log level {level!r} is not one of {', '.join(known.name for known in LogLevel)}") from None


def _sync_cpp_config() -> None:
    config = _C._logging.LoggingConfig.instance()
    config.initialize_from_python({name: int(level) for name, level in _levels.items()})
    config.set_log_file(get_log_file() or "")


def set_log_level(component: str, level: str | int) -> None:
    """``level``: DEBUG, INFO, WARNING, ERROR, CRITICAL or DISABLED."""
    logger, _levels[component] = _logger(component), _parse(level)
    logger.setLevel(int(_levels[component]))
    top = logging.getLogger("torch_spyre")
    if _stderr not in top.handlers:
        top.addHandler(_stderr)
    _sync_cpp_config()


def enable(component: str) -> None:
    set_log_level(component, LogLevel.INFO)


def disable(component: str) -> None:
    set_log_level(component, LogLevel.DISABLED)


def set_log_passes(passes: str) -> None:
    """Remembered; no pass prints its graph from here. ``spyre-opt`` prints graphs after passes."""
    global _passes
    from torch_spyre._inductor import config

    _passes = config.log_passes = passes


def get_log_passes() -> str:
    return _passes


def _set_by(component: str) -> str | None:
    """The component whose level counts for this one."""
    while component not in _levels:
        component, dot, _ = component.rpartition(".")
        if not dot:
            return None
    return component


def get_effective_config() -> dict[str, str]:
    """The level of every component, by name."""
    by = {component: _set_by(component) for component in list_components()}
    return {c: (_levels[by[c]] if by[c] else LogLevel(_logger(c).getEffectiveLevel())).name for c in by}


def get_config_source(component: str) -> str:
    """``programmatic``, ``TORCH_LOGS``, ``legacy:TORCH_SPYRE_DEBUG`` or ``default``."""
    _logger(component)
    if _set_by(component):
        return "programmatic"
    if "torch_spyre" in os.environ.get("TORCH_LOGS", ""):
        return "TORCH_LOGS"
    if _C.setting("TORCH_SPYRE_DEBUG"):
        return "legacy:TORCH_SPYRE_DEBUG"
    return "default"


def list_components() -> list[str]:
    return sorted({*DEFAULT_LOG_LEVELS, *_levels})


def set_log_file(path: str | None) -> None:
    """Appends all messages, of Python and of C++, to a file; none: no longer."""
    global _file
    handler = logging.FileHandler(path) if path else None
    top = logging.getLogger("torch_spyre")
    if _file is not None:
        top.removeHandler(_file)
        _file.close()
    _file = handler
    if _file is not None:
        _file.setFormatter(_FORMAT)
        top.addHandler(_file)
    _sync_cpp_config()


def get_log_file() -> str | None:
    return _file.baseFilename if _file is not None else None


def reset() -> None:
    """As if nothing had been set here."""
    global _passes
    for component in _levels:
        _logger(component).setLevel(logging.NOTSET)
    _levels.clear()
    _passes = ""
    set_log_file(None)
    logging.getLogger("torch_spyre").removeHandler(_stderr)
    if get_config_source("spyre") == "legacy:TORCH_SPYRE_DEBUG":
        _C._apply_settings()
