"""BERT of the library transformers with a head for hidden tokens: python3 tests/mlm_check.py FOLDER

Writes items of tokens of which some are hidden (train.npz, valid.npz: -1 where nothing is to be predicted), weights
(bert/), and what training them with PyTorch in 64 bits gives (mlm.json): the losses of each step, each over all items.
Each item hides equally many tokens, so that the mean over tokens is the mean over items.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM

torch.manual_seed(5)
folder = Path(sys.argv[1])
STEPS, RATE, LENGTH, TOKENS, HIDDEN, MASK = 20, 0.003, 12, 30, 3, 4


def items(num, first):
    """Rows that count up in steps, with hidden tokens: most behind the mask, one in three random or as it was."""
    rng = np.random.default_rng(first)
    starts, steps = rng.integers(0, 25, (num, 1)), rng.integers(1, 4, (num, 1))
    tokens = 5 + (starts + steps * np.arange(LENGTH)) % (TOKENS - 5)
    targets = np.full_like(tokens, -1)
    for row in range(num):
        for number, at in enumerate(rng.choice(LENGTH, HIDDEN, replace=False)):
            targets[row, at] = tokens[row, at]
            if number < 2:
                tokens[row, at] = MASK
            elif row % 2:
                tokens[row, at] = rng.integers(5, TOKENS)
    # The largest token occurs, so that the vocabulary is whole.
    tokens[0, 0] = targets[0, 0] = TOKENS - 1
    targets[0, 1:] = np.where(np.cumsum(targets[0, 1:] >= 0) < HIDDEN, targets[0, 1:], -1)
    return tokens.astype(np.int64), targets.astype(np.int64)


def main():
    tokens, targets = items(32, 1)
    np.savez(folder / "train.npz", tokens=tokens, target=targets)
    valid = items(16, 2)
    np.savez(folder / "valid.npz", tokens=valid[0], target=valid[1])
    config = BertConfig(
        vocab_size=TOKENS, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=20, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = BertForMaskedLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            # Larger than usual, so that attention is not uniform and the bias of each token counts.
            parameter.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(folder / "bert")
    model = model.double()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    tokens, targets = torch.tensor(tokens), torch.tensor(targets)
    labels = torch.where(targets < 0, -100, targets)
    losses = []
    for _ in range(STEPS):
        loss = model(tokens, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    num = sum(parameter.numel() for parameter in model.parameters())
    (folder / "mlm.json").write_text(json.dumps({"losses": losses, "parameters": num}))


main()
