"""Whole layers of Hugging Face models, with heads of 32 elements: one graph, one kernel, nothing on the CPU."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

H = torch.float16


def _decoder_layer(kind: str):
    if kind == "llama":
        from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

        config = transformers.LlamaConfig(
            hidden_size=128, intermediate_size=192, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=1
        )
        layer, rotary = LlamaDecoderLayer, LlamaRotaryEmbedding
    else:
        from transformers.models.granite.modeling_granite import GraniteDecoderLayer, GraniteRotaryEmbedding

        config = transformers.GraniteConfig(
            hidden_size=128,
            intermediate_size=192,
            num_attention_heads=4,
            num_key_value_heads=2,
            num_hidden_layers=1,
            attention_multiplier=0.125,
        )
        layer, rotary = GraniteDecoderLayer, GraniteRotaryEmbedding
    config._attn_implementation = "sdpa"
    return layer(config, 0).to(H).eval(), rotary(config)


def _check(both, found, expected):
    fallbacks = torch.spyre.metrics()["fallbacks"]
    torch.testing.assert_close(found.cpu(), expected, rtol=3e-2, atol=3e-2)
    assert fallbacks == {} and len(both.texts) == 1


@pytest.mark.parametrize("kind", ["llama", "granite"])
def test_a_decoder_layer_is_one_kernel(both, kind):
    layer, rotary = _decoder_layer(kind)
    x = torch.randn(2, 6, 128, dtype=H)
    cos, sin = (t.to(H) for t in rotary(x.float(), torch.arange(6)[None]))
    mask = torch.zeros(1, 1, 6, 6, dtype=H).masked_fill(torch.ones(6, 6).triu(1).bool(), torch.finfo(H).min)

    def run(x, cos, sin, mask):
        out = layer(x, attention_mask=mask, position_embeddings=(cos, sin))
        return out[0] if isinstance(out, tuple) else out

    with torch.no_grad():
        expected = run(x, cos, sin, mask)
        layer.to("spyre")
        torch.spyre.reset_metrics()
        found = torch.compile(run, fullgraph=True)(*(t.to("spyre") for t in (x, cos, sin, mask)))
    _check(both, found, expected)


def test_a_bert_layer_is_one_kernel(both):
    from transformers.models.bert.modeling_bert import BertLayer

    config = transformers.BertConfig(hidden_size=128, intermediate_size=256, num_attention_heads=2, num_hidden_layers=1)
    config._attn_implementation = "sdpa"
    layer = BertLayer(config).to(H).eval()
    x = torch.randn(2, 6, 128, dtype=H)

    def run(x):
        out = layer(x)
        return out[0] if isinstance(out, tuple) else out

    with torch.no_grad():
        expected = run(x)
        layer.to("spyre")
        torch.spyre.reset_metrics()
        found = torch.compile(run, fullgraph=True)(x.to("spyre"))
    _check(both, found, expected)
