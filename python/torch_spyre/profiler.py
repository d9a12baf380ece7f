"""Reports of failures, one JSON file each, for whoever has to find the cause later.

With ``TORCH_SPYRE_FFDC=1`` a compilation or a launch that fails leaves a report; ``get_diagnostic_report`` finds the
last one. Times on the card come from ``torch.profiler`` and ``torch.spyre.metrics()``.
"""

import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import tempfile
import traceback

import torch

from torch_spyre import _C

_KEPT = 50
_NAME = re.compile(r"ffdc_(\w+)_(\d{8}T\d{6}_\d{6})_(\d+)\.json")


def _directory(output_dir) -> pathlib.Path:
    if output_dir is not None:
        return pathlib.Path(output_dir)
    try:
        from torch._inductor.runtime.cache_dir_utils import cache_dir

        return pathlib.Path(cache_dir()) / "torch-spyre" / "ffdc_reports"
    except OSError:
        return pathlib.Path(tempfile.gettempdir()) / "torch-spyre-ffdc"


def _reports(directory: pathlib.Path) -> list[pathlib.Path]:
    """Oldest first, by the time in their names."""
    with contextlib.suppress(OSError):
        named = [(m.group(2), p) for p in directory.iterdir() if (m := _NAME.fullmatch(p.name))]
        return [p for _, p in sorted(named) if p.is_file() and not p.is_symlink()]
    return []


def _report(category: str, error: BaseException, when: datetime.datetime) -> dict:
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    settings = {row["name"]: row["value"] for row in _C.settings() if row["is_set"]}
    return {
        "metadata": {"timestamp": when.isoformat(), "pid": os.getpid(), "host": platform.node()},
        "failure": {
            "category": category,
            "type": type(error).__name__,
            "message": str(error),
            "file": last.filename if last else None,
            "lineno": last.lineno if last else None,
            "traceback": traceback.format_exception(error),
        },
        "environment": {"torch": torch.__version__, "python": platform.python_version(), "settings": settings},
        "artifacts": {"directory": str(_directory(None).parent)},
        "runtime": {"metrics": _C.metrics(), "fallbacks": _C.fallback_counts()},
        "hardware_state": {"devices": _C._device_count(), "state": _C.get_device_state().name},
        "collector": {"complete": True},
    }


def record_failure(category: str, error: BaseException, output_dir=None) -> pathlib.Path | None:
    """Writes a report if ``TORCH_SPYRE_FFDC`` is set. What goes wrong here hides nothing of the failure itself."""
    if not _C.setting("TORCH_SPYRE_FFDC"):
        return None
    when = datetime.datetime.now(datetime.UTC)
    directory = _directory(output_dir)
    path = directory / f"ffdc_{category}_{when:%Y%m%dT%H%M%S}_{when.microsecond:06}_{os.getpid()}.json"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        unfinished.write_text(json.dumps(_report(category, error, when), indent=2, default=str))
        unfinished.rename(path)
        for old in _reports(directory)[:-_KEPT]:
            old.unlink()
    except (OSError, RuntimeError):
        return None
    return path


@contextlib.contextmanager
def reported(category: str):
    """While inside, what is raised leaves a report."""
    try:
        yield
    except Exception as error:
        record_failure(category, error)
        raise


def get_diagnostic_report(output_dir=None) -> dict | None:
    """The last report, with its place as ``_report_path``; None where there is none that can be read."""
    for path in reversed(_reports(_directory(output_dir))):
        with contextlib.suppress(OSError, ValueError):
            report = json.loads(path.read_text())
            if isinstance(report, dict) and isinstance(report.get("failure", {}).get("category"), str):
                return {**report, "_report_path": str(path.resolve())}
    return None
