"""Columns of PyTorch and deformable convolutions of torchvision, which a test in crates/network compares runner's with.

Run from the root of the repository, with `pip install torch torchvision`:

    python tests/golden/windows.py > tests/golden/windows.json

Inputs and weights are formulas in float64; gradients are those of the sum of squares of the output.
"""

import json
import math
import sys

# The library looks for a module `pytorch`, which is not the script beside this one.
sys.path.pop(0)

import torch
import torchvision
from torch.nn import functional as F
from torchvision.ops import deform_conv2d

torch.set_default_dtype(torch.float64)


def formula(number, shape):
    at = torch.arange(math.prod(shape), dtype=torch.float64)
    scale = 1.7 if number == 1 else 1.0
    return (scale * torch.sin(1.0 + 0.5 * number + 0.37 * at)).reshape(shape).requires_grad_()


def case(settings, output, inputs):
    gradients = torch.autograd.grad((output * output).sum(), inputs)
    return {"settings": settings, "shapes": [list(x.shape) for x in inputs], "output": output.flatten().tolist(),
            "gradients": [gradient.flatten().tolist() for gradient in gradients]}


def columns(settings, shape, **keys):
    x = formula(0, shape)
    return case(f"{{ type = 'unfold', {settings} }}", F.unfold(x, **keys), [x])


def deformed(settings, shape, outputs, kernel, groups=1, offset_groups=1, weighted=False, **keys):
    x, taps = formula(0, shape), kernel[0] * kernel[1]
    sides = F.conv2d(x[:, :1], torch.zeros(1, 1, *kernel), **keys).shape[2:]
    offsets = formula(1, (shape[0], 2 * offset_groups * taps, *sides))
    weights = formula(2, (shape[0], offset_groups * taps, *sides)) if weighted else None
    weight, bias = formula(3, (outputs, shape[1] // groups, *kernel)), formula(4, (outputs,))
    output = deform_conv2d(x, offsets, weight, bias, mask=weights, **keys)
    # Planned over other images, whose offsets come from a convolution with the same window.
    window = settings.replace(f"groups = {groups}, ", "")
    text = f"{{ type = 'conv2d', name = 'o', out_channels = {2 * offset_groups * taps}, {window} }}, "
    names = "'x', 'o'"
    if weighted:
        text += f"{{ type = 'conv2d', name = 'w', inputs = ['x'], out_channels = {offset_groups * taps}, {window} }}, "
        names += ", 'w'"
    text += f"{{ type = 'deform_conv2d', out_channels = {outputs}, {settings}, inputs = [{names}] }}"
    return case(text, output, [x, offsets, weight, bias] + ([weights] if weighted else []))


CASES = [
    columns("kernel_size = 2", (2, 3, 4, 5), kernel_size=2),
    columns("kernel_size = [3, 2], stride = [1, 2], dilation = [2, 1], padding = [2, 1]", (2, 3, 5, 6),
            kernel_size=(3, 2), stride=(1, 2), dilation=(2, 1), padding=(2, 1)),
    deformed("kernel_size = 3, padding = 1", (2, 4, 5, 6), 3, (3, 3), padding=1),
    deformed("kernel_size = 3, padding = 1", (2, 4, 5, 6), 3, (3, 3), weighted=True, padding=1),
    deformed("groups = 2, kernel_size = [2, 3], stride = [2, 1], dilation = [1, 2], padding = [0, 2]", (2, 4, 6, 5), 6,
             (2, 3), groups=2, offset_groups=2, weighted=True, stride=(2, 1), dilation=(1, 2), padding=(0, 2)),
    deformed("kernel_size = 1", (1, 4, 3, 4), 2, (1, 1), offset_groups=4),
]
print(json.dumps({"torch": torch.__version__, "torchvision": torchvision.__version__, "cases": CASES}))
