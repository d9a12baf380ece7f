"""Index expressions of Inductor (SymPy) as graph text.

ModularIndexing(p0, 64, 4)   ->   Mod(floor(p0/64), 4)
100*p0 + FloorDiv(p1, 2)     ->   100*p0 + floor(p1/2)
64*tmp0 + p1                 ->   64*IndirectAccess('v0') + p1        where tmp0 stands for the value v0
"""

from collections.abc import Mapping

import sympy
from torch.utils._sympy import functions

from torch_spyre._inductor.errors import SpyreUnsupportedError


def write_index(expr, indirect: Mapping[sympy.Symbol, str]) -> str:
    """``indirect`` says which symbols stand for loaded values."""
    return _sum(sympy.expand(sympy.sympify(expr)), indirect)


def _sum(expr: sympy.Expr, indirect) -> str:
    terms = sorted(expr.args, key=str) if expr.is_Add else [expr]
    text = ""
    for term in terms:
        piece = _product(term, indirect)
        if not text:
            text = piece
        else:
            text += f" - {piece[1:]}" if piece.startswith("-") else f" + {piece}"
    return text


def _product(term: sympy.Expr, indirect) -> str:
    factor, rest = term.as_coeff_Mul()
    if not factor.is_Integer:
        raise SpyreUnsupportedError(f"index expression with the factor {factor}; only whole numbers are allowed")
    if rest == 1:
        return str(int(factor))
    atom = _atom(rest, indirect)
    if factor == 1:
        return atom
    return f"-{atom}" if factor == -1 else f"{int(factor)}*{atom}"


def _atom(expr: sympy.Expr, indirect) -> str:
    if isinstance(expr, sympy.Symbol):
        return f"IndirectAccess('{indirect[expr]}')" if expr in indirect else str(expr)
    if isinstance(expr, functions.ModularIndexing):
        base, divisor, modulus = expr.args
        return f"Mod({_quotient(base, divisor, indirect)}, {_whole(modulus)})"
    if isinstance(expr, (functions.FloorDiv, functions.CleanDiv)):
        return _quotient(*expr.args, indirect)
    if isinstance(expr, (functions.Mod, functions.PythonMod, sympy.Mod)):
        base, modulus = expr.args
        return f"Mod({_nested(base, indirect)}, {_whole(modulus)})"
    if isinstance(expr, functions.Identity):
        return f"({_nested(expr.args[0], indirect)})"
    raise SpyreUnsupportedError(
        f"index expression {expr}: {type(expr).__name__} is not among sums, whole factors, floor and Mod"
    )


def _nested(expr, indirect) -> str:
    return _sum(sympy.expand(expr), indirect)


def _quotient(base, divisor, indirect) -> str:
    inside = _nested(base, indirect)
    if divisor == 1:
        return inside
    return f"floor(({inside})/{_whole(divisor)})" if not base.is_Symbol else f"floor({inside}/{_whole(divisor)})"


def _whole(expr) -> int:
    if not expr.is_Integer:
        raise SpyreUnsupportedError(f"index expression divides by {expr}; only whole numbers are allowed")
    return int(expr)
