"""Whether profiles show the card, and reports of failures for whoever has to find the cause later.

Times on the card come from ``torch.profiler`` with ``ProfilerActivity.PrivateUse1``; ``is_available`` says whether they
do. ``report`` makes a page of what a block takes and what bounds it. With ``TORCH_SPYRE_FFDC=1`` a compilation or a
launch that fails leaves a report, one JSON file each; ``get_diagnostic_report`` finds the last one. A fault of the
device leaves what reproduces it beside its report: the kernel, its plan, the shapes it was called with, and the command
that runs it again.
"""

import atexit
import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import sys
import tempfile
import traceback

import torch

from torch_spyre import _C

_KEPT = 50
_KERNEL = re.compile(r"kernel (\S+?)(#\d+)? on stream")
_faults: dict[str, pathlib.Path] = {}  # reports of this process, by message: one fault is raised many times
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


def is_available() -> bool:
    """Whether ``torch.profiler`` shows what the cards of this process do."""
    kineto = torch.profiler.ProfilerActivity.PrivateUse1 in torch.profiler.supported_activities()
    return kineto and bool(_C.setting("SPYRE_DEVICE_TIME")) and _C._device_count() > 0


class Report:
    """What the cards did: ``facts`` (docs/spec/schema/time_facts.schema.json), and where its ``page`` is."""

    def __init__(self, profiler: torch.profiler.profile):
        self.profiler, self.facts, self.page = profiler, None, None

    def finish(self, page, name: str) -> None:
        text = _C._profile_facts(name, {"by": "torch_spyre.profiler", "torch": torch.__version__})
        self.page = pathlib.Path(page)
        self.page.parent.mkdir(parents=True, exist_ok=True)
        self.page.write_text(_C._time_page(text))
        self.facts = json.loads(text)


@contextlib.contextmanager
def report(page, name: str | None = None, **profile_options):
    """Profiles the block and writes a page of it: total, what bounds it, what would help, every core's time.

    >>> with torch_spyre.profiler.report("token.html") as report:
    ...     model(x)
    >>> report.facts["totals"]["total_us"], report.facts["bound"]["by"]

    ``profile_options`` go to ``torch.profiler.profile``, which is ``report.profiler``. What an exception left is not
    reported.
    """
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.PrivateUse1]
    _C._keep_profile()
    with torch.profiler.profile(activities=activities, **profile_options) as profiler:
        made = Report(profiler)
        yield made
        torch.spyre.synchronize()
    made.finish(page, name or pathlib.Path(page).stem)


def record_failure(category: str, error: BaseException, output_dir=None) -> pathlib.Path | None:
    """Writes a report if ``TORCH_SPYRE_FFDC`` is set. What goes wrong here hides nothing of the failure itself."""
    if not _C.setting("TORCH_SPYRE_FFDC"):
        return None
    if str(error) in _faults:
        return _faults[str(error)]
    when = datetime.datetime.now(datetime.UTC)
    directory = _directory(output_dir)
    path = directory / f"ffdc_{category}_{when:%Y%m%dT%H%M%S}_{when.microsecond:06}_{os.getpid()}.json"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        report = _report(category, error, when)
        report["artifacts"].update(_kernel_of(str(error), path.with_suffix("")))
        unfinished = path.with_suffix(".part")
        unfinished.write_text(json.dumps(report, indent=2, default=str))
        unfinished.rename(path)
        for old in _reports(directory)[:-_KEPT]:
            old.unlink()
            shutil.rmtree(old.with_suffix(""), ignore_errors=True)
    except (OSError, RuntimeError):
        return None
    return path


def _kernel_of(message: str, folder: pathlib.Path) -> dict:
    """Copies the kernel that a fault names into a folder, with what it takes to run it again."""
    named = _KERNEL.search(message)
    if named is None:
        return {}
    kernels = sys.modules.get("torch_spyre._inductor.kernels")  # not loaded: nothing was compiled
    kernel = kernels.latest(named[1]) if kernels is not None else None
    if kernel is None:
        return {"kernel": None, "kernel_missing": f"{named[1]} is no kernel of torch.compile; eager ones are not kept"}
    shutil.copytree(kernel.folder(), folder / "kernel")
    plan = kernel.as_compiled()
    if getattr(plan, "planned", False):
        (folder / "plan.json").write_text(plan.plan_facts())
    (folder / "inputs.json").write_text(json.dumps(kernel.last_call, indent=2))
    replay = f"spyre-run {shlex.quote(str(folder / 'kernel'))} --check"
    (folder / "replay.sh").write_text(f"# inputs are random; -i gives them values\n{replay}\n")
    return {"kernel": str(folder), "replay": replay}


def capture_fault(message: str) -> None:
    """A device is about to raise this fault, not for the first time perhaps."""
    if message not in _faults and (path := record_failure("device_fault", RuntimeError(message))) is not None:
        _faults[message] = path


@atexit.register
def _end_open_profile() -> None:
    """A profile that is still open when the interpreter is gone crashes PyTorch, whatever the device."""
    if torch._C._autograd._profiler_enabled():
        torch._C._autograd._disable_profiler()


_C._set_fault_hook(capture_fault)


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
