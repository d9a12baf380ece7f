"""OpSpecs as Python values: text in, the same text out, and what the validator says."""

from pathlib import Path

import pytest
from torch_spyre import _C

CORPUS = sorted((Path(__file__).resolve().parents[1] / "corpus" / "opspec").glob("*.opspec"))


@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.stem)
def test_a_kernel_comes_back_as_it_was(path):
    kernel = _C.Kernel.parse(path.read_text())
    assert _C.Kernel.parse(str(kernel)) == kernel
    kernel.validate()


def test_operations_show_what_was_decided():
    text = (CORPUS[0].parent / "matmul.opspec").read_text()
    (op,) = _C.Kernel.parse(text).body
    assert (op.op, op.is_reduction, op.cores) == ("batchmatmul", True, 4)
    assert op.iteration_space == {"m": (128, 2), "n": (128, 1), "k": (256, 2)}
    x, w, y = op.args
    assert x.device_coordinates == ["floor(k/64)", "m", "Mod(k, 64)"]
    assert (x.device_size, w.allocation, y.is_input) == ([4, 128, 64], ("hbm", 1), False)


def test_a_kernel_the_card_cannot_run_is_refused_with_the_reason():
    text = (CORPUS[0].parent / "matmul.opspec").read_text().replace("m: (128, 2)", "m: (128, 64)")
    with pytest.raises(RuntimeError, match="splits ask for 128 cores, the card has 32"):
        _C.Kernel.parse(text).validate()
