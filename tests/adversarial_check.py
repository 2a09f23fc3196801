"""Trains the networks of tests/suite/adversarial.rs with PyTorch in 64 bits: python3 tests/adversarial_check.py FOLDER prepare|train

`prepare` writes the items, train.csv and valid.csv, and the initial weights of each network, NAME.safetensors. `train` reads
the random numbers that runner draws, draws.json, and writes NAME.json: the losses of the discriminator and of the generator
at each step, and the metrics of the valid split after the last one. The gradients of the penalty are PyTorch's own, by
double backward."""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from scipy.stats import wasserstein_distance
from torch import nn
from torch.nn import functional as F

torch.manual_seed(3)
torch.set_default_dtype(torch.float64)
folder, what = Path(sys.argv[1]), sys.argv[2]
RATE, MOMENTUM, CLIP, PENALTY = 0.05, 0.5, 0.1, 10.0


class Block(nn.Module):
    def __init__(self, sizes, function, norm=False):
        super().__init__()
        self.first, self.second = nn.Linear(sizes[0], sizes[1]), nn.Linear(sizes[1], sizes[2])
        self.norm = nn.BatchNorm1d(sizes[1]) if norm else nn.Identity()
        self.function = function

    def forward(self, x):
        return self.second(self.function(self.norm(self.first(x))))


class Given(nn.Module):
    """A block that also takes what an item is for, after its input."""

    def __init__(self, block):
        super().__init__()
        self.block = block
        self.condition = None

    def forward(self, x):
        return self.block(torch.cat([x, self.condition], dim=1))


class Pair(nn.Module):
    def __init__(self, function, norm, num_classes):
        super().__init__()
        self.generator = Block((4 + num_classes, 8, 6), torch.tanh, norm)
        self.discriminator = Block((6 + num_classes, 16, 1), function)

    def networks(self, condition):
        """The generator and the discriminator, for some conditions."""
        both = self.generator, self.discriminator
        if condition is None:
            return both
        both = Given(both[0]), Given(both[1])
        for given in both:
            given.condition = condition
        return both


def leaky(x):
    return F.leaky_relu(x, 0.2)


bce = F.binary_cross_entropy_with_logits
# The losses of a score of an item, of a generated one, and of the generator.
GAN = (lambda s: bce(s, torch.ones_like(s)), lambda s: bce(s, torch.zeros_like(s)), lambda s: bce(s, torch.ones_like(s)))
LSGAN = (lambda s: F.mse_loss(s, torch.ones_like(s)) / 2, lambda s: s.square().mean() / 2, lambda s: F.mse_loss(s, torch.ones_like(s)) / 2)
HINGE = (lambda s: F.relu(1 - s).mean(), lambda s: F.relu(1 + s).mean(), lambda s: -s.mean())
WGAN = (lambda s: -s.mean(), lambda s: s.mean(), lambda s: -s.mean())
# Losses, updates of the discriminator for each of the generator, its function, the threshold of its scores, and whether
# the generator has a batch norm.
CASES = {
    "gan": (GAN, 1, torch.tanh, 0.0, True),
    "lsgan": (LSGAN, 2, torch.tanh, 0.5, False),
    "hinge_gan": (HINGE, 1, leaky, 0.0, False),
    "wgan": (WGAN, 2, torch.tanh, None, False),
    "wgan_gp": (WGAN, 3, torch.tanh, None, False),
    "conditional_gan": (GAN, 1, torch.tanh, 0.0, True),
    "conditional_wgan_gp": (WGAN, 2, torch.tanh, None, False),
}
NUM_CLASSES = 3


def conditions(name, num):
    """The class of each item as one-hot rows, in a conditional pair."""
    return torch.eye(NUM_CLASSES)[torch.arange(num) % NUM_CLASSES] if name.startswith("conditional") else None


def penalty(discriminator, real, generated, shares):
    at = (shares * real + (1 - shares) * generated).detach().requires_grad_()
    (slope,) = torch.autograd.grad(discriminator(at).sum(), at, create_graph=True)
    return PENALTY * (slope.norm(dim=1) - 1).square().mean()


def train(name, pair, items, draws):
    (of_real, of_generated, of_fooling), every, *_ = CASES[name]
    sgd = lambda part: torch.optim.SGD(part.parameters(), lr=RATE, momentum=MOMENTUM)
    for_discriminator, for_generator = sgd(pair.discriminator), sgd(pair.generator)
    losses = {"discriminator": [], "generator": []}
    for step, drawn in enumerate(draws["steps"], 1):
        of = lambda key: torch.tensor(drawn[key])
        order, given = of("order"), conditions(name, len(items))
        real = items[order]
        generator, discriminator = pair.networks(None if given is None else given[order])
        generated = generator(of("discriminator")).detach()
        loss = of_real(discriminator(real)) + of_generated(discriminator(generated))
        if name.endswith("wgan_gp"):
            loss = loss + penalty(discriminator, real, generated, of("shares"))
        for_discriminator.zero_grad()
        loss.backward()
        for_discriminator.step()
        losses["discriminator"].append(loss.item())
        if name == "wgan":
            with torch.no_grad():
                for weight in pair.discriminator.parameters():
                    weight.clamp_(-CLIP, CLIP)
        if step % every:
            losses["generator"].append(None)
            continue
        loss = of_fooling(discriminator(generator(of("generator"))))
        for_generator.zero_grad()
        loss.backward()
        for_generator.step()
        losses["generator"].append(loss.item())
    return losses


@torch.no_grad()
def measure(name, pair, items, draws):
    (of_real, of_generated, of_fooling), _, _, threshold, _ = CASES[name]
    pair.eval()
    given = conditions(name, len(items))
    generator, discriminator = pair.networks(given)
    generated = generator(torch.tensor(draws["valid"]))
    real_scores, scores = discriminator(items), discriminator(generated)
    found = {
        "loss": (of_real(real_scores) + of_generated(scores)).item(),
        "generator/loss": of_fooling(scores).item(),
    }
    if threshold is not None:
        found["real_accuracy"] = (real_scores > threshold).double().mean().item()
        found["generated_accuracy"] = (scores <= threshold).double().mean().item()
    if given is not None:
        items, generated = torch.cat([items, given], dim=1), torch.cat([generated, given], dim=1)
    along = np.array(draws["directions" if given is None else "directions_with_classes"]).reshape(-1, items.shape[1])
    assert np.allclose((along**2).sum(axis=1), 1)
    distances = [wasserstein_distance(items.numpy() @ u, generated.numpy() @ u) for u in along]
    found["sliced_wasserstein"] = np.mean(distances)
    return found


def split(seed, num):
    """Values that 32 bits hold too: what differs is training."""
    drawn = np.random.default_rng(seed).normal(size=(num, 6))
    drawn[:, 1] = np.sin(drawn[:, 0])
    return np.round(drawn * 64) / 64


train_items, valid_items = split(4, 30), split(5, 20)
if what == "prepare":
    for file, items in [("train.csv", train_items), ("valid.csv", valid_items)]:
        rows = [",".join(map(str, row)) for row in items]
        (folder / file).write_text("\n".join(["p,q,r,s,t,u", *rows]) + "\n")
        rows = [f"{row},{'abc'[at % NUM_CLASSES]}" for at, row in enumerate(rows)]
        (folder / f"classes_{file}").write_text("\n".join(["p,q,r,s,t,u,class", *rows]) + "\n")
for name, (_, _, function, _, norm) in CASES.items():
    pair = Pair(function, norm, NUM_CLASSES if name.startswith("conditional") else 0)
    path = folder / f"{name}.safetensors"
    if what == "prepare":
        save_file({key: value.float() for key, value in pair.state_dict().items() if value.ndim}, path)
        continue
    weights = {key: value.double() for key, value in load_file(path).items()}
    pair.load_state_dict(weights, strict=False)
    draws = json.loads((folder / "draws.json").read_text())
    losses = train(name, pair, torch.tensor(train_items), draws)
    losses["valid"] = measure(name, pair, torch.tensor(valid_items), draws)
    (folder / f"{name}.json").write_text(json.dumps(losses))
