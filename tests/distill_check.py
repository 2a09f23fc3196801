"""Trains the students of tests/suite/distill.rs with PyTorch in 64 bits: python3 tests/distill_check.py FOLDER prepare|train

`prepare` writes the items, NAME.csv and NAME_valid.csv, and the initial weights of each student, NAME.safetensors. `train`
reads the weights of the teachers that runner trained, NAME_teacher.safetensors, and writes the losses of each step,
NAME.json."""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

torch.manual_seed(6)
torch.set_default_dtype(torch.float64)
folder, what = Path(sys.argv[1]), sys.argv[2]
STEPS, RATE = 20, 0.1


class Teacher(nn.Module):
    """Its statistics and its dropout are those of evaluation."""

    def __init__(self, num):
        super().__init__()
        self.body, self.norm = nn.Linear(6, 16), nn.BatchNorm1d(16)
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(16, num)

    def forward(self, x):
        return self.head(self.drop(torch.tanh(self.norm(self.body(x)))))


class Student(nn.Module):
    def __init__(self, num):
        super().__init__()
        self.inner, self.outer = nn.Linear(6, 4), nn.Linear(4, num)

    def forward(self, x):
        return self.outer(torch.tanh(self.inner(x)))


def of_classes(student, teacher, y):
    weight, t = 0.7, 3.0
    logs = [F.log_softmax(outputs / t, dim=1) for outputs in (student, teacher)]
    distance = t**2 * F.kl_div(*logs, reduction="batchmean", log_target=True)
    return (1 - weight) * F.cross_entropy(student, y) + weight * distance


def of_labels(student, teacher, y):
    weight, t = 0.25, 2.0
    p = torch.sigmoid(teacher / t)
    # The entropy of the teacher does not change the gradient, but the loss.
    distance = F.binary_cross_entropy_with_logits(student / t, p) - F.binary_cross_entropy(p, p)
    return (1 - weight) * F.binary_cross_entropy_with_logits(student, y) + weight * t**2 * distance


def of_values(student, teacher, y):
    weight = 0.5
    return (1 - weight) * F.smooth_l1_loss(student, y, beta=0.5) + weight * F.mse_loss(student, teacher)


# Values and weights that 32 bits hold too: what differs is training.
x = np.round(np.random.default_rng(4).normal(size=(30, 6)) * 64) / 64
kinds = (x[:, 0] + x[:, 3] > 0).astype(int) + (x[:, 1] > 0.5)
labels = np.stack([x[:, 0] > x[:, 1], x[:, 2] + x[:, 4] > 0.2], axis=1)
values = np.stack([x[:, 0] * 2 + x[:, 1], x[:, 2] - x[:, 4]], axis=1)
CASES = {
    "classes": (["kind"], [["abc"[kind]] for kind in kinds], torch.tensor(kinds), 3, of_classes),
    "labels": (["m", "n"], labels.astype(int), torch.tensor(labels.astype(float)), 2, of_labels),
    "values": (["m", "n"], values, torch.tensor(values), 2, of_values),
}

for name, (columns, targets, y, num, loss_of) in CASES.items():
    student = Student(num)
    if what == "prepare":
        head = ",".join(["p,q,r,s,t,u", *columns])
        rows = [",".join(map(str, [*row, *target])) for row, target in zip(x, targets)]
        (folder / f"{name}.csv").write_text("\n".join([head, *rows]) + "\n")
        (folder / f"{name}_valid.csv").write_text("\n".join([head, *rows[:6]]) + "\n")
        save_file({key: value.float() for key, value in student.state_dict().items()}, folder / f"{name}.safetensors")
        continue
    teacher = Teacher(num)
    teacher.load_state_dict(load_file(folder / f"{name}_teacher.safetensors"), strict=False)
    teacher.eval()
    weights = load_file(folder / f"{name}.safetensors")
    student.load_state_dict({key: value.double() for key, value in weights.items()})
    # Not Adam, whose updates amplify the rounding of gradients that are nearly 0.
    optimizer = torch.optim.SGD(student.parameters(), lr=RATE, momentum=0.9)
    inputs, losses = torch.tensor(x), []
    with torch.no_grad():
        lessons = teacher(inputs)
    for _ in range(STEPS):
        loss = loss_of(student(inputs), lessons, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    (folder / f"{name}.json").write_text(json.dumps(losses))
