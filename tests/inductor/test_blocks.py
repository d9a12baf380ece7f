"""Building blocks of language models at the sizes of real ones: one kernel, nothing on the CPU, close to float32.

The judge is the same module in float32 on the CPU. An error of 0.055 % is what moving the input to the card and back
costs alone: the 16-bit format of the card has nine fraction bits. With `-s` each test prints both numbers.
"""

import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional as F

transformers = pytest.importorskip("transformers")

TOKENS = 72  # not a multiple of the 64 elements of a stick
WORST = 0.01

GRANITE_8B = dict(hidden_size=4096, intermediate_size=12800, num_attention_heads=32, num_key_value_heads=8)
DECODERS = {
    "granite": ("Granite", dict(GRANITE_8B, attention_multiplier=0.0078125, residual_multiplier=0.22)),
    "llama": ("Llama", dict(GRANITE_8B, intermediate_size=14336)),
    "qwen2": (
        "Qwen2",
        dict(hidden_size=3584, intermediate_size=18944, num_attention_heads=28, num_key_value_heads=4),
    ),
}


def normalised_rms(found, expected) -> float:
    found, expected = found.float(), expected.float()
    return ((found - expected).pow(2).mean().sqrt() / expected.pow(2).mean().sqrt()).item()


def check(function, module, *inputs):
    """The module's function, compiled for the card, against float32; `inputs` stay float32 for the judge."""
    torch._dynamo.reset()
    with torch.no_grad():
        expected = function(*inputs)
        if module is not None:
            module.half().to("spyre")
        on_card = [t.half().to("spyre") if t.is_floating_point() else t.to("spyre") for t in inputs]
        torch.spyre.reset_metrics()
        found = torch.compile(function, fullgraph=True)(*on_card)
    assert torch.spyre.metrics()["fallbacks"] == {}
    moved = next((t for t in inputs if t.is_floating_point()), None)
    floor = 0.0 if moved is None else normalised_rms(moved.half().to("spyre").cpu(), moved)
    error = normalised_rms(found.cpu(), expected)
    print(f"normalised RMS error {100 * error:.3f} %, of which moving the input {100 * floor:.3f} %")
    assert error <= WORST


def causal_mask(tokens: int) -> torch.Tensor:
    return torch.zeros(1, 1, tokens, tokens).masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -65504.0)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_decoder_layer(kind):
    name, sizes = DECODERS[kind]
    models = getattr(transformers.models, kind)
    modeling = getattr(models, f"modeling_{kind}")
    config = getattr(transformers, name + "Config")(num_hidden_layers=1, **sizes)
    config._attn_implementation = "sdpa"
    torch.manual_seed(0)
    layer = getattr(modeling, name + "DecoderLayer")(config, 0).eval()
    rotary = getattr(modeling, name + "RotaryEmbedding")(config)
    x = torch.randn(1, TOKENS, config.hidden_size)
    cos, sin = rotary(x, torch.arange(TOKENS)[None])

    def run(x, cos, sin, mask):
        out = layer(x, attention_mask=mask, position_embeddings=(cos, sin))
        return out[0] if isinstance(out, tuple) else out

    check(run, layer, x, cos, sin, causal_mask(TOKENS))


def test_a_bert_layer_with_padding():
    from transformers.models.bert.modeling_bert import BertLayer

    config = transformers.BertConfig()
    config._attn_implementation = "sdpa"
    torch.manual_seed(0)
    layer = BertLayer(config).eval()
    mask = torch.zeros(2, 1, TOKENS, TOKENS)
    mask[1, :, :, TOKENS - 7 :] = -65504.0

    def run(x, mask):
        out = layer(x, mask)
        return out[0] if isinstance(out, tuple) else out

    check(run, layer, torch.randn(2, TOKENS, config.hidden_size), mask)


@pytest.mark.parametrize("kv_heads", [32, 8], ids=["mha", "gqa"])
@pytest.mark.parametrize("masking", ["none", "causal", "padded"])
def test_attention(kv_heads, masking):
    torch.manual_seed(0)
    q = torch.randn(2, 32, TOKENS, 128)
    k, v = (torch.randn(2, kv_heads, TOKENS, 128) for _ in range(2))
    mask = causal_mask(TOKENS).expand(2, 1, TOKENS, TOKENS).clone()
    if masking == "padded":
        mask = torch.zeros(2, 1, TOKENS, TOKENS)
        mask[1, :, :, :9] = -65504.0

    def run(q, k, v, mask):
        chosen = {"attn_mask": mask} if masking == "padded" else {"is_causal": masking == "causal"}
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=kv_heads != 32, **chosen)

    check(run, None, q, k, v, mask)


class GatedMlp(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.gate, self.up = nn.Linear(hidden, inner, bias=False), nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def test_a_gated_mlp():
    torch.manual_seed(0)
    mlp = GatedMlp(4096, 12800)
    check(mlp, mlp, torch.randn(1, TOKENS, 4096))


@pytest.mark.parametrize("norm", [nn.RMSNorm, nn.LayerNorm])
def test_a_norm(norm):
    torch.manual_seed(0)
    module = norm(4096)
    nn.init.normal_(module.weight)
    check(module, module, torch.randn(1, TOKENS, 4096) * 3 + 1)


def test_rotary_positions():
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    torch.manual_seed(0)
    q, k = torch.randn(1, 32, TOKENS, 128), torch.randn(1, 8, TOKENS, 128)
    angle = torch.arange(TOKENS)[:, None] / 10000 ** (torch.arange(64) / 64)
    cos, sin = (torch.cat([f(angle)] * 2, -1)[None] for f in (torch.cos, torch.sin))

    def run(q, k, cos, sin):
        return torch.cat([t.flatten(1) for t in apply_rotary_pos_emb(q, k, cos, sin)], 1)

    check(run, None, q, k, cos, sin)


def test_an_embedding():
    torch.manual_seed(0)
    table = nn.Embedding(49152, 1024)
    check(lambda tokens: table(tokens), table, torch.randint(0, 49152, (2, TOKENS)))


def test_a_language_model_head():
    torch.manual_seed(0)
    head = nn.Linear(2048, 49155, bias=False)
    check(lambda x: head(x[:, -1:]), head, torch.randn(1, TOKENS, 2048))


LAYER = """
import sys, torch, transformers
from transformers.models.granite.modeling_granite import GraniteDecoderLayer, GraniteRotaryEmbedding
config = transformers.GraniteConfig(
    hidden_size=128, intermediate_size=192, num_attention_heads=2, num_key_value_heads=1, num_hidden_layers=1)
config._attn_implementation = "sdpa"
torch.manual_seed(0)
layer = GraniteDecoderLayer(config, 0).half().eval().to("spyre")
x = torch.randn(1, 9, 128)
cos, sin = GraniteRotaryEmbedding(config)(x, torch.arange(9)[None])
with torch.no_grad():
    run = torch.compile(lambda x, c, s: layer(x, position_embeddings=(c, s)), fullgraph=True)
    out = run(*(t.half().to("spyre") for t in (x, cos, sin)))
out = (out[0] if isinstance(out, tuple) else out).cpu()
"""


def test_a_layer_equals_the_interpreter_bit_for_bit(tmp_path, monkeypatch):
    """The interpreter defines what the card computes; tests/ops judges it in NumPy, op by op."""
    here: dict = {}
    torch.spyre.reset_metrics()
    exec(LAYER, here)
    assert torch.spyre.metrics()["fallbacks"] == {}
    monkeypatch.setenv("SPYRE_EXECUTOR", "interpreter")
    subprocess.run([sys.executable, "-c", LAYER + "torch.save(out, sys.argv[1])", tmp_path / "out"], check=True)
    fast, interpreted = here["out"], torch.load(tmp_path / "out")
    assert fast.isfinite().all() and fast.std() > 0.1
    assert torch.equal(fast.view(torch.int16), interpreted.view(torch.int16))
