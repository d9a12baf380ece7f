"""Rewrites of FX graphs before they become loops."""

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files

aten = torch.ops.aten

_VIEWS = {aten.view.default, aten.reshape.default, aten._unsafe_view.default}


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


def _put_in_place_of(graph, old, new) -> None:
    old.replace_all_uses_with(new)
    graph.erase_node(old)
