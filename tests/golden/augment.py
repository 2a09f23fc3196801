"""Images changed by torchvision, which tests in crates/core compare runner's with.

Run from the root of the repository, with `pip install torch torchvision`:

    python tests/golden/augment.py > tests/golden/augment.json
"""

import json
import sys
from unittest import mock

# The library looks for a module `pytorch`, which is not the script beside this one.
sys.path.pop(0)

import torch
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

torch.manual_seed(3)


def numbers(tensor):
    return [round(value, 7) for value in tensor.flatten().tolist()]


def image(*shape):
    return torch.rand(shape)


def fixed(values):
    """Integers that are drawn one after the other."""
    values = iter(values)
    return lambda *args, **kwargs: torch.tensor([next(values)])


def mixed():
    cases = []
    for shape in ([1, 4, 5], [3, 6, 6], [3, 7, 4]):
        for drawn in (0.0, 0.07, 0.5, 0.81, 1.0):
            one, other = image(*shape), image(*shape)
            batch, labels = torch.stack([other, one]), torch.tensor([0, 1])
            for center in (None, [1, 0], [shape[1] - 1, shape[2] // 2]):
                method = v2.MixUp(num_classes=2) if center is None else v2.CutMix(num_classes=2)
                method._dist = mock.Mock(sample=lambda size: torch.tensor([drawn]))
                drawing = fixed([center[1], center[0]]) if center else torch.randint
                with mock.patch("torch.randint", drawing):
                    images, shares = method(batch, labels)
                cases.append({
                    "shape": shape, "drawn": drawn, "center": center, "kept": shares[1, 1].item(),
                    "image": numbers(one), "other": numbers(other), "mixed": numbers(images[1]),
                })
    return cases


def colors():
    changes = {
        "brightness": (F.adjust_brightness, (0.0, 0.6, 1.7)),
        "contrast": (F.adjust_contrast, (0.0, 0.6, 1.7)),
        "saturation": (F.adjust_saturation, (0.0, 0.6, 1.7)),
        "hue": (F.adjust_hue, (-0.5, -0.13, 0.2, 0.5)),
    }
    cases = []
    for channels in (1, 3):
        images = [image(channels, 4, 5), image(channels, 4, 5).round(), torch.full((channels, 4, 5), 0.25)]
        for name, (change, factors) in changes.items():
            for factor in factors:
                for one in images:
                    cases.append({
                        "change": name, "factor": factor, "len": 20,
                        "image": numbers(one), "changed": numbers(change(one, factor)),
                    })
    return cases


def parts():
    cases = []
    for whole, channels in (([8, 8], 1), ([9, 6], 3), ([5, 12], 2)):
        for size in ([1, 1], [3, 2], [5, 6], [4, 4], whole):
            start = [torch.randint(0, side - part + 1, ()).item() for side, part in zip(whole, size)]
            one, mask = image(channels, *whole), torch.randint(0, 9, (1, *whole))
            resized = [
                F.resized_crop(what, *start, *size, size=whole, interpolation=how)
                for what, how in ((one, F.InterpolationMode.BILINEAR), (mask, F.InterpolationMode.NEAREST))
            ]
            cases.append({
                "whole": whole, "start": start, "size": size, "image": numbers(one), "resized": numbers(resized[0]),
                "mask": mask.flatten().tolist(), "resized_mask": resized[1].flatten().tolist(),
            })
    return cases


def central():
    """The parts of images from which no box of the wanted area can be cut."""
    cases = []
    for whole in ([8, 8], [9, 30], [40, 7], [10, 11]):
        for ratio in ([3 / 4, 4 / 3], [1.0, 1.0], [0.3, 0.5]):
            method = v2.RandomResizedCrop(8, scale=(4.0, 4.0), ratio=ratio)
            box = method.make_params([image(1, *whole)])
            start, size = [box["top"], box["left"]], [box["height"], box["width"]]
            cases.append({"whole": whole, "ratio": ratio, "start": start, "size": size})
    return cases


found = {"mixed": mixed(), "colors": colors(), "parts": parts(), "central": central()}
json.dump(found, sys.stdout, separators=(",", ":"))
print()
