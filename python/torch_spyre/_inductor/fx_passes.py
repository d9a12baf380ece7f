"""What is done to FX graphs before they become loops."""

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files


class FixSizes(CustomGraphPass):
    """Last of all graph passes: sizes that PyTorch left open, because they changed between calls, become the numbers of
    this call: kernels are made for one shape. Open numbers that are no size stay open; they are bound at launch."""

    def __call__(self, graph: torch.fx.Graph) -> None:
        for node in graph.nodes:
            value = node.meta.get("val")
            if isinstance(value, torch.Tensor) and value.device.type == "spyre":
                for extent in (*value.shape, *value.stride()):
                    int(extent)  # from here on, shapes that differ are compiled anew
        for node in list(graph.nodes):
            value = node.meta.get("val")
            if isinstance(value, int) or (isinstance(value, torch.SymInt) and value.node.expr.is_number):
                node.replace_all_uses_with(int(value))
        graph.eliminate_dead_code()

    def uuid(self):
        # Float32 products depend on the precision asked for; Inductor's key does not tell high from medium.
        return get_hash_for_files((__file__,)), torch.get_float32_matmul_precision()
