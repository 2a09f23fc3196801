"""Makes digits_body.safetensors: two convolutions that PyTorch trained on the UCI digits (scikit-learn has them)."""

from collections import OrderedDict

import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(1)
digits = load_digits()
x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
x = nn.functional.interpolate(x, size=(20, 20), mode="bilinear")
y = torch.tensor(digits.target)
network = nn.Sequential(
    OrderedDict(
        conv1=nn.Conv2d(1, 8, 3, padding=1),
        relu1=nn.ReLU(),
        pool1=nn.MaxPool2d(2),
        conv2=nn.Conv2d(8, 16, 3, padding=1),
        relu2=nn.ReLU(),
        pool2=nn.MaxPool2d(2),
        flatten=nn.Flatten(),
        head=nn.Linear(16 * 25, 10),
    )
)
optimizer = torch.optim.Adam(network.parameters(), 3e-3)
for epoch in range(12):
    for batch in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(x[batch]), y[batch]).backward()
        optimizer.step()
print("accuracy on what it was trained on:", (network(x).argmax(1) == y).float().mean().item())
save_file(network.state_dict(), "digits_body.safetensors")
