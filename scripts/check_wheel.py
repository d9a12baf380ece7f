#!/usr/bin/env python3
"""Installs a wheel into a new environment that has torch and what torch requires, nothing else, and runs the README's
first program there.

    check_wheel.py dist/torch_spyre-0.1.0-cp311-cp311-linux_x86_64.whl

torch is lent by the environment this script runs in, so nothing is downloaded. Exits 1 with the output of what failed.
"""

import re
import subprocess
import sys
import tempfile
import venv
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def requirements_of(name: str, found: dict | None = None) -> dict[str, metadata.Distribution]:
    """A distribution and all it requires without extras; what is not installed is not needed on this platform."""
    found = {} if found is None else found
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return found
    key = distribution.metadata["Name"].lower().replace("_", "-")
    if key in found:
        return found
    found[key] = distribution
    for requirement in distribution.requires or []:
        if "extra ==" not in requirement:
            requirements_of(re.match(r"[\w.-]+", requirement)[0], found)
    return found


def lend(folder: Path) -> None:
    """Links the top-level files of torch and its requirements into `folder`, their metadata included."""
    folder.mkdir()
    for distribution in requirements_of("torch").values():
        for file in distribution.files or []:
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not (folder / top).exists():
                (folder / top).symlink_to(Path(distribution.locate_file(top)).resolve())


def first_program() -> str:
    """The first program of the README."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    return next(block for block in blocks if block.startswith("import torch"))


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(str(c) for c in command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> int:
    wheel = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        clean = Path(scratch)
        venv.create(clean / "env", with_pip=False)
        python = clean / "env" / "bin" / "python"
        lend(clean / "lent")
        packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=clean).strip())
        (packages / "torch.pth").write_text(f"{clean / 'lent'}\n")
        # No index: what the wheel requires beside torch would be missing, and is an error.
        run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", wheel, cwd=clean)
        (clean / "first.py").write_text(first_program())
        printed = run(python, "first.py", cwd=clean)
        if "SpyreTensorLayout(device_size=[4, 1024, 64]" not in printed or "tensor(" not in printed:
            raise SystemExit(f"the README's first program printed\n{printed}")
        where = run(python, "-c", "import torch_spyre; print(torch_spyre.__file__)", cwd=clean)
        if str(packages) not in where:
            raise SystemExit(f"torch_spyre came from {where}")
    print(f"{wheel.name}: installs beside torch alone and runs the README's first program")
    return 0


if __name__ == "__main__":
    sys.exit(main())
