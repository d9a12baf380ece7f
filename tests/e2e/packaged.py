"""Programs that test_packages.py saves, and the process that runs them: ``python -m tests.e2e.packaged PACKAGE WHAT``.

Prints one JSON object: a digest of the result's bytes, and what was compiled on the way.
"""

import hashlib
import json
import sys

import torch
import torch_spyre

H = torch.float16


class Mlp(torch.nn.Module):
    def __init__(self, width=128, scale=2.0):
        super().__init__()
        torch.manual_seed(0)
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)
        self.register_buffer("seen", torch.zeros(width))
        self.scale = scale

    def forward(self, x, twice=False):
        y = self.down(torch.nn.functional.silu(self.up(x))) * self.scale
        return x + y * 2 if twice else x + y


class Counting(torch.nn.Module):
    """Writes a buffer of its own."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(64, dtype=H))

    def forward(self, x):
        self.total += x.sum(0)
        return {"twice": x * 2, "total": self.total + 0}


class Broken(torch.nn.Module):
    """Two graphs with Python between them."""

    def forward(self, x):
        y = (x * 2).relu()
        torch._dynamo.graph_break()
        return y.softmax(-1) + 1


def residual(x, y):
    return torch.nn.functional.gelu(x @ y) + x


def rows(x, y):
    """Of any number of rows."""
    return torch.softmax(x * 2, -1) @ y


def mixed(x, y):
    """A tensor of the card and one of the CPU."""
    return x * 2, torch.sin(y) + torch.cos(y)


def batch(*shape):
    torch.manual_seed(1)
    return torch.randn(shape, dtype=H).to("spyre")


def mlp(**kwargs):
    return Mlp(**kwargs).half().eval().to("spyre")


def granite(layers=2, hidden=128):
    from transformers import GraniteConfig, GraniteForCausalLM

    torch.manual_seed(0)
    config = GraniteConfig(
        vocab_size=256,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    return GraniteForCausalLM(config).half().eval().to("spyre")


def generate(model):
    prompt = torch.arange(1, 9)[None].to("spyre")
    return model.generate(
        prompt, max_new_tokens=4, do_sample=False, cache_implementation="static", disable_compile=True
    )


def _run(path, what):
    with torch.no_grad():
        if what == "module":
            model = torch_spyre.load(path, mlp())
            return [model(batch(4, 128)), model(batch(4, 128), twice=True), model(batch(9, 128))]
        if what == "function":
            return torch_spyre.load(path, residual)(batch(64, 64), batch(64, 64))
        if what == "rows":
            run = torch_spyre.load(path, rows)
            return [run(batch(n, 64), batch(64, 64)) for n in (8, 17, 130)]
        if what == "broken":
            return torch_spyre.load(path, Broken())(batch(4, 64))
        if what == "exported":
            return torch_spyre.load(path)(batch(4, 128))
        if what == "counting":
            run = torch_spyre.load(path)
            return [run(batch(4, 64)), run(batch(4, 64))]
        assert what == "granite"
        return generate(torch_spyre.load(path, granite()))


def digest(result) -> str:
    found = hashlib.sha256()
    for tensor in torch.utils._pytree.tree_leaves(result):
        found.update(tensor.cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    from torch._dynamo.utils import counters

    from tests.e2e import packaged  # classes under the name they were saved by, not those of __main__

    result = digest(packaged._run(*sys.argv[1:]))
    compiled = {
        "graphs_compiled": torch.spyre.metrics()["graphs_compiled"],
        "frames": counters["frames"]["total"],
        "graphs": counters["stats"]["unique_graphs"],
        "lowered": counters["inductor"]["fxgraph_cache_miss"],
    }
    print(json.dumps({"result": result, "compiled": compiled}))
