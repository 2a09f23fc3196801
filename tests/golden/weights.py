"""Linear models with weights of items by scikit-learn, which tests/suite/weights.rs compares runner's with.

Run from the root of the repository, with `pip install scikit-learn`:

    python tests/golden/weights.py > tests/golden/weights.json
"""

import json

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, mean_squared_error

rng = np.random.default_rng(5)
x = np.round(rng.normal(size=(40, 3)) * 64) / 64
weights = np.round(rng.exponential(size=40) * 10) / 7
weights[::9] = 0
y = np.round((x @ [1.5, -2.0, 0.5] + 0.7 * x[:, 0] ** 2 + rng.normal(size=40)) * 64) / 64
kind = (y + rng.normal(size=40) > 0.3).astype(int)
regression = LinearRegression().fit(x, y, sample_weight=weights)
classifier = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000).fit(x, kind, sample_weight=weights)
found, probabilities = regression.predict(x), classifier.predict_proba(x)
print(json.dumps({
    "x": x.tolist(),
    "weights": weights.tolist(),
    "y": y.tolist(),
    "kind": kind.tolist(),
    "regression": {
        "weighted": mean_squared_error(y, found, sample_weight=weights),
        "plain": mean_squared_error(y, found),
        "metric": mean_absolute_error(y, found),
    },
    "classification": {
        "weighted": log_loss(kind, probabilities, sample_weight=weights),
        "plain": log_loss(kind, probabilities),
        "metric": accuracy_score(kind, classifier.predict(x)),
    },
}, separators=(",", ":")))
