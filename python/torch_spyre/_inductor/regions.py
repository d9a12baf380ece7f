"""Layers that a model repeats are compiled once.

PyTorch can find the identical regions of a graph and make each group of them one subgraph that is called several times
(``torch._dynamo.config.use_graph_deduplication``). What it finds is taken where it pays: many operators, many times. A
kernel of its own reads its inputs from device memory again, which smaller regions would rather not.
"""

import functools

import torch

#: A decoder layer has about 60 operators; 40 layers of them take ten times as long to compile as four.
LEAST_OPERATORS, LEAST_TIMES = 24, 4


def install() -> None:
    """Asks PyTorch for regions, of graphs for the card alone. A program that asked by itself gets all of them."""
    from torch._dynamo import config
    from torch._dynamo.graph_region_tracker import GraphRegionTracker

    original = GraphRegionTracker.get_identical_regions
    if config.use_graph_deduplication:
        return

    @functools.wraps(original)
    def get_identical_regions(self, graph):
        if not any(_is_on_card(node) for node in graph.nodes):
            return []
        return [
            group for group in original(self, graph) if len(group) >= LEAST_TIMES and len(group[0]) >= LEAST_OPERATORS
        ]

    GraphRegionTracker.get_identical_regions = get_identical_regions
    config.use_graph_deduplication = True


def _is_on_card(node) -> bool:
    value = node.meta.get("example_value")
    return isinstance(value, torch.Tensor) and value.device.type == "spyre"
