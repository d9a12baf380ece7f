"""Rewrites of FX graphs before they become loops.

Inductor's graphs flatten what matmul broadcasts: ``linear`` on [b, s, k] becomes view, mm, view. Flattening merges
axes that the compiler wants to divide among cores, and makes their coordinates quotients and remainders. The passes
after autograd undo it.
"""

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files

aten = torch.ops.aten

_VIEWS = {aten.view.default, aten.reshape.default, aten._unsafe_view.default}
_BATCH_AXES = 2  # of both operands; with more the card needs them merged
_ROW_AXES = 2  # of the left operand alone
_MULTIPLIED = (torch.float16, torch.bfloat16, torch.float32)


class BeforeAutograd(CustomGraphPass):
    """On Dynamo's graph: attention becomes an operator of ours, which stays whole; so does one_hot,
    which PyTorch takes apart, with a look at its values, before decompositions see it."""

    def __call__(self, graph: torch.fx.Graph) -> None:
        from torch_spyre._inductor import customops

        forms = {
            torch._C._nn.scaled_dot_product_attention: (customops.attends_on_card, customops.attention),
            torch._C._nn.one_hot: (customops.tells_classes_on_card, customops.one_hot),
        }
        for node in graph.nodes:
            if node.op != "call_function" or node.target not in forms:
                continue
            is_for_the_card, form = forms[node.target]
            if is_for_the_card(*map(_example, node.args), **{k: _example(v) for k, v in node.kwargs.items()}):
                node.target = form

    def uuid(self):
        return get_hash_for_files((__file__,))


class AfterAutograd(CustomGraphPass):
    """On ATen graphs, last of all graph passes."""

    def __call__(self, graph: torch.fx.Graph) -> None:
        import torch_spyre._inductor.customops  # noqa: F401

        fix_sizes(graph)
        index_by_views(graph)
        decompose_addmm(graph)
        unflatten_matmuls(graph)
        graph.eliminate_dead_code()

    def uuid(self):
        # Float32 products depend on the precision asked for; Inductor's key does not tell high from medium.
        return get_hash_for_files((__file__,)), torch.get_float32_matmul_precision()


def _example(value):
    return value.meta.get("example_value", value.meta.get("val")) if isinstance(value, torch.fx.Node) else value


def _value(node):
    return node.meta["val"]


def _shape(node) -> list[int]:
    return [int(extent) for extent in _value(node).shape]


def _insert(graph: torch.fx.Graph, like: torch.fx.Node, target, *args) -> torch.fx.Node:
    """A new call with the metadata of the node it helps to replace, and the value its shape function gives."""
    node = graph.call_function(target, args)
    node.meta.update({k: v for k, v in like.meta.items() if k not in ("val", "tensor_meta", "eager_input_vals")})
    node.meta["val"] = target(*torch.fx.node.map_arg(args, _value))
    return node


def _on_card(node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.device.type == "spyre"


def _value_of_view(node):
    """The one view that reads a node, if that is all there is."""
    users = list(node.users)
    return users[0] if len(users) == 1 and users[0].target in _VIEWS else None


def fix_sizes(graph: torch.fx.Graph) -> None:
    """Sizes that PyTorch left open, because they changed between calls, become the numbers of this call: kernels are
    made for one shape. Open numbers that are no size stay open; they are bound at launch."""
    for node in graph.nodes:
        if _on_card(node):
            for extent in (*_value(node).shape, *_value(node).stride()):
                int(extent)  # from here on, shapes that differ are compiled anew
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if isinstance(value, int) or (isinstance(value, torch.SymInt) and value.node.expr.is_number):
            node.replace_all_uses_with(int(value))


def _scaled(graph, like, value, factor):
    return value if factor == 1 else _insert(graph, like, aten.mul.Tensor, value, factor)


def _counted(node) -> int | None:
    """How far a tensor counts from zero, by one, along its only axis of more than one position; none: it does not."""
    if not isinstance(node, torch.fx.Node) or sum(n > 1 for n in _value(node).shape) > 1:
        return None
    while isinstance(node, torch.fx.Node):
        if node.target is torch.ops.prims.iota.default:
            from_zero = node.kwargs.get("start", 0) == 0 and node.kwargs.get("step", 1) == 1
            return node.args[0] if from_zero else None
        same = node.target in (
            *_VIEWS,
            aten.unsqueeze.default,
            aten.permute.default,
            torch.ops.prims.convert_element_type.default,
        )
        same = same or (node.target is aten.add.Tensor and node.args[1] == 0)
        same = same or (node.target is aten.mul.Tensor and node.args[1] == 1)
        if not same or _value(node).dtype not in (torch.int32, torch.int64):
            return None
        node = node.args[0]
    return None


def index_by_views(graph: torch.fx.Graph) -> None:
    """x[i, j] with i and j that only count, as in masks of models: x itself, its axes where i and j have theirs."""
    for node in list(graph.nodes):
        if node.target is not aten.index.Tensor or not _on_card(node):
            continue
        x, indices = node.args
        shape = _shape(node)
        counts = [_counted(i) for i in indices]
        if len(counts) != _value(x).dim() or None in counts:
            continue
        # By axis of x the axis of the result that it becomes; axes of one position become none.
        to = [next((d - i.dim() for d, n in enumerate(i.shape) if n > 1), None) for i in map(_value, indices)]
        kept_axes = sorted((d for d, axis in enumerate(to) if axis is not None), key=to.__getitem__)
        diagonal = len({to[d] for d in kept_axes}) != len(kept_axes)
        if diagonal or any(count > n for count, n in zip(counts, _value(x).shape, strict=True)):
            continue
        with graph.inserting_before(node), _value(node).fake_mode:
            for d, count in enumerate(counts):
                if count != _value(x).shape[d]:
                    x = _insert(graph, node, aten.slice.Tensor, x, d, 0, count)
            x = _insert(graph, node, aten.squeeze.dims, x, [d for d, axis in enumerate(to) if axis is None])
            x = _insert(graph, node, aten.permute.default, x, [sorted(kept_axes).index(d) for d in kept_axes])
            for axis in range(-len(shape), 0):
                if axis not in to:
                    x = _insert(graph, node, aten.unsqueeze.default, x, axis + len(shape))
            x = _insert(graph, node, aten.expand.default, x, shape)
            if any(user.op == "output" for user in node.users):
                x = _insert(graph, node, aten.clone.default, x)  # a result of its own
        _put_in_place_of(graph, node, x)


def decompose_addmm(graph: torch.fx.Graph) -> None:
    """beta * input + alpha * (a @ b): the card multiplies and adds in two operations.

    A bias row added to a flattened product, as ``linear`` makes it, is added to the product with all its axes.
    """
    for node in list(graph.nodes):
        if node.target not in (aten.addmm.default, aten.baddbmm.default) or not _on_card(node):
            continue
        bias, a, b = node.args
        alpha, beta = node.kwargs.get("alpha", 1), node.kwargs.get("beta", 1)
        place, product, operands = node, aten.bmm.default, (a, b)
        if node.target == aten.addmm.default:
            view = _value_of_view(node)
            operands = _rows_unflattened(graph, view, a, b) if view is not None and _value(bias).dim() == 1 else None
            place, product = (view, torch.ops.spyre.batched_matmul.default) if operands else (node, aten.mm.default)
            operands = operands or (a, b)
        with graph.inserting_before(place), _value(node).fake_mode:
            result = _scaled(graph, node, _insert(graph, node, product, *operands), alpha)
            if beta != 0:
                result = _insert(graph, node, aten.add.Tensor, result, _scaled(graph, node, bias, beta))
        _put_in_place_of(graph, place, result)


def _put_in_place_of(graph, old, new) -> None:
    old.replace_all_uses_with(new)
    graph.erase_node(old)


def unflatten_matmuls(graph: torch.fx.Graph) -> None:
    """view, mm or bmm, view  ->  one product over all batch axes."""
    for node in list(graph.nodes):
        if node.target not in (aten.mm.default, aten.bmm.default) or not _on_card(node):
            continue
        view = _value_of_view(node)
        if view is None:
            continue
        unflattened = _rows_unflattened if node.target == aten.mm.default else _batch_unflattened
        operands = unflattened(graph, view, *node.args)
        if operands is None:
            continue
        shape = _shape(view)
        with graph.inserting_before(view), _value(view).fake_mode:
            product = _insert(graph, node, torch.ops.spyre.batched_matmul.default, *operands)
            if _shape(product) != shape:
                product = _insert(graph, node, aten.expand.default, product, shape)
        _put_in_place_of(graph, view, product)


def _rows_unflattened(graph, view, a, b):
    """[b, s, k] viewed as [b*s, k], times [k, n], viewed as [b, s, n]: the tensor itself, and [1, k, n]."""
    if a.op != "call_function" or a.target not in _VIEWS or _value(a).dtype not in _MULTIPLIED:
        return None
    source = a.args[0]
    size = _value(source).shape
    depth, columns = _value(b).shape
    if sum(1 for s in size[:-1] if s != 1) > _ROW_AXES:
        return None
    if len(size) < 3 or tuple(_value(view).shape) != (*size[:-1], columns) or size[-1] != depth:
        return None
    with graph.inserting_before(view), _value(view).fake_mode:
        for _ in range(len(size) - 2):
            b = _insert(graph, view, aten.unsqueeze.default, b, 0)
    return source, b


def _batch_unflattened(graph, view, a, b):
    """[x, y, m, k] viewed as [x*y, m, k] on both sides, and the product viewed back: the tensors themselves."""
    shape = tuple(_value(view).shape)
    sources = [_before_merging(a), _before_merging(b)]
    if len(shape) < 4 or None in sources or shape[-2:] != (_value(a).shape[-2], _value(b).shape[-1]):
        return None
    sizes = [_value(s).shape for s in sources]
    if len(sizes[0]) != len(sizes[1]) or torch.broadcast_shapes(sizes[0][:-2], sizes[1][:-2]) != shape[:-2]:
        return None
    sources = [_before_repeating(s) for s in sources]
    batches = zip(*(_value(s).shape[:-2] for s in sources), strict=True)
    if sum(1 for x, y in batches if x != 1 and y != 1) > _BATCH_AXES:
        return None
    return tuple(sources)


def _before_merging(operand):
    """The tensor [*batch, rows, columns] behind a reshape that merged its batch axes, or None."""
    if operand.op != "call_function" or operand.target not in _VIEWS or _value(operand).dtype not in _MULTIPLIED:
        return None
    source = operand.args[0]
    if source.op == "call_function" and source.target == aten.clone.default:
        source = source.args[0]
    return source if _value(source).dim() > 3 and _value(source).shape[-2:] == _value(operand).shape[-2:] else None


def _before_repeating(source):
    """The operand of an expand along batch axes: a product repeats it by itself."""
    if source.op != "call_function" or source.target != aten.expand.default:
        return source
    inner, full = _value(source.args[0]), _value(source)
    return source.args[0] if inner.dim() == full.dim() and inner.shape[-2:] == full.shape[-2:] else source
