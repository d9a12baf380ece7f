"""Kernels on disk, a folder each: what the compiler wrote, and ``artifact.json``, by which a process knows it again.

    <digest>_sdsc_<graph>/
        graph.ir, kernel.opspec, bundle.mlir, spyreCodeDir/, ...   as the compiler wrote them
        artifact.json                                              who made it, sha256 of every file, names of arguments

``artifact.json`` is written last. A folder without it, with a file that has changed, of another compiler or of other
settings is not read: the cache compiles again, a package is refused (``torch_spyre.load``).
"""

import hashlib
import json
import os
import re

from torch_spyre import _C

FACTS = "artifact.json"
FORMAT, VERSION = "spyre-kernel", 1
_TEXTS = ("graph.ir", "kernel.opspec")  # beside the bundle


class ArtifactError(RuntimeError):
    """Files that are not those that were written. The message names the file."""


def write_text(path: str, text: str) -> None:
    """Whoever reads it meanwhile finds the old content or the new."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w") as file:
        file.write(text)
    os.replace(temporary, path)


def sha256(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: str) -> dict:
    try:
        with open(path) as file:
            found = json.load(file)
    except FileNotFoundError as error:
        raise ArtifactError(f"{path}: found no such file") from error
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path}: found no JSON that can be read: {error}") from error
    if not isinstance(found, dict):
        raise ArtifactError(f"{path}: found {type(found).__name__}, allowed: an object")
    return found


def check_format(path: str, facts: dict, wanted: str, version: int) -> None:
    found = (facts.get("format"), facts.get("version"))
    if found != (wanted, version):
        raise ArtifactError(f"{path}: found format {found[0]!r}, version {found[1]!r}, allowed: {wanted!r}, {version}")


def check_maker(path: str, facts: dict, made_by: dict) -> None:
    """Whether it was made by this compiler with these settings; of the settings those are named that differ."""
    for key, wanted in made_by.items():
        found = facts.get(key)
        if found == wanted:
            continue
        if isinstance(wanted, dict) and isinstance(found, dict):
            names = [n for n in {**found, **wanted} if found.get(n) != wanted.get(n)]
            found, wanted = ({n: values.get(n) for n in names} for values in (found, wanted))
        raise ArtifactError(f"{path}: it was made with {key} {found}, this process has {wanted}")


def folder_name(text: str, made_by: dict) -> str:
    """What another compiler, or this one with other settings, made of the same text is another kernel."""
    digest = hashlib.sha256(json.dumps([text, made_by], sort_keys=True).encode()).hexdigest()[:16]
    graph = re.match(r"graph (\w+)", text)
    return f"{digest}_sdsc_{graph.group(1) if graph else ''}"[:120]


def seal(folder: str, kernel: "_C.CompiledKernel", made_by: dict) -> None:
    """Writes down what the files of a kernel are, once all of them are there."""
    files = read_json(os.path.join(folder, "manifest.json"))["files"]
    facts = {
        "format": FORMAT,
        "version": VERSION,
        **made_by,
        "inputs": kernel.inputs,
        "outputs": kernel.outputs,
        "bounds": kernel.bounds,
        "refused_hints": kernel.refused_hints,
        "sha256": {name: sha256(os.path.join(folder, name)) for name in files},
    }
    write_text(os.path.join(folder, FACTS), json.dumps(facts, indent=1))


def _read_files(folder: str, facts: dict) -> dict[str, bytes]:
    files = {}
    for name, digest in facts["sha256"].items():
        path = os.path.join(folder, name)
        try:
            with open(path, "rb") as file:
                files[name] = file.read()
        except OSError as error:
            raise ArtifactError(f"{path}: cannot be read: {error.strerror}") from error
        if hashlib.sha256(files[name]).hexdigest() != digest:
            raise ArtifactError(f"{path}: found other content than was written: its sha256 is not {digest}")
    return files


def read(folder: str, text: str, made_by: dict) -> "tuple[_C.CompiledKernel, list[str]]":
    """The kernel of a graph text, and why hints were not followed. Nothing is compiled."""
    path = os.path.join(folder, FACTS)
    facts = read_json(path)
    check_format(path, facts, FORMAT, VERSION)
    check_maker(path, facts, made_by)
    try:
        files = _read_files(folder, facts)
        if files["graph.ir"].decode() != text:
            raise ArtifactError(f"{os.path.join(folder, 'graph.ir')}: found another graph than is asked for")
        bundle = {name: content for name, content in files.items() if name not in _TEXTS}
        kernel = _C.read_kernel(bundle, facts["inputs"], facts["outputs"], facts["bounds"])
        return kernel, facts["refused_hints"]
    except (KeyError, TypeError, AttributeError, UnicodeError) as error:
        raise ArtifactError(f"{path}: found no whole description of a kernel: {error!r}") from error
    except RuntimeError as error:
        if isinstance(error, ArtifactError):
            raise
        raise ArtifactError(f"{folder}: {error}") from error
