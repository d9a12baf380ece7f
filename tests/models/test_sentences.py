"""sentence-transformers encodes on the card: a small BERT from its config, with a tokenizer of a few words."""

import pytest
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

sentence_transformers = pytest.importorskip("sentence_transformers")
pytestmark = pytest.mark.usefixtures("on_the_card_only")

WORDS = "the a card reads writes what is given to it and nothing else".split()
SENTENCES = ["the card reads", "it writes what is given to it and nothing else", "nothing"]


@pytest.fixture
def folder(tmp_path):
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    BertTokenizerFast(str(vocabulary)).save_pretrained(tmp_path)
    torch.manual_seed(0)
    BertModel(BertConfig(
        vocab_size=32, hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=192,
        max_position_embeddings=32,
    )).save_pretrained(tmp_path)  # fmt: skip
    return tmp_path


def sentence_model(folder, device: str, dtype: torch.dtype):
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    modules = [Transformer(str(folder), max_seq_length=16), Pooling(128), Normalize()]
    return sentence_transformers.SentenceTransformer(modules=modules, device=device).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_encoding(folder, dtype):
    expected = sentence_model(folder, "cpu", torch.float32).encode(SENTENCES, convert_to_tensor=True)
    model = sentence_model(folder, "spyre", dtype)
    torch.spyre.reset_metrics()
    found = model.encode(SENTENCES, convert_to_tensor=True)
    metrics = torch.spyre.metrics()
    assert not metrics["fallbacks"] and not metrics["interpreted_ops"]
    assert found.device.type == "spyre"
    distance = (found.float().cpu() - expected).norm(dim=1)  # rows have length one
    assert (distance < {torch.float16: 4e-3, torch.float32: 2e-6}[dtype]).all()
    similarity = model.similarity(found, found)
    assert torch.allclose(similarity.float().cpu(), expected @ expected.T, atol=4e-3)
