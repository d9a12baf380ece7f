"""Stock architectures of `transformers`, built small from their configs with seeded random weights.

One row each: the class, what differs from the family's usual sizes, and what goes in. Everything else (prompts, labels,
which of forward, generate and training apply) follows from the family.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

VOCABULARY, HIDDEN, HEADS, LAYERS, TOKENS = 512, 128, 2, 2, 12
IMAGE_TOKEN = VOCABULARY - 1


@dataclass(frozen=True)
class Architecture:
    name: str
    model: str  # class in transformers
    config: str
    sizes: dict
    inputs: Callable[[], dict]
    labels: Callable[[], dict] = field(default=dict)  # what a training step adds
    generates: bool = False

    def build(self):
        """The model in float32 on the CPU, in eval mode; the same weights every time."""
        import transformers

        torch.manual_seed(0)
        config = getattr(transformers, self.config)(**self.sizes)
        return getattr(transformers, self.model)(config).eval()


def _ids(batch: int = 2, length: int = TOKENS) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(1))


def _prompt() -> dict:
    ids = _ids()
    mask = torch.ones_like(ids)
    mask[0, :3] = 0  # one row is padded on the left
    return {"input_ids": ids, "attention_mask": mask}


def _sequence_pair() -> dict:
    return {**_prompt(), "decoder_input_ids": _ids(length=5)}


def _image() -> dict:
    return {"pixel_values": torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))}


def _image_and_text() -> dict:
    return {**_prompt(), **_image()}


def _image_in_text() -> dict:
    """Texts of a vision-language model: the 16 patches of an image stand where IMAGE_TOKEN does."""
    text = _ids(length=8).clamp(max=IMAGE_TOKEN - 1)
    ids = torch.cat([text[:, :3], torch.full((2, 16), IMAGE_TOKEN), text[:, 3:]], 1)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **_image()}


def _waveform() -> dict:
    return {"input_values": torch.randn(2, 1600, generator=torch.Generator().manual_seed(1))}


def _log_mel() -> dict:
    features = torch.randn(2, 16, 40, generator=torch.Generator().manual_seed(1))
    return {"input_features": features, "decoder_input_ids": _ids(length=4)}


_TEXT = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 192,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
}
_GROUPED = {**_TEXT, "num_key_value_heads": 1}
_GPT = {
    "vocab_size": VOCABULARY, "n_embd": HIDDEN, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 128,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None,
}  # fmt: skip
_ENCODER = {**_TEXT, "eos_token_id": 2}
_PAIR = {
    "vocab_size": VOCABULARY, "d_model": HIDDEN, "encoder_layers": LAYERS, "decoder_layers": LAYERS,
    "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS, "encoder_ffn_dim": 192, "decoder_ffn_dim": 192,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1, "forced_eos_token_id": None,
}  # fmt: skip
_VISION = {
    "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 192,
    "image_size": 32, "patch_size": 8,
}  # fmt: skip
_SPEECH = {
    "vocab_size": 32, "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
    "intermediate_size": 192, "conv_dim": (32, 32), "conv_kernel": (10, 3), "conv_stride": (5, 2),
    "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2, "apply_spec_augment": False,
}  # fmt: skip


def _decoder(name: str, stem: str, sizes: dict, **more) -> Architecture:
    return Architecture(name, f"{stem}ForCausalLM", f"{stem}Config", {**sizes, **more}, _prompt,
                        lambda: {"labels": _ids()}, generates=True)  # fmt: skip


def _masked(name: str, stem: str, **more) -> Architecture:
    return Architecture(name, f"{stem}ForMaskedLM", f"{stem}Config", {**_ENCODER, **more}, _prompt,
                        lambda: {"labels": _ids()})  # fmt: skip


def _pair(name: str, model: str, config: str, sizes: dict) -> Architecture:
    return Architecture(name, model, config, sizes, _sequence_pair, lambda: {"labels": _ids(length=5)}, generates=True)


def _classifier(name: str, stem: str, sizes: dict) -> Architecture:
    return Architecture(name, f"{stem}ForImageClassification", f"{stem}Config", sizes, _image,
                        lambda: {"labels": torch.tensor([0, 1])})  # fmt: skip


ARCHITECTURES = [
    # decoders
    _decoder("llama", "Llama", _GROUPED),
    _decoder("granite", "Granite", _GROUPED),
    _decoder("mistral", "Mistral", _GROUPED, sliding_window=8),
    _decoder("qwen2", "Qwen2", _GROUPED),
    _decoder("qwen3", "Qwen3", _GROUPED, head_dim=64),
    _decoder("gemma", "Gemma", _GROUPED, head_dim=64),
    _decoder("gemma2", "Gemma2", _GROUPED, head_dim=64, sliding_window=8),
    _decoder("phi", "Phi", _TEXT),
    _decoder("phi3", "Phi3", _GROUPED),
    _decoder("olmo2", "Olmo2", _GROUPED),
    _decoder("stablelm", "StableLm", _GROUPED),
    _decoder("starcoder2", "Starcoder2", _GROUPED),
    _decoder("gpt_neox", "GPTNeoX", _TEXT),
    Architecture("gpt2", "GPT2LMHeadModel", "GPT2Config", _GPT, _prompt, lambda: {"labels": _ids()}, generates=True),
    _decoder("gptj", "GPTJ", {**_GPT, "rotary_dim": 32}),
    _decoder("opt", "OPT", {**_TEXT, "ffn_dim": 192, "word_embed_proj_dim": HIDDEN}),
    _decoder("bloom", "Bloom", {**_TEXT, "n_layer": LAYERS, "n_head": HEADS}),
    _decoder("falcon", "Falcon", {**_TEXT, "new_decoder_architecture": False}),
    # mixtures of experts
    _decoder("mixtral", "Mixtral", _GROUPED, num_local_experts=4),
    _decoder("granitemoe", "GraniteMoe", _GROUPED, num_local_experts=4, num_experts_per_tok=2),
    _decoder("olmoe", "Olmoe", _GROUPED, num_experts=4, num_experts_per_tok=2),
    # encoders
    _masked("bert", "Bert"),
    _masked("roberta", "Roberta", pad_token_id=1),
    _masked("electra", "Electra", embedding_size=HIDDEN),
    _masked("modernbert", "ModernBert", cls_token_id=1, sep_token_id=2),
    Architecture(
        "distilbert",
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        {"vocab_size": VOCABULARY, "dim": HIDDEN, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": 192},
        _prompt,
        lambda: {"labels": _ids()},
    ),  # fmt: skip
    # encoders with decoders
    _pair(
        "t5",
        "T5ForConditionalGeneration",
        "T5Config",
        {
            "vocab_size": VOCABULARY,
            "d_model": HIDDEN,
            "d_kv": 64,
            "d_ff": 192,
            "num_layers": LAYERS,
            "num_heads": HEADS,
            "pad_token_id": 0,
            "eos_token_id": 2,
            "decoder_start_token_id": 0,
        },
    ),  # fmt: skip
    _pair("bart", "BartForConditionalGeneration", "BartConfig", _PAIR),
    _pair("marian", "MarianMTModel", "MarianConfig", {**_PAIR, "decoder_vocab_size": VOCABULARY}),
    # vision
    _classifier("vit", "ViT", _VISION),
    _classifier("deit", "DeiT", _VISION),
    _classifier("dinov2", "Dinov2", _VISION),
    _classifier("convnext", "ConvNext", {"depths": [1, 1], "hidden_sizes": [64, 128], "num_stages": 2}),
    _classifier(
        "resnet", "ResNet", {"embedding_size": 32, "hidden_sizes": [32, 64], "depths": [1, 1], "layer_type": "basic"}
    ),  # fmt: skip
    Architecture("clip_text", "CLIPTextModel", "CLIPTextConfig", {**_ENCODER, "projection_dim": 64}, _prompt),
    # an image and a text, or several
    Architecture(
        "clip",
        "CLIPModel",
        "CLIPConfig",
        {"text_config": _ENCODER, "vision_config": _VISION, "projection_dim": 64},
        _image_and_text,
        lambda: {"return_loss": True},
    ),
    Architecture(
        "siglip",
        "SiglipModel",
        "SiglipConfig",
        {"text_config": {**_ENCODER, "projection_size": HIDDEN}, "vision_config": _VISION},
        _image_and_text,
        lambda: {"return_loss": True},
    ),
    Architecture(
        "llava",
        "LlavaForConditionalGeneration",
        "LlavaConfig",
        {
            "text_config": {**_GROUPED, "model_type": "llama"},
            "vision_config": {**_VISION, "model_type": "clip_vision_model", "projection_dim": HIDDEN},
            "image_token_index": IMAGE_TOKEN,
            "image_seq_length": 16,
        },
        _image_in_text,
        lambda: {"labels": _image_in_text()["input_ids"]},
        generates=True,
    ),
    # speech
    Architecture("wav2vec2", "Wav2Vec2ForCTC", "Wav2Vec2Config", {**_SPEECH, "num_feat_extract_layers": 2}, _waveform),
    Architecture("hubert", "HubertForCTC", "HubertConfig", {**_SPEECH, "num_feat_extract_layers": 2}, _waveform),
    Architecture(
        "whisper",
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {
            **_PAIR,
            "num_mel_bins": 16,
            "max_source_positions": 20,
            "max_target_positions": 32,
            "suppress_tokens": None,
            "begin_suppress_tokens": None,
        },
        _log_mel,
        lambda: {"labels": _ids(length=4)},
        generates=True,
    ),  # fmt: skip
]
BY_NAME = {architecture.name: architecture for architecture in ARCHITECTURES}
