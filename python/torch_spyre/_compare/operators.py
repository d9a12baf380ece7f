"""Eager calls: every operator that the model calls, run on the card and beside it on the CPU."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from torch_spyre._compare import formats
from torch_spyre._compare.judge import Judge, OperatorRow, Shaken, named, random_operator, source_line

#: Operators whose result is a place: one of several equal ones may be named.
_PLACES = {"argmax": (0,), "argmin": (0,), "argsort": (0,), "max": (1,), "min": (1,), "sort": (1,), "topk": (1,)}


def _tensors(tree) -> list[torch.Tensor]:
    return [t for t in tree_leaves(tree) if isinstance(t, torch.Tensor)]


def _named_arguments(func, args, kwargs) -> dict:
    names = [a.name for a in func._schema.arguments]
    defaults = {a.name: a.default_value for a in func._schema.arguments if a.has_default_value()}
    return {**defaults, **dict(zip(names, args, strict=False)), **kwargs}


def _is_random(func, args, kwargs) -> bool:
    """An attention or a dropout that drops nothing is not."""
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    given = _named_arguments(func, args, kwargs)
    chance = given.get("dropout_p", given.get("p"))
    return not (given.get("train") is False or given.get("training") is False or chance == 0)


def _is_view(func) -> bool:
    return any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)


class Operators(TorchDispatchMode):
    def __init__(self, judge: Judge):
        super().__init__()
        self.judge = judge

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        given = _tensors((args, kwargs))
        if _is_random(func, args, kwargs):
            raise random_operator(str(func), f"{self.judge.module or 'the model'} at {source_line()}")
        written = [
            value
            for a in func._schema.arguments
            if a.alias_info is not None and a.alias_info.is_write
            for value in _tensors(_named_arguments(func, args, kwargs).get(a.name))
        ]
        before = {id(t): self.judge.held(t) for t in given} if written else {}
        result = func(*args, **kwargs)
        made = _tensors(result)
        if not self._is_ours(given + made) or _is_view(func) or not made or self._says_nothing(func):
            return result
        mine = {id(t) for t in written}
        found = [t for t in made if id(t) not in mine] + written
        self._judge(func, args, kwargs, found, written, before)
        return result

    def _is_ours(self, tensors) -> bool:
        return any(t.device.type == "spyre" or self.judge.reference.knows(t) for t in tensors)

    def _says_nothing(self, func) -> bool:
        return func._schema.name.removeprefix("aten::").startswith(("empty", "new_empty"))

    def _judge(self, func, args, kwargs, found, written, before) -> None:
        judge = self.judge
        row = OperatorRow(str(func), judge.module, "", source_line(), list(found[0].shape), named(found[0].dtype))

        def held(t):
            if id(t) not in before:
                before[id(t)] = judge.held(t)
            return before[id(t)].clone() if any(t is w for w in written) else before[id(t)]

        def again(trial):
            shaken = Shaken(trial, judge.compute is None)
            return self._on_cpu(
                func, args, kwargs, written, lambda t: shaken(held(t), t.dtype), scalar=formats.shaken_scalar
            )

        try:
            own = self._on_cpu(func, args, kwargs, written, held)
        except (RuntimeError, NotImplementedError, TypeError) as error:
            row.note = f"not judged, the CPU says: {str(error).splitlines()[0][:200]}"
            judge.note("operators that the CPU cannot compute: the reference goes on from the card's results")
            for t in found:
                judge.go_on_from(t)
            judge.operators.append(row)
            return
        for values in (judge.reference, judge.rounded):
            results = self._on_cpu(
                func, args, kwargs, written, lambda t, v=values: (v.to_write if _is_in(t, written) else v.get)(t),
                wide=values.wide,
            )  # fmt: skip
            for t, value in zip(found, results, strict=True):
                if not t.is_floating_point():
                    self._count_choices(t, value, values, row)
                else:
                    values.set(t, formats.rounded(value, t.dtype) if values is judge.rounded else value)
        now = [judge.held(t) for t in found]
        judge.judge(row, found, now, own, again, lambda i: _equals(func, args, kwargs, held, now[i], own[i], i))

    def _count_choices(self, tensor, value, values, row) -> None:
        if values is self.judge.reference and tensor.device.type == "spyre":
            differ = int((value != self.judge.held(tensor)).sum()) if value.shape == tensor.shape else tensor.numel()
            if differ:
                row.note = f"{differ} of {tensor.numel()} chosen otherwise by the reference, which follows the card"
                self.judge.note("operators that choose otherwise in the reference, which follows the card")

    def _on_cpu(self, func, args, kwargs, written, value_of, wide=None, scalar=None) -> list[torch.Tensor]:
        """Its results there, in the order of ``found``: made, then written."""
        known: dict[int, torch.Tensor] = {}
        wide = wide or self.judge.wide

        def moved(leaf):
            if isinstance(leaf, torch.Tensor):
                if id(leaf) not in known:
                    known[id(leaf)] = value_of(leaf)
                return known[id(leaf)]
            if isinstance(leaf, torch.dtype):
                return wide(leaf)
            if isinstance(leaf, torch.device):
                return torch.device("cpu")
            return scalar(leaf) if scalar and isinstance(leaf, float) else leaf

        args, kwargs = tree_map(moved, (args, dict(kwargs)))
        args = list(args)
        if wide(torch.float16) != torch.float16:
            for i, a in enumerate(func._schema.arguments):  # "of 16 bits, to be widened": they are wide
                if a.name == "half_to_float" and i < len(args):
                    args[i] = False
        results = func(*args, **kwargs)
        mine = [known[id(t)] for t in written]
        return [t for t in _tensors(results) if not _is_in(t, mine)] + mine


def _is_in(tensor, tensors) -> bool:
    return any(tensor is t for t in tensors)


def _equals(func, args, kwargs, held, found, own, i: int) -> bool:
    """Whether places that differ hold the same values."""
    name = func._schema.name.removeprefix("aten::")
    if i not in _PLACES.get(name, ()):
        return False
    given = _named_arguments(func, args, kwargs)
    source = held(given["self"])
    dim = given.get("dim")
    if dim is None and name.startswith("arg"):
        source, dim = source.reshape(-1), 0
        found, own = found.reshape(-1), own.reshape(-1)
    dim = -1 if dim is None else dim
    if found.ndim < source.ndim:
        found, own = found.unsqueeze(dim), own.unsqueeze(dim)
    inside = (found >= 0) & (found < source.shape[dim])
    return bool(inside.all()) and torch.equal(source.gather(dim, found), source.gather(dim, own))
