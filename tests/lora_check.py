"""Adapters of the library peft: python3 tests/lora_check.py make|compare FOLDER

`make` writes data, and for each network its weights (NAME.safetensors, or a folder NAME/ as on model hubs), an adapter
(NAME_adapter/), and what training the adapter with PyTorch and peft in 64 bits gives: the losses of each step
(NAME.json), the trained adapter (NAME_trained/) and the merged weights (NAME_merged.safetensors).

`compare` reads the adapters that runner trained and wrote from the same start (NAME_written/) with peft."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import nn
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

folder = Path(sys.argv[2])
STEPS, RATE, LENGTH = 20, 0.02, 16
WORDS = "the harbour sleeps while lanterns burn and tides turn over stones".split()


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.middle, self.head = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.middle(torch.tanh(self.body(x)))))


def rounded(model):
    """Weights that 32 bits hold too: what differs is training."""
    for parameter in model.parameters():
        parameter.data = parameter.data.float().double()
    return model


MLPS = {
    "plain": LoraConfig(r=2, lora_alpha=4, target_modules=["body", "middle"]),
    # Both matrices drawn, another scale, another rank for one layer, and a head that is trained as a whole.
    "drawn": LoraConfig(
        r=4, lora_alpha=3, use_rslora=True, target_modules=["body", "middle"], rank_pattern={"middle": 2},
        modules_to_save=["head"], init_lora_weights=False),
}
LLAMAS = {
    "attention": LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], init_lora_weights=False),
    "everything": LoraConfig(
        r=2, lora_alpha=2, init_lora_weights=False,
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]),
}


def text(num, step):
    return "".join(f"{WORDS[at * step % 11]} {WORDS[at % 7]}, {at % 9}.\n" for at in range(num))


def rows():
    x = np.round(np.random.default_rng(4).normal(size=(30, 6)) * 64) / 64
    return x, (x[:, 0] + x[:, 3] > 0).astype(int) + (x[:, 1] > 0.5)


def train(name, model, loss_of):
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE, weight_decay=0.01)
    losses = []
    for _ in range(STEPS):
        loss = loss_of(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.save_pretrained(folder / f"{name}_trained")
    merged = model.merge_and_unload().state_dict()
    save_file({key: value.clone().contiguous() for key, value in merged.items()}, folder / f"{name}_merged.safetensors")
    return losses


def base(name):
    """The network without an adapter."""
    if name in MLPS:
        model = Mlp().double()
        model.load_state_dict(load_file(folder / f"{name}.safetensors"))
        return model
    return LlamaForCausalLM.from_pretrained(folder / name).double()


def make():
    torch.manual_seed(6)
    x, y = rows()
    table = [",".join([*map(str, row), "abc"[label]]) for row, label in zip(x, y)]
    (folder / "train.csv").write_text("\n".join(["p,q,r,s,t,u,kind", *table]) + "\n")
    (folder / "valid.csv").write_text("\n".join(["p,q,r,s,t,u,kind", *table[:6]]) + "\n")
    x, y = torch.tensor(x), torch.tensor(y)
    for name, config in MLPS.items():
        model = rounded(Mlp().double())
        save_file({key: value.clone() for key, value in model.state_dict().items()}, folder / f"{name}.safetensors")
        model = rounded(get_peft_model(model, config))
        model.save_pretrained(folder / f"{name}_adapter")
        losses = train(name, model, lambda model: F.cross_entropy(model(x), y))
        (folder / f"{name}.json").write_text(json.dumps({"losses": losses}))

    (folder / "train.txt").write_text(text(60, 5))
    (folder / "valid.txt").write_text(text(20, 3))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        [text(60, 5)], trainers.BpeTrainer(vocab_size=300, special_tokens=["<eos>"], initial_alphabet=alphabet))
    tokens = tokenizer.encode(text(60, 5), add_special_tokens=False).ids
    starts = range(0, len(tokens) - LENGTH, LENGTH)
    inputs = torch.tensor([tokens[at : at + LENGTH] for at in starts])
    targets = torch.tensor([tokens[at + 1 : at + LENGTH + 1] for at in starts])
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=True)
    for name, adapter in LLAMAS.items():
        model = LlamaForCausalLM(config)
        with torch.no_grad():
            for parameter in model.parameters():
                # Larger than usual, so that attention is not uniform.
                parameter.add_(torch.randn_like(parameter) * 0.2)
        model.save_pretrained(folder / name)
        tokenizer.save(str(folder / name / "tokenizer.json"))
        model = rounded(get_peft_model(model.double(), adapter))
        model.save_pretrained(folder / f"{name}_adapter")

        def loss_of(model):
            return F.cross_entropy(model(inputs).logits.flatten(0, 1), targets.flatten())

        losses = train(name, model, loss_of)
        (folder / f"{name}.json").write_text(json.dumps({"losses": losses, "batch": len(inputs)}))

    # What has to be refused.
    def broken(name, change, of="plain"):
        place = folder / f"{name}_broken"
        shutil.copytree(folder / f"{of}_adapter", place)
        tensors = load_file(place / "adapter_model.safetensors")
        config = json.loads((place / "adapter_config.json").read_text())
        change(tensors, config)
        save_file(tensors, place / "adapter_model.safetensors")
        (place / "adapter_config.json").write_text(json.dumps(config))

    a = "base_model.model.body.lora_A.weight"
    broken("missing", lambda tensors, config: tensors.pop(a))
    broken("shape", lambda tensors, config: tensors.update({a: torch.zeros(2, 5)}))
    broken("rank", lambda tensors, config: tensors.update({a: torch.zeros(3, 6)}))
    broken("unknown", lambda tensors, config: tensors.update({a.replace("body", "tail"): torch.zeros(2, 6)}))
    broken("integers", lambda tensors, config: tensors.update({a: torch.zeros(2, 6, dtype=torch.int64)}))
    broken("infinite", lambda tensors, config: tensors.update({a: torch.full((2, 6), float("inf"))}))
    broken("alpha", lambda tensors, config: config.update(lora_alpha=16))
    broken("dora", lambda tensors, config: config.update(use_dora=True))
    broken("kind", lambda tensors, config: config.update(peft_type="LOHA"))
    pickle = folder / "pickle_broken"
    pickle.mkdir()
    shutil.copy(folder / "plain_adapter/adapter_config.json", pickle)
    torch.save(load_file(folder / "plain_adapter/adapter_model.safetensors"), pickle / "adapter_model.bin")


def compare():
    x, _ = rows()
    x = torch.tensor(x)
    for name in [*MLPS, *LLAMAS]:
        written = folder / f"{name}_written"
        ours, theirs = (load_file(place / "adapter_model.safetensors") for place in (written, folder / f"{name}_trained"))
        assert sorted(ours) == sorted(theirs), f"{name}: {sorted(ours)} {sorted(theirs)}"
        most = max((ours[key].double() - theirs[key].double()).abs().max().item() for key in ours)
        model = PeftModel.from_pretrained(base(name), str(written)).double()
        kind = "PeftModelForCausalLM" if name in LLAMAS else "PeftModel"
        assert type(model).__name__ == kind, f"{name}: {type(model)}"
        merged = model.merge_and_unload().state_dict()
        expected = load_file(folder / f"{name}_merged.safetensors")
        apart = max((merged[key].double() - value.double()).abs().max().item() for key, value in expected.items())
        print(f"{name}: {len(ours)} tensors, {most:.1e}, merged {apart:.1e}")
        limit = 1e-4 if name in LLAMAS else 1e-9
        assert most < limit and apart < limit, name


{"make": make, "compare": compare}[sys.argv[1]]()
