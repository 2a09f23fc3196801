"""Folders of model hubs, with the library transformers: python3 tests/hub_check.py FOLDER [judge]

Writes data and, for each network, a folder as on model hubs (NAME/) and its outputs for some tokens (NAME.json). With
`judge`, it loads the folders that runner exported (exported/NAME/) and writes their outputs (exported/NAME.json)."""

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (AutoModelForCausalLM, AutoModelForImageClassification, AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoTokenizer,
                          BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel, GPT2Config,
                          GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, ResNetConfig,
                          ResNetForImageClassification, ViTConfig, ViTForImageClassification)

folder = Path(sys.argv[1])
LENGTH = 12
WORDS = "the harbour sleeps while lanterns burn and tides turn over old stones again at night".split()
NAMES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, ".", ","]
IMAGES = ["vit", "vit_of_28", "basic", "bottleneck"]
SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)


def text(num, step):
    return "".join(f"{WORDS[at * step % 15]} {WORDS[at % 7]}, {WORDS[at * at % 11]}.\n" for at in range(num))


def tokens():
    """No token fills an item, so that no mask is needed."""
    rng = torch.Generator().manual_seed(3)
    return torch.randint(5, len(NAMES), (5, LENGTH), generator=rng)


def networks():
    bert = dict(vocab_size=len(NAMES) + 3, max_position_embeddings=20, **SIZES)
    labels = {0: "calm", 1: "rough", 2: "wild"}
    return {
        "hidden": BertForMaskedLM(BertConfig(**bert)),
        "kinds": BertForSequenceClassification(BertConfig(
            id2label=labels, label2id={name: at for at, name in labels.items()}, **bert)),
        "encoder": BertModel(BertConfig(**bert)),
        "gpt2": GPT2LMHeadModel(GPT2Config(
            vocab_size=len(NAMES), n_embd=32, n_layer=2, n_head=4, n_inner=40, n_positions=20)),
        "llama": LlamaForCausalLM(LlamaConfig(vocab_size=len(NAMES) + 1, num_key_value_heads=2, **SIZES)),
        "llama3": LlamaForCausalLM(LlamaConfig(
            vocab_size=len(NAMES) + 1, num_key_value_heads=2, rope_theta=50.0, rope_scaling={
                "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 32}, **SIZES)),
        "yarn": LlamaForCausalLM(LlamaConfig(
            vocab_size=len(NAMES) + 1, num_key_value_heads=2, rope_theta=50.0, rope_scaling={
                "rope_type": "yarn", "factor": 4.0, "beta_fast": 8.0, "original_max_position_embeddings": 32}, **SIZES)),
        "dynamic": LlamaForCausalLM(LlamaConfig(
            vocab_size=len(NAMES) + 1, num_key_value_heads=2, rope_theta=50.0, max_position_embeddings=LENGTH - 4,
            rope_scaling={"rope_type": "dynamic", "factor": 4.0}, **SIZES)),
        "longrope": LlamaForCausalLM(LlamaConfig(
            vocab_size=len(NAMES) + 1, num_key_value_heads=2, rope_theta=50.0, max_position_embeddings=64, rope_scaling={
                "rope_type": "longrope", "original_max_position_embeddings": LENGTH - 4,
                "short_factor": [1.0, 1.0, 1.1, 1.2], "long_factor": [1.0, 1.5, 2.5, 4.0]}, **SIZES)),
        "vit": ViTForImageClassification(ViTConfig(image_size=8, patch_size=4, num_channels=1, num_labels=10, **SIZES)),
        "basic": ResNetForImageClassification(ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 12], depths=[2, 1], layer_type="basic", num_channels=1, num_labels=10)),
        "bottleneck": ResNetForImageClassification(ResNetConfig(
            embedding_size=8, hidden_sizes=[16, 32], depths=[1, 2], layer_type="bottleneck", num_channels=1,
            num_labels=10, downsample_in_bottleneck=True, downsample_in_first_stage=True)),
    }


def images(side=8):
    return torch.randn((5, 1, side, side), generator=torch.Generator().manual_seed(4))


def outputs(model, **others):
    with torch.no_grad():
        if others:
            found = model.eval()(**others)
        else:
            side = model.config.image_size if model.config.model_type == "vit" else 8
            found = model.eval()(tokens() if hasattr(model.config, "vocab_size") else images(side))
    return (found.logits if "logits" in found else found.pooler_output).tolist()


def write():
    torch.manual_seed(11)
    (folder / "train.txt").write_text(text(60, 5))
    rows = [f'"{line}",{["calm", "rough", "wild"][at % 3]}' for at, line in enumerate(text(30, 4).splitlines())]
    (folder / "train.csv").write_text("\n".join(["review,kind", *rows]) + "\n")
    tokenizer = Tokenizer(models.WordLevel({name: at for at, name in enumerate(NAMES)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_special_tokens(NAMES[:5])
    for name, model in networks().items():
        with torch.no_grad():
            for parameter in model.parameters():
                # Larger than usual, so that attention is not uniform and every bias counts.
                parameter.add_(torch.randn_like(parameter) * 0.2)
            for key, buffer in model.named_buffers():
                if key.endswith(("running_mean", "running_var")):
                    buffer.add_(torch.rand_like(buffer))
        # Several files for one of them.
        model.save_pretrained(folder / name, max_shard_size="30KB" if name == "kinds" else "5GB")
        if hasattr(model.config, "vocab_size"):
            tokenizer.save(str(folder / name / "tokenizer.json"))
        made = {"tokens": tokens().tolist(), "images": images().tolist(), "outputs": outputs(model)}
        (folder / f"{name}.json").write_text(json.dumps(made))
        if name == "vit":
            # Larger images, for which the table of positions is interpolated.
            made = {"images": images(28).tolist(),
                    "outputs": outputs(model, pixel_values=images(28), interpolate_pos_encoding=True)}
            (folder / "vit_of_28.json").write_text(json.dumps(made))


def judge():
    kinds = {"hidden": AutoModelForMaskedLM, "kinds": AutoModelForSequenceClassification,
             **dict.fromkeys(IMAGES, AutoModelForImageClassification)}
    for place in sorted((folder / "exported").iterdir()):
        if not place.is_dir():
            continue
        model, found = kinds.get(place.name, AutoModelForCausalLM).from_pretrained(place, output_loading_info=True)
        wrong = {key: sorted(names) for key, names in found.items() if names}
        assert not wrong, f"{place.name}: {wrong}"
        if place.name in IMAGES:
            place.with_suffix(".json").write_text(json.dumps({"outputs": outputs(model), "labels": model.config.id2label}))
            continue
        tokenizer = AutoTokenizer.from_pretrained(place)
        made = {"outputs": outputs(model), "labels": model.config.id2label,
                "text": tokenizer("the harbour sleeps")["input_ids"], "padding": tokenizer.pad_token_id}
        place.with_suffix(".json").write_text(json.dumps(made))


judge() if sys.argv[2:] == ["judge"] else write()
