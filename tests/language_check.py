"""Language models of the library transformers: python3 tests/language_check.py FOLDER

Writes texts, and for each model a folder as on model hubs (NAME/), and what training it with PyTorch in 64 bits gives
(NAME.json): the losses of each step, and the tokens that the trained model continues a prompt with."""

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

torch.manual_seed(7)
folder = Path(sys.argv[1])
STEPS, RATE, LENGTH = 20, 0.01, 16
WORDS = "the harbour sleeps while lanterns burn and täglich tides turn over 語 stones".split()
PROMPT = "the harbour"


def text(num, step):
    return "".join(f"{WORDS[at * step % 13]} {WORDS[at % 7]}, {at % 9}.\n" for at in range(num))


def main():
    train = text(60, 5)
    (folder / "train.txt").write_text(train)
    (folder / "valid.txt").write_text(text(20, 3))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|padding|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        [train], trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet))
    sizes = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, max_position_embeddings=64)
    num = tokenizer.get_vocab_size()
    cases = {
        "tied": (LlamaForCausalLM, LlamaConfig(vocab_size=num, tie_word_embeddings=True, **sizes)),
        # More rows than tokens, positions that are scaled, and weights in several files.
        "scaled": (LlamaForCausalLM, LlamaConfig(
            vocab_size=num + 5, tie_word_embeddings=False, rms_norm_eps=1e-5,
            rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 5000.0}, **sizes)),
        "gpt2": (GPT2LMHeadModel, GPT2Config(
            vocab_size=num, n_embd=32, n_layer=2, n_head=4, n_positions=40,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)),
        "mistral": (MistralForCausalLM, MistralConfig(vocab_size=num, sliding_window=None, **sizes)),
    }
    tokens = tokenizer.encode(train, add_special_tokens=False).ids
    starts = range(0, len(tokens) - LENGTH, LENGTH)
    inputs = torch.tensor([tokens[at : at + LENGTH] for at in starts])
    targets = torch.tensor([tokens[at + 1 : at + LENGTH + 1] for at in starts])
    for name, (kind, config) in cases.items():
        model = kind(config)
        with torch.no_grad():
            for parameter in model.parameters():
                # Larger than usual, so that attention is not uniform.
                parameter.add_(torch.randn_like(parameter) * 0.2)
        model.save_pretrained(folder / name, max_shard_size="30KB" if name == "scaled" else "5GB")
        tokenizer.save(str(folder / name / "tokenizer.json"))
        model = model.double()
        optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
        losses = []
        for _ in range(STEPS):
            logits = model(inputs).logits
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        prompt = torch.tensor([tokenizer.encode(PROMPT, add_special_tokens=False).ids])
        model.eval()
        continued = model.generate(prompt, max_new_tokens=12, do_sample=False, pad_token_id=1, eos_token_id=None)
        made = {"losses": losses, "batch": len(inputs), "tokens": continued[0, prompt.shape[1] :].tolist(),
                "files": sorted(path.name for path in (folder / name).iterdir())}
        (folder / f"{name}.json").write_text(json.dumps(made))


main()
