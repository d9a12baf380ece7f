"""safetensors opens files for a fixed list of devices, and tells a whole tensor by its storage's size.

When (and only when) a program imports safetensors, two of its functions learn about the card: ``safe_open`` and
``load_file`` take ``device="spyre"``, and a Spyre tensor counts as whole when it shows every element of its base.
"""

import importlib.abc
import importlib.util
import sys

import torch


def _is_spyre(device) -> bool:
    return isinstance(device, (str, torch.device)) and torch.device(device).type == "spyre"


class _SliceOnCard:
    """A slice of a file whose parts go to the card when taken."""

    def __init__(self, part, device):
        self._part, self._device = part, device

    def __getitem__(self, index):
        return self._part[index].to(self._device)

    def __getattr__(self, name):
        return getattr(self._part, name)


class _FileOnCard:
    """An open file that reads on the host and hands out tensors on the card."""

    def __init__(self, file, device):
        self._file, self._device = file, device

    def __enter__(self):
        self._file.__enter__()
        return self

    def __exit__(self, *exc_info):
        return self._file.__exit__(*exc_info)

    def get_tensor(self, name):
        return self._file.get_tensor(name).to(self._device)

    def get_tensors(self):
        return {name: tensor.to(self._device) for name, tensor in self._file.get_tensors().items()}

    def get_slice(self, name):
        return _SliceOnCard(self._file.get_slice(name), self._device)

    def __getattr__(self, name):
        return getattr(self._file, name)


def _wrap_safe_open(original):
    def safe_open(filename, framework, device="cpu", **kwargs):
        if not _is_spyre(device):
            return original(filename, framework, device, **kwargs)
        return _FileOnCard(original(filename, framework, "cpu", **kwargs), torch.device(device))

    return safe_open


def _wrap_storage_size(original):
    from torch_spyre import _C

    def storage_size(tensor):
        return _C.logical_storage_bytes(tensor) if tensor.device.type == "spyre" else original(tensor)

    return storage_size


def _adapt(module) -> None:
    if module.__name__ == "safetensors":
        module.safe_open = _wrap_safe_open(module.safe_open)
    else:
        module.storage_size = _wrap_storage_size(module.storage_size)


class _AfterImport(importlib.abc.MetaPathFinder):
    """Finds safetensors as usual, and adapts it right after it was loaded."""

    names = ("safetensors", "safetensors.torch")

    def find_spec(self, fullname, path, target=None):
        if fullname not in self.names:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            _adapt(module)

        spec.loader.exec_module = exec_module
        return spec


def install() -> None:
    for name in _AfterImport.names:
        if name in sys.modules:
            _adapt(sys.modules[name])
    sys.meta_path.insert(0, _AfterImport())
