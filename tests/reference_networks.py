"""Networks of torchvision and networks as in the papers, which presets are compared with: the layers of both have the same order."""

from functools import partial

import torch
from torch import nn
from torchvision import models
from torchvision.models.convnext import CNBlockConfig, ConvNeXt


def double(before, channels):
    return nn.Sequential(
        nn.Conv2d(before, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
        nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
    )


class Level(nn.Module):
    """Two convolutions, the levels below on half the size, and two convolutions over both."""

    def __init__(self, before, channels, below):
        super().__init__()
        self.down, self.below = double(before, channels), None
        if below > 0:
            self.below = Level(channels, 2 * channels, below - 1)
            self.up = nn.ConvTranspose2d(2 * channels, channels, 2, stride=2)
            self.both = double(2 * channels, channels)

    def forward(self, x):
        x = self.down(x)
        if self.below is None:
            return x
        wide = self.up(self.below(nn.functional.max_pool2d(x, 2)))
        return self.both(torch.cat((x, wide), dim=1))


class Temporal(nn.Module):
    """A residual block of two causal convolutions."""

    def __init__(self, before, channels, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.a = nn.Conv1d(before, channels, 3, dilation=dilation)
        self.b = nn.Conv1d(channels, channels, 3, dilation=dilation)
        self.shortcut = nn.Conv1d(before, channels, 1) if before != channels else nn.Identity()

    def forward(self, x):
        causal = partial(nn.functional.pad, pad=(self.pad, 0))
        inner = torch.relu(self.b(causal(torch.relu(self.a(causal(x))))))
        return torch.relu(inner + self.shortcut(x))


class Tcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Temporal(2, 6, 1), Temporal(6, 6, 2), Temporal(6, 6, 4))
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        return self.head(self.blocks(x.transpose(1, 2))[:, :, -1])


class Inception(nn.Module):
    def __init__(self, before):
        super().__init__()
        self.narrow = nn.Conv1d(before, 4, 1, bias=False)
        self.long, self.medium, self.short = (
            nn.Conv1d(4, 4, size, padding="same", bias=False) for size in (12, 6, 3))
        self.pooled = nn.Conv1d(before, 4, 1, bias=False)
        self.norm = nn.BatchNorm1d(16)

    def forward(self, x):
        narrow = self.narrow(x)
        pooled = self.pooled(nn.functional.max_pool1d(x, 3, 1, 1))
        branches = (self.long(narrow), self.medium(narrow), self.short(narrow), pooled)
        return torch.relu(self.norm(torch.cat(branches, dim=1)))


class Inceptions(nn.Module):
    def __init__(self, before):
        super().__init__()
        self.inner = nn.Sequential(Inception(before), Inception(16), Inception(16))
        self.shortcut = nn.Sequential(nn.Conv1d(before, 16, 1, bias=False), nn.BatchNorm1d(16))

    def forward(self, x):
        return torch.relu(self.inner(x) + self.shortcut(x))


class InceptionTime(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Inceptions(2), Inceptions(16))
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.blocks(x.transpose(1, 2)).mean(2))


class Oscillators(nn.Module):
    """D-LinOSS as in the paper: complex states, and the matrix of a step times the state before."""

    def __init__(self, features, size):
        super().__init__()
        self.time_step, self.damping, self.stiffness = (nn.Parameter(torch.zeros(size)) for _ in range(3))
        self.into, self.out = nn.Parameter(torch.zeros(features, 2 * size)), nn.Parameter(torch.zeros(2 * size, features))
        self.skip = nn.Parameter(torch.zeros(features))

    def forward(self, u):
        size = len(self.damping)
        dt, g = torch.sigmoid(self.time_step), torch.relu(self.damping)
        ends = [(2 + dt * g + sign * torch.sqrt(1 + dt * g)) / torch.clamp(dt**2, min=1e-6) for sign in (-2, 2)]
        a = ends[0] + torch.relu(self.stiffness - ends[0]) - torch.relu(self.stiffness - ends[1])
        s = 1 + dt * g
        step = torch.stack((torch.stack((1 / s, -dt / s * a)), torch.stack((dt / s, 1 - dt**2 / s * a))))
        b = torch.complex(self.into[:, :size], self.into[:, size:])
        c = torch.complex(self.out[:size], -self.out[size:])
        driven = u.to(b.dtype) @ b
        state, outputs = torch.zeros(2, len(u), size, dtype=b.dtype), []
        for at in range(u.shape[1]):
            state = torch.einsum("xyp,ybp->xbp", step.to(b.dtype), state)
            state = state + torch.stack((dt / s, dt**2 / s))[:, None] * driven[:, at]
            outputs.append((state[1] @ c).real + self.skip * u[:, at])
        return torch.stack(outputs, dim=1)


class Oscillating(nn.Module):
    def __init__(self, features, size):
        super().__init__()
        self.norm = nn.BatchNorm1d(features, affine=False)
        self.oscillators = Oscillators(features, size)
        self.both = nn.Linear(features, 2 * features)

    def forward(self, x):
        normed = self.norm(x.transpose(1, 2)).transpose(1, 2)
        hidden = nn.functional.gelu(self.oscillators(normed), approximate="tanh")
        return x + nn.functional.glu(self.both(hidden))


class Dlinoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.blocks = nn.Linear(2, 6), nn.Sequential(Oscillating(6, 5), Oscillating(6, 5))
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        return self.head(self.blocks(self.first(x)).mean(1))


class Reglu(nn.Module):
    def __init__(self, features, inner):
        super().__init__()
        self.both, self.out = nn.Linear(features, 2 * inner), nn.Linear(inner, features)

    def forward(self, x):
        a, b = self.both(x).chunk(2, dim=-1)
        return self.out(a * torch.relu(b))


class FeatureLayer(nn.Module):
    """Attention between the tokens of features; there is no norm before that of the first layer."""

    def __init__(self, features, is_first):
        super().__init__()
        self.norm = nn.Identity() if is_first else nn.LayerNorm(features)
        self.attention = nn.MultiheadAttention(features, 2, batch_first=True)
        self.inner = nn.Sequential(nn.LayerNorm(features), Reglu(features, 12))

    def forward(self, x):
        normed = self.norm(x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        return x + self.inner(x)


class FtTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, 16))
        self.directions, self.offsets = (nn.Parameter(torch.zeros(5, 16)) for _ in range(2))
        self.layers = nn.Sequential(*(FeatureLayer(16, at == 0) for at in range(3)))
        self.head = nn.Sequential(nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, x):
        tokens = x[:, :, None] * self.directions + self.offsets
        tokens = torch.cat((self.token.expand(len(x), 1, 16), tokens), dim=1)
        return self.head(self.layers(tokens)[:, 0])


class MambaBlock(nn.Module):
    """A selective state space (Gu and Dao, 2023), step by step."""

    def __init__(self, width, inner, states, rank):
        super().__init__()
        self.sizes = (rank, states, states)
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.both = nn.Linear(width, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, 4, groups=inner, padding=3)
        self.chosen, self.step = nn.Linear(inner, rank + 2 * states, bias=False), nn.Linear(rank, inner)
        # Lists, since parameters of the module itself come before those of its parts.
        self.log_a = nn.ParameterList([torch.zeros(inner, states)])
        self.skip = nn.ParameterList([torch.ones(inner)])
        self.out = nn.Linear(inner, width, bias=False)

    def forward(self, items):
        x, gate = self.both(self.norm(items)).chunk(2, dim=-1)
        x = nn.functional.silu(self.conv(x.transpose(1, 2))[:, :, : x.shape[1]].transpose(1, 2))
        step, b, c = self.chosen(x).split(self.sizes, dim=-1)
        step, a = nn.functional.softplus(self.step(step)), -self.log_a[0].exp()
        state, seen = 0.0, []
        for at in range(x.shape[1]):
            drive = (step[:, at] * x[:, at])[:, :, None] * b[:, at, None, :]
            state = (step[:, at, :, None] * a).exp() * state + drive
            seen.append((state * c[:, at, None, :]).sum(-1))
        y = torch.stack(seen, dim=1) + self.skip[0] * x
        return items + self.out(y * nn.functional.silu(gate))


class Mamba(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.blocks = nn.Linear(2, 8), nn.Sequential(*(MambaBlock(8, 16, 4, 2) for _ in range(2)))
        self.norm, self.head = nn.RMSNorm(8, eps=1e-5), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.first(x))).mean(1))


class MinGru(nn.Module):
    """Gates that do not depend on the state (Feng et al., 2024), step by step."""

    def __init__(self, features, width):
        super().__init__()
        self.gate, self.candidate = nn.Linear(features, width), nn.Linear(features, width)

    def forward(self, x):
        gate, candidate = torch.sigmoid(self.gate(x)), self.candidate(x)
        state, states = 0.0, []
        for at in range(x.shape[1]):
            state = (1 - gate[:, at]) * state + gate[:, at] * candidate[:, at]
            states.append(state)
        return torch.stack(states, dim=1)


class MinGrus(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = nn.Sequential(MinGru(2, 12), MinGru(12, 8)), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.layers(x)[:, -1])


class Vae(nn.Module):
    """Outside of training: the code is its mean."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(36, 24), nn.ReLU(), nn.Linear(24, 6))
        self.decoder = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 36), nn.Unflatten(1, (1, 6, 6)))

    def forward(self, x):
        mean, _ = self.encoder(x).chunk(2, dim=1)
        return self.decoder(mean)


def eegnet():
    conv = partial(nn.Conv2d, bias=False)
    return nn.Sequential(
        nn.Unflatten(1, (1, 5)),
        conv(1, 8, (1, 16), padding="same"), nn.BatchNorm2d(8, eps=1e-3),
        conv(8, 16, (5, 1), groups=8), nn.BatchNorm2d(16, eps=1e-3), nn.ELU(), nn.AvgPool2d((1, 4)),
        conv(16, 16, (1, 16), groups=16, padding="same"), conv(16, 16, 1), nn.BatchNorm2d(16, eps=1e-3), nn.ELU(),
        nn.AvgPool2d((1, 8)), nn.Flatten(), nn.Linear(48, 4),
    )


def convnext():
    sizes = [(8, 16, 3), (16, 32, 3), (32, 64, 9), (64, None, 3)]
    return ConvNeXt([CNBlockConfig(*each) for each in sizes], num_classes=10)


# The network of each preset.
PRESETS = {
    "mobilenet_v2": partial(models.mobilenet_v2, num_classes=10),
    "densenet": partial(models.DenseNet, growth_rate=4, num_init_features=8, num_classes=10),
    "efficientnet_b0": partial(models.efficientnet_b0, num_classes=10),
    "convnext": convnext,
    "vit": partial(models.VisionTransformer, image_size=64, patch_size=16, num_layers=3, num_heads=2, hidden_dim=16,
                   mlp_dim=24, num_classes=10),
    "ft_transformer": FtTransformer,
    "vae": Vae,
    "tcn": Tcn,
    "dlinoss": Dlinoss,
    "inception_time": InceptionTime,
    "eegnet": eegnet,
    "unet": lambda: nn.Sequential(Level(3, 4, 4), nn.Conv2d(4, 5, 1)),
}
NETWORKS = PRESETS | {"mamba": Mamba, "min_gru": MinGrus}


def tensors(network):
    """Without the counters of batch norms."""
    return {name: value for name, value in network.state_dict().items() if "num_batches" not in name}
