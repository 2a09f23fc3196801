"""Log probabilities of choices by the library transformers: python3 tests/questions_check.py MODEL QUESTIONS OUT

MODEL is a folder as on model hubs. For each question of the file of JSON lines, writes the log probability of each
choice and its tokens, and over all questions the metrics as lm-evaluation-harness defines them."""

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

LENGTH = 32  # of the items that the model was trained on
model_path, questions_path, out = map(Path, sys.argv[1:])
model = AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.float64).eval()
tokenizer = Tokenizer.from_file(str(model_path / "tokenizer.json"))


def encode(text):
    return tokenizer.encode(text, add_special_tokens=False).ids


def likelihood(context, choice):
    before = encode(context)
    tokens = encode(f"{context} {choice}")
    num = len(tokens) - len(before)
    # Of a longer text the end.
    tokens = tokens[-(LENGTH + 1) :]
    with torch.no_grad():
        logits = model(torch.tensor([tokens[:-1]])).logits[0].log_softmax(-1)
    return sum(logits[at - 1, tokens[at]].item() for at in range(len(tokens) - num, len(tokens))), num


found, right = [], {"acc": 0, "acc_norm": 0, "acc_bytes": 0, "acc_tokens": 0}
for line in questions_path.read_text().splitlines():
    question = json.loads(line)
    each = [likelihood(question["context"], choice) for choice in question["choices"]]
    sizes = {
        "acc": lambda choice, num: 1,
        "acc_norm": lambda choice, num: len(choice),
        "acc_bytes": lambda choice, num: len(choice.encode()),
        "acc_tokens": lambda choice, num: num,
    }
    for name, size in sizes.items():
        scores = [of / size(choice, num) for (of, num), choice in zip(each, question["choices"])]
        right[name] += scores.index(max(scores)) == question["answer"]
    found.append(each)
made = {"choices": found, "metrics": {name: num / len(found) for name, num in right.items()}}
out.write_text(json.dumps(made))
