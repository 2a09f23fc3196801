"""What PyTorch's optimizers and initializers make, which tests in crates/network compare runner's with: the weights of
a matrix after 300 steps, and the deviation or the bound of initial weights.

Run from the root of the repository, with `pip install torch`:

    python tests/golden/optimizers.py > tests/golden/optimizers.json

First weights and gradients are formulas. Every number is computed in float64 and in float32. PyTorch has neither Adan
nor LAMB; they are written here as in their papers. torch.optim.Muon multiplies matrices in bfloat16 whatever the
precision of the weights; here it does in that of the weights, and `muon_bfloat16` is PyTorch unchanged.
"""

import json
import math

import torch

STEPS, ROWS, COLUMNS = 300, 5, 7
torch.set_num_threads(1)
BFLOAT16 = torch.bfloat16


def first(dtype):
    values = [math.cos(0.5 * at) for at in range(ROWS * COLUMNS)]
    return torch.tensor(values, dtype=torch.float64).reshape(ROWS, COLUMNS).to(dtype)


def gradient(step, dtype):
    values = [math.sin(0.7 * step + 0.37 * at) * 10.0 ** -(at % 4) for at in range(ROWS * COLUMNS)]
    return torch.tensor(values, dtype=torch.float64).reshape(ROWS, COLUMNS).to(dtype)


def trained(make, dtype, is_linear=False):
    """The last weights as [inputs, outputs]; of PyTorch's linear layers, weights are [outputs, inputs]."""
    turn = (lambda x: x.T.contiguous()) if is_linear else (lambda x: x)
    weights = turn(first(dtype)).requires_grad_()
    optimizer = make([weights])
    for step in range(STEPS):
        weights.grad = turn(gradient(step, dtype))
        optimizer.step()
    return turn(weights.detach())


class Adan(torch.optim.Optimizer):
    """Xie et al., 2022, algorithm 1, with the corrections of bias of the authors' code."""

    def __init__(self, parameters, lr, betas=(0.98, 0.92, 0.99), eps=1e-8, weight_decay=0.0, no_prox=False):
        super().__init__(parameters, dict(lr=lr, betas=betas, eps=eps, decay=weight_decay, no_prox=no_prox))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (b1, b2, b3), rate, decay = group["betas"], group["lr"], group["lr"] * group["decay"]
            for p in group["params"]:
                g, s = p.grad, self.state[p]
                if not s:
                    s.update(time=0, m=torch.zeros_like(p), v=torch.zeros_like(p), n=torch.zeros_like(p), last=g)
                s["time"] += 1
                difference = g - s["last"]
                s["m"].lerp_(g, 1 - b1)
                s["v"].lerp_(difference, 1 - b2)
                s["n"].mul_(b3).add_((g + b2 * difference) ** 2, alpha=1 - b3)
                s["last"] = g
                t = s["time"]
                denominator = s["n"].sqrt() / math.sqrt(1 - b3**t) + group["eps"]
                update = (s["m"] / (1 - b1**t) + s["v"] * (b2 / (1 - b2**t))) / denominator
                if group["no_prox"]:
                    p.mul_(1 - decay).sub_(rate * update)
                else:
                    p.sub_(rate * update).div_(1 + decay)


class Lamb(torch.optim.Optimizer):
    """You et al., 2020, algorithm 2, without a bound on the norm of the weights."""

    def __init__(self, parameters, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0):
        super().__init__(parameters, dict(lr=lr, betas=betas, eps=eps, decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                g, s = p.grad, self.state[p]
                if not s:
                    s.update(time=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                s["time"] += 1
                s["m"].lerp_(g, 1 - b1)
                s["v"].mul_(b2).addcmul_(g, g, value=1 - b2)
                m, v = s["m"] / (1 - b1 ** s["time"]), s["v"] / (1 - b2 ** s["time"])
                update = m / (v.sqrt() + group["eps"]) + group["decay"] * p
                p.sub_(group["lr"] * (p.norm() / update.norm()) * update)


o = torch.optim
# name: settings in an experiment file, the same in PyTorch, whether Burn's layout of the matrix is turned
CASES = {
    "sgd": ('type = "sgd", momentum = 0.9, dampening = 0.1, weight_decay = 1e-3',
            lambda p: o.SGD(p, 0.05, momentum=0.9, dampening=0.1, weight_decay=1e-3)),
    "nesterov": ('type = "sgd", momentum = 0.9, nesterov = true', lambda p: o.SGD(p, 0.05, momentum=0.9, nesterov=True)),
    "adam": ('type = "adam"', lambda p: o.Adam(p, 0.05)),
    "adam_penalty": ('type = "adam", beta_1 = 0.8, beta_2 = 0.98, weight_decay = 0.1',
                     lambda p: o.Adam(p, 0.05, betas=(0.8, 0.98), weight_decay=0.1)),
    "amsgrad": ('type = "adam", amsgrad = true', lambda p: o.Adam(p, 0.05, amsgrad=True)),
    "adamw": ('type = "adamw"', lambda p: o.AdamW(p, 0.05, weight_decay=0.01)),
    "adamw_amsgrad": ('type = "adamw", weight_decay = 0.1, amsgrad = true',
                      lambda p: o.AdamW(p, 0.05, weight_decay=0.1, amsgrad=True)),
    "adagrad": ('type = "adagrad", lr_decay = 1e-3', lambda p: o.Adagrad(p, 0.05, lr_decay=1e-3)),
    "rmsprop": ('type = "rmsprop", weight_decay = 1e-3', lambda p: o.RMSprop(p, 0.05, weight_decay=1e-3)),
    "rmsprop_centered": ('type = "rmsprop", centered = true, momentum = 0.5',
                         lambda p: o.RMSprop(p, 0.05, centered=True, momentum=0.5)),
    "adan": ('type = "adan", weight_decay = 1e-2', lambda p: Adan(p, 0.05, weight_decay=1e-2)),
    "adan_no_prox": ('type = "adan", no_prox = true, weight_decay = 1e-2',
                     lambda p: Adan(p, 0.05, weight_decay=1e-2, no_prox=True)),
    "lamb": ('type = "lamb", weight_decay = 1e-2', lambda p: Lamb(p, 0.05, weight_decay=1e-2)),
    "muon": ('type = "muon"', lambda p: o.Muon(p, 0.05, weight_decay=0.0), True),
    "muon_table": ('type = "muon"', lambda p: o.Muon(p, 0.05, weight_decay=0.0)),
    "muon_plain": ('type = "muon", nesterov = false, momentum = 0.8, weight_decay = 0.1',
                   lambda p: o.Muon(p, 0.05, nesterov=False, momentum=0.8, weight_decay=0.1), True),
    "muon_match_rms_adamw": ('type = "muon", adjust_learning_rate = "match_rms_adamw"',
                             lambda p: o.Muon(p, 0.05, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"), True),
}

cases = []
for name, (settings, make, *linear) in CASES.items():
    case = {"name": name, "settings": settings, "is_table": name == "muon_table"}
    for dtype in (torch.float64, torch.float32):
        torch.bfloat16 = dtype if name.startswith("muon") else BFLOAT16
        case[str(dtype).removeprefix("torch.")] = trained(make, dtype, bool(linear)).flatten().tolist()
    torch.bfloat16 = BFLOAT16
    if name == "muon":
        case["bfloat16"] = trained(make, torch.float32, True).flatten().tolist()
    cases.append(case)


def drawn(initialize, shape):
    """The deviation or the bound that PyTorch draws weights with."""
    seen = []
    normal, uniform = torch.Tensor.normal_, torch.Tensor.uniform_
    torch.Tensor.normal_ = lambda self, mean, std, **_: seen.append(std) or self
    torch.Tensor.uniform_ = lambda self, low, high, **_: seen.append(high) or self
    initialize(torch.empty(shape))
    torch.Tensor.normal_, torch.Tensor.uniform_ = normal, uniform
    return seen[0]


i = torch.nn.init
SHAPES = {"linear": (300, 200), "conv": (64, 32, 3, 3)}
initializers = []
for layer, shape in SHAPES.items():
    for nonlinearity in ("linear", "relu", "leaky_relu", "tanh", "sigmoid", "selu"):
        # PyTorch's default slope is 0 here, and 0.01 in its layer and in `calculate_gain`.
        a = 0.01 if nonlinearity == "leaky_relu" else 0
        for fan in ("fan_in", "fan_out"):
            for kind, draw in (("kaiming_normal", i.kaiming_normal_), ("kaiming_uniform", i.kaiming_uniform_)):
                value = drawn(lambda w: draw(w, a=a, mode=fan, nonlinearity=nonlinearity), shape)
                initializers.append({"layer": layer, "type": kind, "nonlinearity": nonlinearity,
                                     "fan_out": fan == "fan_out", "value": value})
        gain = i.calculate_gain(nonlinearity)
        for kind, draw in (("xavier_normal", i.xavier_normal_), ("xavier_uniform", i.xavier_uniform_)):
            value = drawn(lambda w: draw(w, gain=gain), shape)
            initializers.append({"layer": layer, "type": kind, "nonlinearity": nonlinearity, "value": value})

print(json.dumps({"pytorch": torch.__version__, "optimizers": cases, "initializers": initializers}, indent=1))
