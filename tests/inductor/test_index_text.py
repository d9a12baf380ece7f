"""Index expressions as text, by worked values."""

import pytest
import sympy
from torch.utils._sympy.functions import FloorDiv, Identity, ModularIndexing
from torch_spyre._inductor.errors import SpyreUnsupportedError
from torch_spyre._inductor.index_text import write_index

p0, p1, t = (sympy.Symbol(n, integer=True, nonnegative=True) for n in ("p0", "p1", "indirect_v0"))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (100 * p0 + p1, "100*p0 + p1"),
        (p0 - 1, "-1 + p0"),
        (-p0 + 7, "-p0 + 7"),
        (FloorDiv(p0, 64), "floor(p0/64)"),
        (FloorDiv(p0 + p1, 64), "floor((p0 + p1)/64)"),
        (ModularIndexing(p0, 1, 64), "Mod(p0, 64)"),
        (ModularIndexing(p0, 64, 4), "Mod(floor(p0/64), 4)"),
        (10 * ModularIndexing(p0, 4, 5) + FloorDiv(p1, 2), "floor(p1/2) + 10*Mod(floor(p0/4), 5)"),
        (64 * t + p1, "64*IndirectAccess('v0') + p1"),
        (Identity(p0) + 3, "(p0) + 3"),
        (sympy.Integer(0), "0"),
    ],
)
def test_text_of_an_index(expression, text):
    assert write_index(expression, {t: "v0"}) == text


def test_other_functions_are_refused_by_name():
    with pytest.raises(SpyreUnsupportedError, match="Max"):
        write_index(sympy.Max(p0, p1), {})
