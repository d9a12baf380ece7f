"""Programs for test_traces.py, run in processes of their own: ``python -m tests.inductor.traced cold``, warm or first.

Prints a JSON object: by the name of a change what the program computed, what it should have, and what was traced.
"""

import json
import sys
import types

import torch
from torch import nn
from transformers import GraniteConfig, GraniteForCausalLM  # first: importing it changes methods of nn.Module

SCALE = 0.5


def squashed(x, factor=1.0):
    return torch.tanh(x) * SCALE * factor


def doubled(x, factor=1.0):
    return torch.tanh(x) * SCALE * 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64, bias=False)

    def forward(self, x):
        return x + squashed(self.linear(x))


class Blocks(nn.Module):
    def __init__(self, number=30):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(number))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Narrow(Block):
    def forward(self, x):
        return x - squashed(self.linear(x))


def subtracted(self, x):
    return x - squashed(self.linear(x))


def _global(model):
    globals()["SCALE"] = 0.25


def _function(model):
    globals()["squashed"] = doubled


def _default(model):
    squashed.__defaults__ = (0.25,)


def _method(model):
    Block.forward = subtracted


def _of_one_module(model):
    model.blocks[3].forward = types.MethodType(subtracted, model.blocks[3])


def _class_of_one_module(model):
    model.blocks[3].__class__ = Narrow


def _hook(model):
    model.blocks[3].register_forward_hook(lambda module, args, result: result * 0.5)


CHANGES = {
    "none": lambda model: None,
    "global": _global,
    "function": _function,
    "default": _default,
    "method": _method,
    "of one module": _of_one_module,
    "class of one module": _class_of_one_module,
    "hook": _hook,
}


def _call(compiled, model, x) -> dict:
    """What a call computes, beside what the CPU does, and what was done for it."""
    before = torch.spyre.metrics()["traces_read"], torch._dynamo.utils.counters["stats"]["unique_graphs"]
    found = compiled(x.half().to("spyre")).cpu().float()
    after = torch.spyre.metrics()["traces_read"], torch._dynamo.utils.counters["stats"]["unique_graphs"]
    expected = model.cpu().float()(x)
    model.half().to("spyre")
    return {
        "error": float((found - expected).abs().max() / expected.abs().max()),
        "sum": float(found.sum()),
        "read": after[0] - before[0],
        "traced": after[1] - before[1],
    }


def changed(name: str, x: torch.Tensor) -> dict:
    """A process that starts, as far as Dynamo knows, with this change."""
    torch._dynamo.reset()
    own = dict(globals()), Block.forward, squashed.__defaults__
    torch.manual_seed(0)
    model = Blocks().half().to("spyre")
    CHANGES[name](model)
    try:
        return _call(torch.compile(model), model, x)
    finally:
        Block.forward, own[0]["squashed"].__defaults__ = own[1], own[2]
        globals().update(SCALE=own[0]["SCALE"], squashed=own[0]["squashed"])


def changed_later(x: torch.Tensor) -> list[dict]:
    """A change after the program was read."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Blocks().half().to("spyre")
    compiled = torch.compile(model)
    calls = [_call(compiled, model, x)]
    globals()["SCALE"] = 0.125
    calls.append(_call(compiled, model, x))
    globals()["SCALE"] = 0.5
    return calls


def sizes(x: torch.Tensor) -> list[dict]:
    """Another size, and a third: PyTorch's second compilation is for all of them."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Blocks().half().to("spyre")
    compiled = torch.compile(model)
    return [_call(compiled, model, x[:rows]) for rows in (40, 30, 20)]


def text() -> dict:
    torch._dynamo.reset()
    torch.manual_seed(0)
    config = GraniteConfig(hidden_size=128, intermediate_size=192, num_hidden_layers=3, num_attention_heads=2,
                           num_key_value_heads=1, vocab_size=256, max_position_embeddings=128)  # fmt: skip
    model = GraniteForCausalLM(config).half().eval().to("spyre")
    model.forward = torch.compile(model.forward)
    before = torch.spyre.metrics()["traces_read"], torch._dynamo.utils.counters["stats"]["unique_graphs"]
    prompt = torch.arange(7)[None].to("spyre")
    tokens = model.generate(prompt, max_new_tokens=3, do_sample=False, pad_token_id=0)
    after = torch.spyre.metrics()["traces_read"], torch._dynamo.utils.counters["stats"]["unique_graphs"]
    return {"tokens": tokens.cpu().tolist(), "read": after[0] - before[0], "traced": after[1] - before[1]}


def main() -> None:
    x = torch.randn(40, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found = {"none": changed("none", x)}
        if sys.argv[1] != "first":
            found |= {"sizes": sizes(x), "text": text()}
        if sys.argv[1] == "warm":
            found["later"] = changed_later(x)
            found |= {name: changed(name, x) for name in CHANGES if name != "none"}
            found["none again"] = changed("none", x)
        found["compiled"] = torch.spyre.metrics()["graphs_compiled"]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
