"""BERT of the library transformers as a classifier of texts: python3 tests/bert_check.py FOLDER

Writes reviews (train.csv, valid.csv), a tokenizer and weights (bert/), and what training them with PyTorch in 64 bits
gives (bert.json): the losses of each step, each over all items. Reviews have different lengths, so that padding matters.
"""

import csv
import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch.nn import functional as F
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(3)
folder = Path(sys.argv[1])
STEPS, RATE, LENGTH = 20, 0.003, 12
GOOD, BAD = "fine lovely calm bright".split(), "dull broken cold loud".split()
THINGS = "the room harbour food bed staff was and very".split()


def review(at):
    words = [THINGS[(at * 7 + place * 5) % len(THINGS)] for place in range(2 + at % 12)]
    words.insert(at % (len(words) + 1), (BAD if at % 2 == 0 else GOOD)[at % 4])
    return " ".join(words), "good" if at % 2 else "bad"


def write(name, items):
    with open(folder / name, "w", newline="") as file:
        csv.writer(file).writerows([("review", "kind"), *items])


def main():
    train = [review(at) for at in range(32)]
    write("train.csv", train)
    write("valid.csv", [review(at) for at in range(32, 48)])
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *GOOD, *BAD, *THINGS]
    tokenizer = Tokenizer(models.WordPiece({name: at for at, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_special_tokens(names[:5])
    config = BertConfig(
        vocab_size=len(names), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=20, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=2)
    model = BertForSequenceClassification(config)
    with torch.no_grad():
        for parameter in model.parameters():
            # Larger than usual, so that attention is not uniform.
            parameter.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(folder / "bert")
    tokenizer.save(str(folder / "bert" / "tokenizer.json"))
    tokenizer.enable_truncation(LENGTH)
    tokenizer.enable_padding(length=LENGTH)
    encoded = tokenizer.encode_batch([text for text, _ in train])
    tokens = torch.tensor([found.ids for found in encoded])
    mask = torch.tensor([found.attention_mask for found in encoded])
    targets = torch.tensor([["bad", "good"].index(kind) for _, kind in train])
    model = model.double()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    losses = []
    for _ in range(STEPS):
        loss = F.cross_entropy(model(tokens, attention_mask=mask).logits, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    (folder / "bert.json").write_text(json.dumps({"losses": losses, "batch": len(train), "length": LENGTH}))


main()
