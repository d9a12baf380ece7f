"""What is done to FX graphs before they become loops."""

from collections.abc import Callable

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files


def _symbols(number) -> set:
    return set(number.node.expr.free_symbols) if isinstance(number, torch.SymInt) else set()


def _fix(size) -> None:
    """Every symbol of it: that a product is 12 does not say what its factors are. Sizes that are found out while the
    program runs stay open."""
    for symbol in sorted(_symbols(size), key=str):
        env = size.node.shape_env
        if symbol in env.backed_var_to_val:
            env.evaluate_expr(symbol, hint=env.backed_var_to_val[symbol])


def _fix_free_strides(graph: torch.fx.Graph) -> None:
    """Where sizes stay open, a stride that no size explains, because memory has room for more, is what it is."""
    given = [node.meta.get("val") for node in graph.find_nodes(op="placeholder")]
    tensors = [t for t in given if isinstance(t, torch.Tensor) and t.device.type == "spyre"]
    sizes = set().union(*(_symbols(size) for t in tensors for size in t.shape))
    for tensor in tensors:
        for stride in tensor.stride():
            if _symbols(stride) - sizes:
                int(stride)


class FixSizes(CustomGraphPass):
    """Last of all graph passes, where kernels cannot be made for sizes that PyTorch left open: they become the numbers
    of this call. Open numbers that are no size stay open; they are bound at launch."""

    def __init__(self, wanted: Callable[[], bool]):
        self.wanted = wanted

    def __call__(self, graph: torch.fx.Graph) -> None:
        if not self.wanted():
            _fix_free_strides(graph)
            return
        for node in graph.nodes:
            value = node.meta.get("val")
            if isinstance(value, torch.Tensor) and value.device.type == "spyre":
                for extent in (*value.shape, *value.stride()):
                    _fix(extent)  # from here on, shapes that differ are compiled anew
        for node in list(graph.nodes):
            value = node.meta.get("val")
            if isinstance(value, int) or (isinstance(value, torch.SymInt) and value.node.expr.is_number):
                node.replace_all_uses_with(int(value))
        graph.eliminate_dead_code()

    def uuid(self):
        # Float32 products depend on the precision asked for; Inductor's key does not tell high from medium.
        return get_hash_for_files((__file__,)), torch.get_float32_matmul_precision(), self.wanted()
