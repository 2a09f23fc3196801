"""Metrics of scikit-learn for small cases, which a test in crates/network compares runner's with.

Run from the root of the repository, with `pip install numpy scikit-learn`:

    python tests/golden/metrics.py > tests/golden/metrics.json

The cases are random, and degenerate: a class that does not occur, one that is never predicted, constant predictions,
ties, a single class, perfect predictions. scikit-learn has no specificity and no calibration error; they are computed
here from their definitions. Its log loss clips probabilities at 2e-16, which no case here comes near to.
"""

import itertools
import json
import warnings

import numpy as np
import sklearn
from sklearn import metrics as m

warnings.filterwarnings("ignore")
NUM, BETA = 24, 2.0
random = np.random.default_rng(0)


def normal(width):
    """Numbers that 32 bits hold, so that ties are the same there."""
    return np.round(random.normal(size=(NUM, width)) * 128) / 64


def plain(value):
    """Nothing is left of a mean: runner has 0."""
    return 0.0 if np.isnan(value) else float(value)


def softmax(outputs):
    shifted = np.exp(outputs - outputs.max(1, keepdims=True))
    return shifted / shifted.sum(1, keepdims=True)


def specificity(truths, chosen, zero):
    whole = (~truths).sum()
    return (~truths & ~chosen).sum() / whole if whole else zero


def averaged(truth, chosen, average, zero, columns, positive):
    """The metrics of decisions; `columns` are indicators of each class or label."""
    zero_division = {None: 0, "zero": 0, "one": 1, "skip": np.nan}[zero]
    settings = dict(average=average, zero_division=zero_division)
    if average == "binary":
        truth, chosen = (both[:, positive] for both in columns)
    elif zero is None and truth.ndim == 2:
        # Labels that neither occur nor are predicted are left out.
        there = truth.any(0) | chosen.any(0)
        if average != "micro":
            settings["labels"] = np.flatnonzero(there)
    found = {
        "precision": m.precision_score(truth, chosen, **settings),
        "recall": m.recall_score(truth, chosen, **settings),
        "f_beta": m.fbeta_score(truth, chosen, beta=BETA, **settings),
    }
    if zero != "skip":
        found["jaccard"] = m.jaccard_score(truth, chosen, **settings)
    if zero is None:
        truths, decided = (both.astype(bool) for both in columns)
        if average == "binary":
            found["specificity"] = specificity(truths[:, positive], decided[:, positive], 0.0)
        elif average == "micro":
            found["specificity"] = specificity(truths.ravel(), decided.ravel(), 0.0)
        else:
            there = np.flatnonzero(truths.any(0) | decided.any(0))
            each = [specificity(truths[:, at], decided[:, at], 0.0) for at in there]
            weights = truths.sum(0)[there] if average == "weighted" else None
            found["specificity"] = np.average(each, weights=weights)
    return {name: plain(value) for name, value in found.items()}


def ranked(scores, truths, average, positive):
    """Over the classes or labels with both; nothing if there are none."""
    found = {}
    for name, metric, need in (("auroc", m.roc_auc_score, "both"), ("auc_pr", m.average_precision_score, "one")):
        there = [at for at in range(truths.shape[1]) if truths[:, at].any() and (need == "one" or not truths[:, at].all())]
        if average == "binary":
            there = [at for at in there if at == positive]
        each = [metric(truths[:, at], scores[:, at]) for at in there]
        weights = [truths[:, at].sum() for at in there] if average == "weighted" else None
        if each:
            found[name] = float(np.average(each, weights=weights))
    return found


def calibration_error(probabilities, truth):
    confidence, right = probabilities.max(1), probabilities.argmax(1) == truth
    total = 0.0
    for at in range(15):
        inside = (confidence > at / 15) & (confidence <= (at + 1) / 15)
        total += abs(confidence[inside].sum() - right[inside].sum())
    return total / len(truth)


def variants(outputs, kind):
    outputs = outputs.copy()
    if kind == "unpredicted":
        outputs[:, -1] -= 10
    elif kind == "constant":
        outputs[:] = outputs[0]
    elif kind == "ties":
        outputs = np.round(outputs)
    return outputs


def classes(num_classes, kind):
    truth = random.integers(0, num_classes, NUM)
    if kind == "absent":
        truth = truth % (num_classes - 1)
    elif kind == "single":
        truth[:] = 1
    outputs = variants(normal(num_classes), kind)
    if kind == "perfect":
        outputs = np.eye(num_classes)[truth] * 3
    chosen, probabilities = outputs.argmax(1), softmax(outputs)
    columns = [np.eye(num_classes, dtype=int)[both] for both in (truth, chosen)]
    whole = {
        "accuracy": m.accuracy_score(truth, chosen),
        "balanced_accuracy": m.balanced_accuracy_score(truth, chosen),
        "mcc": m.matthews_corrcoef(truth, chosen),
        "cohen_kappa": plain(m.cohen_kappa_score(truth, chosen)),
        "log_loss": m.log_loss(truth, probabilities, labels=range(num_classes)),
        "calibration_error": calibration_error(probabilities, truth),
    }
    if num_classes == 2:
        whole["brier"] = m.brier_score_loss(truth == 1, probabilities[:, 1])
    else:
        whole["brier"] = m.brier_score_loss(truth, probabilities, labels=range(num_classes))
    has_ranks = num_classes == 2 or kind not in ("ties", "perfect")
    return case("classification", outputs, truth, whole, (truth, chosen, columns), probabilities if has_ranks else None)


def labels(num_labels, kind):
    truth = random.integers(0, 2, (NUM, num_labels))
    if kind in ("absent", "single"):
        truth[:, -1] = int(kind == "single")
    outputs = variants(normal(num_labels), kind)
    if kind == "absent":
        # Neither there nor predicted.
        outputs[:, -1] = -abs(outputs[:, -1]) - 1
    if kind == "perfect":
        outputs = truth * 6.0 - 3
    chosen = (outputs > 0).astype(int)
    probabilities = 1 / (1 + np.exp(-outputs))
    each = range(num_labels)
    whole = {
        "hamming_score": 1 - m.hamming_loss(truth, chosen),
        "subset_accuracy": m.accuracy_score(truth, chosen),
        "log_loss": np.mean([m.log_loss(truth[:, at], probabilities[:, at], labels=[0, 1]) for at in each]),
        "brier": np.mean([m.brier_score_loss(truth[:, at], probabilities[:, at], pos_label=1) for at in each]),
    }
    if num_labels == 1:
        # For scikit-learn, one column is a binary problem: a second one that never occurs makes it a multi-label one.
        decisions = (truth, chosen, [truth, chosen])
        return case("multi_label", outputs, truth, whole, decisions, outputs, ("binary",))
    return case("multi_label", outputs, truth, whole, (truth, chosen, [truth, chosen]), outputs)


def case(task, outputs, truth, whole, decisions, scores, averages=("macro", "micro", "weighted", "binary")):
    settings = []
    width = decisions[2][0].shape[1]
    for average, zero in itertools.product(averages, (None, "zero", "one", "skip")):
        positive = (0 if width == 1 else 1) if average == "binary" else None
        found = averaged(*decisions[:2], average, zero, decisions[2], positive)
        if scores is not None and average != "micro":
            found |= ranked(scores, decisions[2][0], average, positive)
        settings.append({"average": average, "zero_division": zero, "positive": positive, "metrics": found})
    return {"task": task, "outputs": outputs.tolist(), "targets": truth.tolist(),
            "metrics": {name: float(value) for name, value in whole.items()}, "settings": settings}


def values(num_values, kind):
    truth = normal(num_values)
    if kind == "single":
        truth[:] = 3.0
    outputs = variants(normal(num_values), kind)
    if kind == "perfect":
        outputs = truth
    units = [[10.0, 500.0], [0.5, -20.0]][:num_values]
    factors, shifts = np.array(units).T
    return {"task": "regression", "outputs": outputs.tolist(), "targets": truth.tolist(), "units": units, "settings": [],
            "metrics": {
                "r2": m.r2_score(truth, outputs),
                "mae": m.mean_absolute_error(truth, outputs),
                "mse": m.mean_squared_error(truth, outputs),
                # Over all values; scikit-learn would average the roots of several targets.
                "rmse": float(np.sqrt(m.mean_squared_error(truth, outputs))),
                "mape": m.mean_absolute_percentage_error(truth * factors + shifts, outputs * factors + shifts),
                "target_mae": m.mean_absolute_error(truth * factors + shifts, outputs * factors + shifts),
                "target_rmse": m.mean_squared_error(truth * factors + shifts, outputs * factors + shifts) ** 0.5,
            }}


kinds = ("random", "absent", "unpredicted", "constant", "ties", "single", "perfect")
cases = [classes(num, kind) for num in (2, 4) for kind in kinds]
cases += [labels(num, kind) for num in (1, 3) for kind in kinds]
cases += [values(num, kind) for num in (1, 2) for kind in ("random", "constant", "single", "perfect")]
print(json.dumps({"scikit-learn": sklearn.__version__, "cases": cases}))
