"""What `benches/convolution.rs` measures, by PyTorch: an epoch of the small CNN over 8,000 images in batches of 64, and
forward and backward passes of blocks, on the processor in f32. The fastest of several counts; processor time is that of
all threads, divided by two. Usage: convolution_torch.py [threads]"""

import sys
import time

import torch
from torch import nn

THREADS = int(sys.argv[1]) if len(sys.argv) > 1 else 2
torch.set_num_threads(THREADS)
torch.manual_seed(0)


def fastest(work, rounds):
    """Seconds of wall and of the processor, which two cores share."""
    work()
    wall = processor = float("inf")
    for _ in range(rounds):
        started, used = time.perf_counter(), time.process_time()
        work()
        processor = min(processor, (time.process_time() - used) / 2)
        wall = min(wall, time.perf_counter() - started)
    return wall, processor


def say(name, work, rounds):
    wall, processor = fastest(work, rounds)
    print(f"{name}: wall {wall:.4f} s, processor {processor:.4f} s", flush=True)


a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
wall, processor = fastest(lambda: a @ b, 20)
print(
    f"PyTorch {torch.__version__}, {THREADS} threads; matrix product "
    f"{2 * 1024**3 / wall / 1e9:.0f} GFLOP/s by wall, {2 * 1024**3 / processor / 1e9:.0f} by processor"
)

cnn = nn.Sequential(
    nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10),
)  # fmt: skip
optimizer = torch.optim.Adam(cnn.parameters(), lr=1e-3)
loss = nn.CrossEntropyLoss()
images, classes = torch.randn(8000, 1, 28, 28), torch.randint(0, 10, (8000,))


def epoch():
    for places in torch.randperm(8000).split(64):
        optimizer.zero_grad()
        loss(cnn(images[places]), classes[places]).backward()
        optimizer.step()


say("cnn, an epoch", epoch, 2)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = (nn.Conv2d(64, 64, 3, padding=1) for _ in range(2))

    def forward(self, x):
        return torch.relu(self.second(torch.relu(self.first(x))) + x)


def block(name, module):
    x = torch.randn(64, 64, 32, 32, requires_grad=True)

    def step():
        module.zero_grad()
        x.grad = None
        module(x).sum().backward()

    say(name, step, 6)


def conv(size, groups=1):
    return nn.Conv2d(64, 64, size, padding=size // 2, groups=groups)


block("residual block: 3x3, 3x3, sum", Residual())
separable = nn.Sequential(conv(3, 64), nn.ReLU(), conv(1), nn.ReLU())
block("separable block: 3x3 of each channel, 1x1", separable)
block("3x3 alone", conv(3))
block("3x3 of each channel alone", conv(3, 64))
block("1x1 alone", conv(1))
