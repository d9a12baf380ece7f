"""Writes the graphs of this folder, and small ones of the same kinds for tests that compute (../graphs).

    python tests/corpus/layers/capture.py

Hugging Face layers and the parts they are made of, as `torch.compile` hands them to the compiler. Nothing is run and
weights have no values; only shapes reach the text.
"""

import os
import tempfile
from pathlib import Path

os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="capture-")  # a cached graph would not be seen

import torch
import torch.nn.functional as F
import transformers
from torch_spyre._inductor import kernels

HERE = Path(__file__).resolve().parent
H = torch.float16


def capture(path: Path, about: str, function, *args):
    """The one graph that `function` becomes."""
    texts, compiler, run = [], kernels.compile_graph, kernels.LoadedKernel.run

    def compile_graph(text):
        texts.append(text)
        return compiler(text)

    torch._dynamo.reset()
    kernels.compile_graph, kernels.LoadedKernel.run = compile_graph, lambda *_: None
    try:
        with torch.no_grad():
            torch.compile(function, fullgraph=True)(*(a.to("spyre") for a in args))
    finally:
        kernels.compile_graph, kernels.LoadedKernel.run = compiler, run
    (text,) = texts
    head, _, rest = text.partition("\n")
    path.write_text(f"# {about}\ngraph {path.stem} {{\n{rest}")
    print(f"{path.name}: {head.removeprefix('graph ').removesuffix(' {')}")


def empty(*shape):
    return torch.zeros(shape, dtype=H)


def decoder(kind: str, tokens: int, **config):
    if kind == "llama":
        from transformers.models.llama.modeling_llama import LlamaDecoderLayer as Layer
        from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding as Rotary

        config = transformers.LlamaConfig(num_hidden_layers=1, **config)
    else:
        from transformers.models.granite.modeling_granite import GraniteDecoderLayer as Layer
        from transformers.models.granite.modeling_granite import GraniteRotaryEmbedding as Rotary

        config = transformers.GraniteConfig(
            num_hidden_layers=1, attention_multiplier=0.0078125, residual_multiplier=0.22, **config
        )
    config._attn_implementation = "sdpa"
    with torch.device("meta"):
        layer = Layer(config, 0).to(H)
    layer = layer.to_empty(device="cpu").eval().to("spyre")
    x = empty(1, tokens, config.hidden_size)
    cos, sin = (t.to(H) for t in Rotary(config)(x.float(), torch.arange(tokens)[None]))
    mask = empty(1, 1, tokens, tokens)

    def run(x, cos, sin, mask):
        out = layer(x, attention_mask=mask, position_embeddings=(cos, sin))
        return out[0] if isinstance(out, tuple) else out

    return run, x, cos, sin, mask


def bert(tokens: int, **config):
    from transformers.models.bert.modeling_bert import BertLayer

    config = transformers.BertConfig(num_hidden_layers=1, **config)
    config._attn_implementation = "sdpa"
    layer = BertLayer(config).to(H).eval().to("spyre")

    def run(x):
        out = layer(x)
        return out[0] if isinstance(out, tuple) else out

    return run, empty(1, tokens, config.hidden_size)


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def rms_norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight


def gated_mlp(tokens: int, hidden: int, inner: int):
    with torch.device("meta"):
        gate, up = (torch.nn.Linear(hidden, inner, bias=False, dtype=H) for _ in range(2))
        down = torch.nn.Linear(inner, hidden, bias=False, dtype=H)
    parts = torch.nn.ModuleList([gate, up, down]).to_empty(device="cpu").to("spyre")
    return lambda x: parts[2](F.silu(parts[0](x)) * parts[1](x)), empty(1, tokens, hidden)


def main():
    small = dict(hidden_size=256, intermediate_size=512, num_attention_heads=4, num_key_value_heads=2)
    large = dict(hidden_size=4096, num_attention_heads=32, num_key_value_heads=8)
    graphs = HERE.parent / "graphs"
    capture(HERE / "softmax.ir", "Softmax over the keys of 32 heads, 128 queries, 512 keys.",
            lambda x: torch.softmax(x, -1), empty(32, 128, 512))
    capture(HERE / "rms_norm.ir", "RMSNorm of 512 tokens of 4096.", rms_norm, empty(1, 512, 4096), empty(4096))
    capture(HERE / "attention.ir", "128 tokens, 32 heads of 128 that share 8 of keys and values.",
            attention, empty(1, 32, 128, 128), empty(1, 8, 128, 128), empty(1, 8, 128, 128))
    capture(HERE / "gated_mlp.ir", "The gated MLP of Granite 8B, 128 tokens.", *gated_mlp(128, 4096, 12800))
    capture(HERE / "granite_layer.ir", "One layer of Granite 8B, 128 tokens.",
            *decoder("granite", 128, intermediate_size=12800, **large))
    capture(HERE / "llama_layer.ir", "One layer of Llama 3 8B, 128 tokens.",
            *decoder("llama", 128, intermediate_size=14336, **large))
    capture(HERE / "bert_layer.ir", "One layer of BERT base, 512 tokens.", *bert(512))
    capture(graphs / "rms_norm_small.ir", "RMSNorm of 64 tokens of 256.", rms_norm, empty(1, 64, 256), empty(256))
    capture(graphs / "attention_small.ir", "64 tokens, 4 heads of 64 that share 2 of keys and values.",
            attention, empty(1, 4, 64, 64), empty(1, 2, 64, 64), empty(1, 2, 64, 64))
    capture(graphs / "gated_mlp_small.ir", "A gated MLP, 64 tokens of 256.", *gated_mlp(64, 256, 512))
    capture(graphs / "granite_small.ir", "One small layer of Granite, 64 tokens.", *decoder("granite", 64, **small))
    capture(graphs / "llama_small.ir", "One small layer of Llama, 64 tokens.", *decoder("llama", 64, **small))
    capture(graphs / "bert_small.ir", "One small layer of BERT, 64 tokens.",
            *bert(64, hidden_size=256, intermediate_size=512, num_attention_heads=4))


if __name__ == "__main__":
    main()
