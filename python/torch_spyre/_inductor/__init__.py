"""``torch.compile`` for the card: Inductor's loop nodes become the compiler's input text.

Importing PyTorch must stay quick, so nothing of Dynamo or Inductor is imported here. ``install()`` leaves hooks that
run when PyTorch itself imports them, at the first ``torch.compile``.
"""

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable


def _know_submodules(package: str) -> None:
    """An import that was ended leaves modules behind that its package, imported again, does not know by name."""
    for name, module in list(sys.modules.items()):
        parent, _, child = name.rpartition(".")
        if parent == package and not hasattr(sys.modules[package], child):
            setattr(sys.modules[package], child, module)


class _AfterImport(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Runs ``then`` right after the module ``name`` has been imported by whoever needs it.

    An import takes seconds, and Ctrl-C may end it anywhere: the next import of the module comes here again. ``then``
    must bear to be run twice.
    """

    def __init__(self, name: str, then: Callable[[], None]):
        self.name, self.then, self._spec, self._asking_others, self._tried = name, then, None, False, False

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name or self._asking_others:
            return None
        self._asking_others = True
        try:
            self._spec = importlib.util.find_spec(fullname)
        finally:
            self._asking_others = False
        if self._spec is None:
            return None
        if self._tried:
            _know_submodules(self.name.rpartition(".")[0])
        self._tried = True
        return importlib.util.spec_from_loader(fullname, self, origin=self._spec.origin, is_package=None)

    def create_module(self, spec):
        return importlib.util.module_from_spec(self._spec)

    def exec_module(self, module):
        module.__spec__ = self._spec
        module.__loader__ = self._spec.loader
        self._spec.loader.exec_module(module)
        self.then()
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def _after_import(name: str, then: Callable[[], None]) -> None:
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _AfterImport(name, then))


def _on_dynamo() -> None:
    from torch_spyre._inductor import device

    device.register_with_dynamo()


def _on_compilation() -> None:
    from torch_spyre._inductor import progress, traces

    traces.install()
    progress.install()


def _on_inductor() -> None:
    from torch_spyre._inductor import device

    device.register_with_inductor()


def install() -> None:
    _after_import("torch._dynamo.guards", _on_dynamo)
    _after_import("torch._dynamo.convert_frame", _on_compilation)
    _after_import("torch._inductor.compile_fx", _on_inductor)


def __getattr__(name: str):
    """Names that scripts import from here; what they need of Inductor is imported with them, not before."""
    if name == "spyre_hint":
        from torch_spyre._inductor.hints import spyre_hint

        return spyre_hint
    if name == "register_spyre_decomposition":
        from torch_spyre._inductor.decompositions import register_spyre_decomposition

        return register_spyre_decomposition
    if name == "register_spyre_lowering":
        from torch_spyre._inductor.lowering import register_spyre_lowering

        return register_spyre_lowering
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
