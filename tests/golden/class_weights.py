"""Balanced class weights of scikit-learn: python3 tests/golden/class_weights.py > tests/golden/class_weights.json

Each case has how often each class occurs, and its weights. Written with scikit-learn 1.9.1."""

import json
import sys

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

rng = np.random.default_rng(3)
cases = [[7, 2, 1], [5, 5], [1, 99_999], [3]]
cases += [[int(count) for count in rng.integers(1, 5000, size=size)] for size in (2, 5, 10, 37)]
weights = []
for counts in cases:
    classes = np.arange(len(counts))
    weights.append(list(compute_class_weight("balanced", classes=classes, y=np.repeat(classes, counts))))
json.dump([{"counts": c, "weights": w} for c, w in zip(cases, weights)], sys.stdout)
print()
