"""Losses of PyTorch over 20 steps, which the test `golden` in src/train holds runner to.

Run once, from the root of the repository, with `pip install torch numpy`:

    python tests/golden/pytorch.py > tests/golden/losses.json

First weights are a formula, and the batches are the digits inside the binary in their own order, so
nothing but this file and the digits decides the numbers.
"""

import gzip
import json

import numpy
import torch

STEPS, BATCH = 20, 64
torch.set_num_threads(1)

rows = numpy.frombuffer(gzip.open("crates/core/src/data/embedded/digits.bin.gz").read(), numpy.uint8)
rows = rows.reshape(-1, 65)
images = torch.tensor(rows[:, :64].astype(numpy.float32) / 16).reshape(-1, 1, 8, 8)
labels = torch.tensor(rows[:, 64].astype(numpy.int64))


def first_weights(number, shape, fan_in):
    """The number-th parameter, in the layout of Burn: matrices are [inputs, outputs]."""
    at = numpy.arange(numpy.prod(shape), dtype=numpy.float64)
    values = numpy.sin(1.0 + 0.5 * number + 0.37 * at) / numpy.sqrt(fan_in)
    return torch.tensor(values.astype(numpy.float32).reshape(shape))


def initialize(model):
    number = 0
    for module in model:
        if isinstance(module, torch.nn.Linear):
            shape, fan_in = (module.in_features, module.out_features), module.in_features
            weight = first_weights(number, shape, fan_in).T
        elif isinstance(module, torch.nn.Conv2d):
            shape = tuple(module.weight.shape)
            fan_in = shape[1] * shape[2] * shape[3]
            weight = first_weights(number, shape, fan_in)
        else:
            continue
        bias = first_weights(number + 1, tuple(module.bias.shape), fan_in)
        with torch.no_grad():
            module.weight.copy_(weight)
            module.bias.copy_(bias)
        number += 2


def losses(model, make_optimizer):
    initialize(model)
    optimizer = make_optimizer(model.parameters())
    values = []
    for step in range(STEPS):
        batch = slice(step * BATCH, (step + 1) * BATCH)
        loss = torch.nn.functional.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    return values


nn = torch.nn
mlp = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
cnn = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(72, 16), nn.ReLU(), nn.Linear(16, 10),
)
result = {
    "pytorch": torch.__version__,
    "mlp": losses(mlp, lambda p: torch.optim.Adam(p, lr=1e-2)),
    "cnn": losses(cnn, lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)),
}
print(json.dumps(result, indent=2))
