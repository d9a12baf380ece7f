"""The kinds of statements a program may have; each kind is a function that adds one, or gives up."""

import itertools
import random

import torch

_FLOATS = (torch.float16, torch.bfloat16, torch.float32)


# --- views -----------------------------------------------------------------------------------------------------------


def view_text(r: random.Random, t: torch.Tensor, kind: str) -> str:
    """A view of a tensor as text that follows its name; empty if it has none of the kind."""
    rank = t.ndim
    dim = r.randrange(rank) if rank else 0
    if kind in ("transpose", "permute") and rank > 1:
        return f".{kind}({', '.join(map(str, r.sample(range(rank), 2 if kind == 'transpose' else rank)))})"
    if kind == "slice" and rank and t.shape[dim]:
        return "[" + ":, " * dim + _slice(r, t.shape[dim]) + "]"
    if kind == "select" and rank and t.shape[dim]:
        return "[" + ":, " * dim + str(r.choice((0, -1, r.randrange(t.shape[dim])))) + "]"
    if kind == "unsqueeze":
        return f".unsqueeze({r.randrange(-1, rank + 1)})"
    if kind == "squeeze":
        return ".squeeze()"
    if kind == "expand":
        ones = [i for i, e in enumerate(t.shape) if e == 1]
        sizes = [r.choice((2, 3, 64, 65)) if i in ones else e for i, e in enumerate(t.shape)]
        lead = [r.choice((2, 5))] if not ones or r.random() < 0.3 else []
        return f".expand({', '.join(map(str, lead + sizes))})"
    if kind == "flatten" and rank > 1:
        start = r.randrange(rank - 1)
        return f".flatten({start}, {r.randrange(start + 1, rank)})"
    if kind in ("reshape", "view"):
        return f".{kind}({', '.join(map(str, _factors(r, t.numel())))})"
    if kind == "unflatten" and rank and t.shape[dim]:
        return f".unflatten({dim}, ({', '.join(map(str, _factors(r, t.shape[dim], most=2)))},))"
    if kind == "diagonal" and rank > 1:
        return f".diagonal({r.choice((0, 0, 1, -1))}, {', '.join(map(str, r.sample(range(rank), 2)))})"
    if kind == "unfold" and rank and t.shape[dim] > 3:
        return f".unfold({dim}, {r.choice((2, 3))}, {r.choice((1, 2))})"
    if kind == "chunk" and rank and t.shape[dim] > 1:
        return f".chunk(2, {dim})[{r.choice((0, 1))}]"
    return ""


def _slice(r: random.Random, extent: int) -> str:
    start = r.choice((0, 0, extent // 2, min(1, extent - 1), 64 if extent > 64 else 0, r.randrange(extent)))
    stop = r.choice((extent, extent, r.randrange(start + 1, extent + 1), min(extent, start + 64)))
    step = r.choice((1, 1, 1, 2, 3))
    return f"{start}:{stop}" + (f":{step}" if step > 1 else "")


def _factors(r: random.Random, count: int, most: int = 4) -> list[int]:
    sizes = []
    for _ in range(r.randrange(most)):
        divisors = [d for d in range(1, count + 1) if count % d == 0] or [1]
        sizes.append(r.choice(divisors))
        count //= sizes[-1]
    sizes.append(count)
    r.shuffle(sizes)
    return sizes


_VIEWS = ("transpose", "permute", "slice", "slice", "select", "unsqueeze", "squeeze", "expand", "view", "chunk")
_VIEWS += ("flatten", "reshape", "reshape", "unflatten", "diagonal", "unfold")


def view(g) -> None:
    name = g.pick()
    if text := view_text(g.random, g.values[name], g.random.choice(_VIEWS)):
        g.say(name + text)


def rearrange(g) -> None:
    """Moves that are no views."""
    r = g.random
    if (name := g.pick(lambda t: t.ndim > 0)) is None:
        return
    t = g.values[name]
    dim = r.randrange(t.ndim)
    pads = ", ".join(str(r.choice((0, 1, 2))) for _ in range(2 * r.choice((1, min(2, t.ndim)))))
    repeats = ", ".join(str(r.choice((1, 1, 2, 3))) for _ in range(t.ndim))
    options = [
        f"{name}.flip({dim})",
        f"{name}.roll({r.choice((1, -1, 3))}, {dim})",
        f"{name}.repeat({repeats})",
        f"{name}.contiguous()",
        f"{name}.clone()",
        f"F.pad({name}, ({pads}), value={r.choice((0, 0, 1, -1))})",
        f"{name}.repeat_interleave(2, {dim})",
    ]
    if t.ndim > 1:
        options += [f"{name}.tril({r.choice((0, 1, -1))})", f"{name}.triu()"]
    g.say(r.choice(options))


# --- pointwise -------------------------------------------------------------------------------------------------------


def number(g, t: torch.Tensor) -> str:
    """A scalar to meet a tensor: small ones mostly, of either kind; special ones in programs about those."""
    r = g.random
    if g.fills in (["nan"], ["inf"], ["large"], ["tiny"]) and r.random() < 0.5:
        special = {"nan": ["nan"], "inf": ["inf", "-inf"], "large": ["32768.0", "3e4"], "tiny": ["-0.0", "2.0**-20"]}
        return r.choice(special[g.fills[0]])
    if t.is_floating_point() and r.random() < 0.4:
        return r.choice(("0.5", "-1.5", "2.0", "0.25", "0.3", "-0.0", "1e-3"))
    if g.fills == ["wide"]:
        return r.choice(("2**31 - 1", "-65536", "16777217", "3", "-1"))
    return str(r.choice((-3, -1, 0, 1, 2, 3)))


def partner(g, t: torch.Tensor, dtypes=None) -> str:
    """Another value that broadcasts with this one, cut or transposed if need be; or a number."""
    r = g.random
    options = []
    for name, other in g.values.items():
        if name[0] == "i" or (dtypes and other.dtype not in dtypes):
            continue
        if _broadcasts(t, other):
            options += [name] * 3
        if other.ndim > 1 and _broadcasts(t, other.transpose(-1, -2)):
            options.append(f"{name}.transpose(-1, -2)")
        if other.ndim and _broadcasts(t, other.unsqueeze(-1)):
            options.append(f"{name}.unsqueeze(-1)")
        if other.ndim and other.shape[-1] and _broadcasts(t, other[..., :1]):
            options.append(f"{name}[..., :1]")
    if not dtypes and (not options or r.random() < 0.25):
        return number(g, t)
    return r.choice(options) if options else ""


def _broadcasts(a: torch.Tensor, b: torch.Tensor) -> bool:
    pairs = itertools.zip_longest(reversed(a.shape), reversed(b.shape), fillvalue=1)
    return all(x == y or 1 in (x, y) for x, y in pairs)


def _is_tensor(text: str) -> bool:
    return text[:1].isalpha() and not text.startswith(("nan", "inf"))


def binary(g) -> None:
    if (name := g.pick(lambda t: t.dtype != torch.bool)) is None:
        return
    other = partner(g, g.values[name])
    ops = ["{} + {}", "{} - {}", "{} * {}", "{1} - {0}", "torch.add({}, {}, alpha=2)"]
    ops += ["torch.where({0} > {1}, {0}, {1})"]
    if _is_tensor(other):
        ops += ["torch.maximum({}, {})", "torch.minimum({}, {})", "torch.fmax({}, {})"]
    else:
        ops += ["{}.clamp(min={})", "{}.clamp(max={})"]
    g.say(g.random.choice(ops).format(name, other))


def unary(g) -> None:
    if (name := g.pick(lambda t: t.dtype != torch.bool)) is None:
        return
    ops = ["-{}", "{}.abs()", "{}.clamp(-2, 3)", "{}.square()", "torch.relu({})", "{} ** 2", "{}.clamp(-1.5, 2)"]
    g.say(g.random.choice(ops).replace("{}", name))


def choose(g) -> None:
    """Steps and choices: of exact values only."""
    r = g.random
    if (name := g.pick(lambda t: t.dtype != torch.bool)) is None:
        return
    other = partner(g, g.values[name])
    ops = [f"{{}} {sign} {other}" for sign in ("<", "<=", ">", ">=", "==", "!=")] * 2
    ops += ["torch.sign({})", "{}.masked_fill({} > 1, 0)", "torch.where({} > 0, {}, -1)", "{}.logical_not()"]
    if g.values[name].is_floating_point():
        ops += ["torch.floor({} / 2)", "torch.ceil({} * 0.5)", "torch.round({} * 0.5)", "torch.trunc({} * 0.5)"]
        ops += ["torch.isnan({})", "torch.isfinite({})", "torch.isinf({})"]
    else:
        ops += ["{} // 2", "{} % 3", "torch.div({}, 3, rounding_mode='trunc')"]
        if g.values[name].dtype != torch.uint8:
            ops += ["{} & 3", "{} | 4", "{} ^ 5", "~{}", "{} << 1", "{} >> 1"]
    g.say(r.choice(ops).replace("{}", name), exact_only=True)


def logic(g) -> None:
    if (name := g.pick(lambda t: t.dtype == torch.bool)) is None:
        return
    other = partner(g, g.values[name], (torch.bool,)) or name
    ops = ("~{0}", "{0} & {1}", "{0} | {1}", "{0} ^ {1}", "torch.where({0}, 2, -1)", "torch.where({0}, 0.5, {1})")
    g.say(g.random.choice(ops).format(name, other))


def cast(g) -> None:
    r = g.random
    name = g.pick()
    kinds = ["float16", "float32", "bfloat16", "float32", "int64", "int32", "bool", *set(g.dtypes)]
    kind = r.choice(sorted(kinds))
    g.say(f"{name}.to(torch.{kind})", exact_only=not kind.startswith(("float", "bfloat")))


_SMOOTH = (
    "torch.sigmoid({})",
    "torch.tanh({} * 0.25)",
    "torch.exp({} * 0.125)",
    "torch.rsqrt({}.abs() + 1)",
    "{} / 3",
    "1 / ({}.abs() + 2)",
    "F.gelu({}, approximate='tanh')",
    "F.gelu({})",
    "torch.sqrt({}.abs() + 1)",
    "F.silu({})",
    "torch.log({}.abs() + 1)",
    "F.softplus({})",
    "torch.erf({})",
    "torch.sin({})",
    "torch.cos({})",
    "F.leaky_relu({}, 0.25)",
    "F.elu({})",
    "({}.abs() + 1) ** 0.5",
    "torch.reciprocal({}.abs() + 1)",
    "{} * 0.3",
    "torch.lerp({}, {}, 0.5)",
    "torch.addcmul({}, {}, {}, value=0.25)",
)


def smooth(g) -> None:
    """Not exact any more."""
    if (name := g.pick(lambda t: t.dtype in _FLOATS)) is None:
        return
    t, ops = g.values[name], list(_SMOOTH)
    if t.ndim and t.numel():
        dim = g.random.randrange(t.ndim)
        ops += [f"torch.softmax({{}}, {dim})", f"torch.log_softmax({{}}, {dim})", f"{{}}.mean({dim})"] * 2
        ops += [f"{{}}.mean({dim}, keepdim=True)", "{}.mean()", f"{{}}.logsumexp({dim})"]
        # Moments of 16-bit values say little about values far from zero: those that are centred only.
        if t.float().mean(-1).abs().max() < 1 and t.shape[-1] > 1:
            ops += [f"F.layer_norm({{}}, ({t.shape[-1]},))", f"{{}}.var({dim}, correction=0)"]
            ops += [f"F.rms_norm({{}}, ({t.shape[-1]},))"]
    g.say(g.random.choice(ops).replace("{}", name))


# --- reductions, products --------------------------------------------------------------------------------------------


def reduction(g) -> None:
    r = g.random
    if (name := g.pick(lambda t: t.ndim > 0)) is None:
        return
    t = g.values[name]
    dims = tuple(r.sample(range(t.ndim), r.choice((1, 1, 1, min(2, t.ndim), t.ndim))))
    keep = r.choice(("", ", keepdim=True"))
    if t.dtype == torch.bool:
        g.say(f"{name}.{r.choice(('any', 'all', 'sum'))}({dims[0]}{keep})")
        return
    kind = r.choice(("sum", "sum", "sum", "amax", "amin", "argmax", "argmin", "cumsum", "prod", "max", "all"))
    if kind in ("argmax", "argmin", "all"):
        g.say(f"{name}.{kind}({dims[0]}{keep})", exact_only=True)
    elif kind in ("cumsum",):
        g.say(f"{name}.{kind}({dims[0]})")
    elif kind == "prod":
        g.say(f"{name}.clamp(-1, 1).prod({dims[0]}{keep})")
    elif kind == "max":
        g.say(f"{name}.max({dims[0]}{keep})[0]")
    elif not g.say(f"{name}.{kind}({dims}{keep})") and kind == "sum":
        g.say(f"({name} > 3).sum({dims}{keep})", exact_only=True)


def product(g) -> None:
    r = g.random
    if (name := g.pick(lambda t: t.ndim > 0 and t.dtype in _FLOATS)) is None:
        return
    t = g.values[name]
    options = [f"{name} @ {name}.transpose(-1, -2)"] if t.ndim > 1 else []
    for other, u in g.values.items():
        if u.dtype != t.dtype or not u.ndim:
            continue
        for text, v in ((other, u), (f"{other}.transpose(-1, -2)", u.transpose(-1, -2) if u.ndim > 1 else u)):
            if v.shape[-2 if v.ndim > 1 else -1] == t.shape[-1]:
                options += [f"{name} @ {text}"] * 4
        if u.ndim == 2 and u.shape[-1] == t.shape[-1]:
            options.append(f"F.linear({name}, {other})")
    if options:
        expression = r.choice(options)
        if not g.say(expression) and " @ " in expression:
            left, right = expression.split(" @ ")
            g.say(f"torch.sign({left}) @ torch.sign({right})", exact_only=True)


# --- joins, positions, orders ----------------------------------------------------------------------------------------


def join(g) -> None:
    r = g.random
    if (name := g.pick(lambda t: t.ndim > 0)) is None:
        return
    t = g.values[name]
    dim = r.randrange(t.ndim)

    def fits(u):
        same = u.ndim == t.ndim and (u.dtype == t.dtype or r.random() < 0.2)
        return same and all(i == dim or a == b for i, (a, b) in enumerate(zip(u.shape, t.shape, strict=True)))

    others = [n for n, u in g.values.items() if n[0] != "i" and fits(u)]
    names = [name] + [r.choice(others) for _ in range(r.choice((1, 1, 2)) if others else 0)]
    if r.random() < 0.3:
        same = [n if g.values[n].shape == t.shape else name for n in names]
        g.say(f"torch.stack([{', '.join(same)}], {r.randrange(t.ndim + 1)})")
    else:
        g.say(f"torch.cat([{', '.join(names)}], {dim})")


def gather(g) -> None:
    r = g.random
    if (name := g.pick(lambda t: t.ndim > 0 and t.numel() > 0)) is None:
        return
    t = g.values[name]
    dim = r.randrange(t.ndim)
    extent = t.shape[dim]
    rows = [r.randrange(extent) for _ in range(r.choice((1, 2, 5, 64, 65)))]
    kind = r.choice(("index_select", "brackets", "gather", "embedding", "take_along", "mask"))
    if kind == "index_select":
        g.say(f"{name}.index_select({dim}, {g.index(rows)})")
    elif kind == "brackets":
        g.say(f"{name}[{':, ' * dim}{g.index([x - r.choice((0, extent)) for x in rows])}]")
    elif kind == "embedding" and t.ndim == 2:
        g.say(f"F.embedding({g.index([r.randrange(t.shape[0]) for _ in rows])}, {name})")
    elif kind in ("gather", "take_along"):
        sizes = ", ".join("-1" if i == dim else str(e) for i, e in enumerate(t.shape))
        ones = ", ".join("-1" if i == dim else "1" for i in range(t.ndim))
        index = f"{g.index(rows)}.view({ones}).expand({sizes}).long()"
        g.say(f"{name}.gather({dim}, {index})" if kind == "gather" else f"torch.take_along_dim({name}, {index}, {dim})")
    else:
        g.say(f"torch.where({name} > 1, {name}, {name}.flip({dim}))", exact_only=True)


def order(g) -> None:
    r = g.random
    if (name := g.pick(lambda t: t.ndim > 0 and t.numel() > 0)) is None:
        return
    t = g.values[name]
    dim = r.randrange(t.ndim)
    down = r.choice(("", ", descending=True"))
    k = r.choice((1, min(2, t.shape[dim]), t.shape[dim]))
    ops = [f"torch.sort({{}}, dim={dim}{down}, stable=True)[{r.choice((0, 0, 1))}]", f"torch.topk({{}}, {k}, {dim})[0]"]
    ops += [f"torch.argsort({{}}, dim={dim}{down}, stable=True)", f"torch.cummax({{}}, {dim})[0]"]
    g.say(r.choice(ops).replace("{}", name))


# --- writes ----------------------------------------------------------------------------------------------------------


def write(g) -> None:
    """In place, into a value or a view of one."""
    r = g.random
    if (name := g.pick(lambda t: t.ndim > 0 and t.numel() > 0)) is None:
        return
    t = g.values[name]
    place = name + view_text(r, t, r.choice(("slice", "slice", "select", "transpose", "diagonal", "none", "none")))
    target = eval(place, {}, g.values)  # noqa: S307 - our own text
    if not isinstance(target, torch.Tensor) or not target.ndim or not target.numel():
        return
    sources = [n for n, u in g.values.items() if n[0] != "i" and _fills(u, target)]
    source = r.choice(sources) if sources and r.random() < 0.7 else number(g, t)
    dim = r.randrange(target.ndim)
    rows = r.sample(range(target.shape[dim]), min(target.shape[dim], r.choice((1, 2, 5))))
    part = f"{place}[{':, ' * dim}:{len(rows)}]"
    options = [f"{place}.{op}({source})" for op in ("add_", "sub_", "mul_", "copy_" if source in sources else "fill_")]
    options += [f"{place}.clamp_(-1, 2)", f"{place}.zero_()", f"{place}.neg_()", f"{place}.relu_()", f"{place}.abs_()"]
    options += [f"{place}.fill_({number(g, t)})", f"{place}.masked_fill_({place} > 1, {number(g, t)})"]
    options += [f"{place}.index_fill_({dim}, INDEX, {r.choice((0, 1, 3))})"]
    options += [f"{place}.{op}_({dim}, INDEX, 1 - {part})" for op in ("index_copy", "index_add")]
    if place.endswith("]"):
        options += [f"{place} = {source}", f"{place} = {source}", f"{place} += {source}", f"{place} *= {source}"]
    else:
        options += [f"{place}[{':, ' * dim}INDEX] = {source if source not in sources else 2}"]
    text = r.choice(options)
    if "INDEX" in text:
        text = text.replace("INDEX", g.index(rows))
    g.do(text, exact_only="masked_fill_" in text)


def _fills(source: torch.Tensor, target: torch.Tensor) -> bool:
    if source.ndim > target.ndim or not _broadcasts(source, target):
        return False
    return torch.broadcast_shapes(source.shape, target.shape) == target.shape


_KINDS = {
    view: 24,
    binary: 20,
    write: 16,
    reduction: 12,
    product: 12,
    unary: 8,
    join: 8,
    choose: 7,
    rearrange: 6,
    smooth: 5,
    gather: 5,
    cast: 5,
    order: 4,
    logic: 3,
}


def add(g) -> None:
    g.random.choices(list(_KINDS), list(_KINDS.values()))[0](g)
