"""Rewrites of FX graphs before they become loops.

Inductor's graphs flatten what matmul broadcasts: ``linear`` on [b, s, k] becomes view, mm, view. Flattening merges
axes that the compiler wants to divide among cores, and makes their coordinates quotients and remainders. The passes
after autograd undo it.
"""

import operator

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files

aten = torch.ops.aten

_VIEWS = {aten.view.default, aten.reshape.default, aten._unsafe_view.default}
_SIXTEEN_BIT = (torch.float16, torch.bfloat16)


class BeforeAutograd(CustomGraphPass):
    """On Dynamo's graph: attention becomes our form of it, so that its gradient is that of our form."""

    def __call__(self, graph: torch.fx.Graph) -> None:
        import torch_spyre._inductor.customops  # noqa: F401
        from torch_spyre._inductor.attention import attention, supported

        for node in graph.nodes:
            if node.op == "call_function" and node.target is torch._C._nn.scaled_dot_product_attention:
                given = [_example(a) for a in node.args]
                options = {k: _example(v) for k, v in node.kwargs.items()}
                if supported(*given, **options):
                    node.target = attention

    def uuid(self):
        return get_hash_for_files((__file__,))


class AfterAutograd(CustomGraphPass):
    """On ATen graphs, last of all graph passes."""

    def __call__(self, graph: torch.fx.Graph) -> None:
        decompose_addmm(graph)
        unflatten_matmuls(graph)
        graph.eliminate_dead_code()

    def uuid(self):
        return get_hash_for_files((__file__,))


def _example(value):
    return value.meta.get("example_value", value.meta.get("val")) if isinstance(value, torch.fx.Node) else value


def _value(node):
    return node.meta["val"]


def _insert(graph: torch.fx.Graph, like: torch.fx.Node, target, *args) -> torch.fx.Node:
    """A new call with the metadata of the node it helps to replace, and the value its shape function gives."""
    node = graph.call_function(target, args)
    node.meta.update({k: v for k, v in like.meta.items() if k not in ("val", "tensor_meta", "eager_input_vals")})
    node.meta["val"] = target(*torch.fx.node.map_arg(args, _value))
    return node


def _on_card(node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.device.type == "spyre"


def decompose_addmm(graph: torch.fx.Graph) -> None:
    """beta * input + alpha * (a @ b): the card multiplies and adds in two operations."""
    for node in list(graph.nodes):
        if node.target not in (aten.addmm.default, aten.baddbmm.default) or not _on_card(node):
            continue
        bias, a, b = node.args
        product = aten.mm.default if node.target == aten.addmm.default else aten.bmm.default
        alpha, beta = node.kwargs.get("alpha", 1), node.kwargs.get("beta", 1)
        mode = _value(node).fake_mode
        with graph.inserting_before(node), mode:
            result = _insert(graph, node, product, a, b)
            if alpha != 1:
                result = _insert(graph, node, aten.mul.Tensor, result, alpha)
            if beta != 0:
                bias = bias if beta == 1 else _insert(graph, node, aten.mul.Tensor, bias, beta)
                result = _insert(graph, node, aten.add.Tensor, result, bias)
        node.replace_all_uses_with(result)
        graph.erase_node(node)


def _through(node, targets):
    return node.args[0] if node.op == "call_function" and node.target in targets else node


def _unflattened(operand, matrix: tuple[int, int]):
    """The tensor [*batch, rows, columns] behind a reshape that merged its leading axes; None if there is none."""
    if operand.op != "call_function" or operand.target not in _VIEWS:
        return None
    source = _through(operand.args[0], {aten.clone.default})
    value = _value(source)
    if value.dim() < 3 or tuple(value.shape[-2:]) != matrix:
        return None
    return source


def _single_view(node):
    users = list(node.users)
    return users[0] if len(users) == 1 and users[0].target in _VIEWS else None


def _narrowed(graph, like, source):
    """The operand of an expand that only repeats it along batch axes: products broadcast by themselves."""
    if source.op != "call_function" or source.target != aten.expand.default:
        return source
    inner, full = _value(source.args[0]), _value(source)
    if inner.dim() == full.dim() and inner.shape[-2:] == full.shape[-2:]:
        return source.args[0]
    return source


def _replace(graph, view, x, y) -> None:
    mode = _value(view).fake_mode
    with graph.inserting_before(view), mode:
        product = _insert(graph, view, torch.ops.spyre.batched_matmul.default, x, y)
        if product.meta["val"].shape != _value(view).shape:
            product = _insert(graph, view, aten.expand.default, product, list(_value(view).shape))
    view.replace_all_uses_with(product)
    graph.erase_node(view)


def unflatten_matmuls(graph: torch.fx.Graph) -> None:
    """view, mm or bmm, view  ->  one product over all batch axes."""
    import torch_spyre._inductor.customops  # noqa: F401

    for node in list(graph.nodes):
        if node.target not in (aten.mm.default, aten.bmm.default) or not _on_card(node):
            continue
        view = _single_view(node)
        if view is None or _value(node).dtype not in _SIXTEEN_BIT:
            continue
        shape = tuple(_value(view).shape)
        a, b = node.args
        if node.target == aten.mm.default:
            _unflatten_mm(graph, node, view, a, b, shape)
        else:
            _unflatten_bmm(graph, node, view, a, b, shape)


def _unflatten_mm(graph, node, view, a, b, shape) -> None:
    if a.op != "call_function" or a.target not in _VIEWS:
        return
    source = a.args[0]
    value = _value(source)
    columns = _value(b).shape[-1]
    if value.dim() < 3 or shape != (*value.shape[:-1], columns) or value.shape[-1] != _value(b).shape[0]:
        return
    mode = _value(view).fake_mode
    weight = b
    with graph.inserting_before(view), mode:
        for _ in range(value.dim() - 2):
            weight = _insert(graph, view, aten.unsqueeze.default, weight, 0)
    _replace(graph, view, source, weight)


def _unflatten_bmm(graph, node, view, a, b, shape) -> None:
    if len(shape) < 4:
        return
    x = _unflattened(a, tuple(_value(a).shape[-2:]))
    y = _unflattened(b, tuple(_value(b).shape[-2:]))
    if x is None or y is None or tuple(shape[-2:]) != (_value(a).shape[-2], _value(b).shape[-1]):
        return
    batch = torch.broadcast_shapes(_value(x).shape[:-2], _value(y).shape[:-2])
    if batch != shape[:-2] or operator.ne(_value(x).dim(), _value(y).dim()):
        return
    _replace(graph, view, _narrowed(graph, view, x), _narrowed(graph, view, y))
