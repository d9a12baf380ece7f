"""Rewrites of FX graphs before they become loops."""

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files


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
        graph.eliminate_dead_code()

    def uuid(self):
        # Float32 products depend on the precision asked for; Inductor's key does not tell high from medium.
        return get_hash_for_files((__file__,)), torch.get_float32_matmul_precision()


def _example(value):
    return value.meta.get("example_value", value.meta.get("val")) if isinstance(value, torch.fx.Node) else value


def _value(node):
    return node.meta["val"]


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
