"""Language models over blocks of several documents: python3 tests/documents_check.py FOLDER

Writes documents as rows (train.jsonl, valid.jsonl), for each model a folder as on model hubs (NAME/), and the losses
that training it with PyTorch in 64 bits gives (NAME.json), for positions that restart in each document and for those
that continue. The networks are written here: attention has an explicit mask of blocks along the diagonal."""

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

torch.manual_seed(11)
folder = Path(sys.argv[1])
STEPS, RATE, LENGTH, HEADS, SHARED, WIDTH = 20, 0.05, 24, 4, 2, 32
WORDS = "the harbour sleeps while lanterns burn and täglich tides turn over 語 stones".split()
END = "<|endoftext|>"


def documents(num, step):
    """Of very different lengths."""
    one = lambda at: " ".join(WORDS[(at * step + word) % 13] for word in range(1 + at * at % 23))
    return [one(at) for at in range(num)]


def attended(q, k, v, mask):
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return context.transpose(1, 2).flatten(2)


def split(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def llama(w, tokens, mask, positions):
    def norm(x, name):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w[name]

    def rotated(x):
        half = x.shape[-1] // 2
        angles = positions[:, None, :, None] * 10000.0 ** (-torch.arange(half).double() / half)
        first, second = x[..., :half], x[..., half:]
        cos, sin = angles.cos(), angles.sin()
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)

    x = w["model.embed_tokens.weight"][tokens]
    for layer in range(2):
        at = f"model.layers.{layer}."
        linear = lambda x, name: x @ w[f"{at}{name}.weight"].T
        y = norm(x, f"{at}input_layernorm.weight")
        q, k, v = (linear(y, f"self_attn.{name}_proj") for name in "qkv")
        q, k, v = rotated(split(q, HEADS)), rotated(split(k, SHARED)), split(v, SHARED)
        k, v = (each.repeat_interleave(HEADS // SHARED, 1) for each in (k, v))
        x = x + linear(attended(q, k, v, mask), "self_attn.o_proj")
        y = norm(x, f"{at}post_attention_layernorm.weight")
        x = x + linear(F.silu(linear(y, "mlp.gate_proj")) * linear(y, "mlp.up_proj"), "mlp.down_proj")
    return norm(x, "model.norm.weight") @ w["model.embed_tokens.weight"].T


def gpt2(w, tokens, mask, positions):
    def norm(x, name):
        return F.layer_norm(x, (WIDTH,), w[f"{name}.weight"], w[f"{name}.bias"], 1e-5)

    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][positions.long()]
    for layer in range(2):
        at = f"transformer.h.{layer}."
        linear = lambda x, name: x @ w[f"{at}{name}.weight"] + w[f"{at}{name}.bias"]
        q, k, v = (split(each, HEADS) for each in linear(norm(x, f"{at}ln_1"), "attn.c_attn").split(WIDTH, -1))
        x = x + linear(attended(q, k, v, mask), "attn.c_proj")
        x = x + linear(F.gelu(linear(norm(x, f"{at}ln_2"), "mlp.c_fc"), approximate="tanh"), "mlp.c_proj")
    return norm(x, "transformer.ln_f") @ w["transformer.wte.weight"].T


def main():
    train = documents(60, 5)
    for name, rows in {"train": train, "valid": documents(20, 3)}.items():
        lines = (json.dumps({"text": text}) + "\n" for text in rows)
        (folder / f"{name}.jsonl").write_text("".join(lines))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        train, trainers.BpeTrainer(vocab_size=300, special_tokens=[END], initial_alphabet=alphabet))
    num, end = tokenizer.get_vocab_size(), tokenizer.token_to_id(END)
    llama_sizes = dict(hidden_size=WIDTH, intermediate_size=48, num_hidden_layers=2, num_attention_heads=HEADS,
                       num_key_value_heads=SHARED, max_position_embeddings=64, tie_word_embeddings=True)
    gpt2_sizes = dict(n_embd=WIDTH, n_layer=2, n_head=HEADS, n_positions=40, resid_pdrop=0.0, embd_pdrop=0.0,
                      attn_pdrop=0.0)
    stream = [token for text in train for token in tokenizer.encode(text).ids + [end]]
    starts = range(0, len(stream) - LENGTH, LENGTH)
    tokens = torch.tensor([stream[at : at + LENGTH] for at in starts])
    targets = torch.tensor([stream[at + 1 : at + LENGTH + 1] for at in starts])
    targets = torch.where(tokens == end, -100, targets)
    document = (tokens == end).cumsum(1) - (tokens == end).int()
    mask = (document[:, None, :, None] == document[:, None, None, :]).tril()
    places = torch.arange(LENGTH).expand_as(tokens)
    begins = F.pad((document[:, 1:] != document[:, :-1]).int(), (1, 0))
    restarting = places - (places * begins).cummax(1).values
    cases = {
        "llama": (llama, LlamaForCausalLM(LlamaConfig(vocab_size=num, **llama_sizes))),
        "gpt2": (gpt2, GPT2LMHeadModel(GPT2Config(vocab_size=num, **gpt2_sizes))),
    }
    for name, (network, model) in cases.items():
        with torch.no_grad():
            for parameter in model.parameters():
                # Larger than usual, so that attention is not uniform.
                parameter.add_(torch.randn_like(parameter) * 0.2)
        model.save_pretrained(folder / name)
        tokenizer.save(str(folder / name / "tokenizer.json"))
        made = {"batch": len(tokens), "documents": int(document.max()) + 1}
        for positions, counted in {"restart": restarting, "continue": places}.items():
            weights = {key: value.detach().double().requires_grad_() for key, value in model.named_parameters()}
            optimizer = torch.optim.SGD(weights.values(), lr=RATE, momentum=0.9)
            losses = []
            for _ in range(STEPS):
                logits = network(weights, tokens, mask, counted.double())
                each = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
                loss = (each.sum(1) / (targets >= 0).sum(1).clamp(min=1)).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            made[positions] = losses
        (folder / f"{name}.json").write_text(json.dumps(made))


main()
