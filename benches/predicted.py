"""The networks whose predictions are measured, by `predict.py` and `python.py`."""

import pathlib
import statistics

import numpy

EXPERIMENTS = pathlib.Path(__file__).resolve().parent.parent / "experiments"
NETWORKS = {
    "MLP": ("mnist_sweep", ["sweep.grid={}", "data.download=false"]),
    "CNN": ("burn_guide_cnn", ["data.download=false"]),
    "LSTM": ("bidirectional_lstm", ["sweep.grid={}"]),
    "transformer": ("transformer_classifier", []),
}
SHORT = ["train.epochs=2", "experiment.seeds=[1]"]


def items(shape, kind, num):
    """Items like those of the data: bytes of images, tokens, or numbers. More items begin with the same ones."""
    random = numpy.random.default_rng(1)
    if "int" in kind:
        return random.integers(2, 5, (num, *shape), dtype=numpy.int32)
    if len(shape) == 3:
        return random.integers(0, 2, (num, *shape), dtype=numpy.uint8)
    return random.standard_normal((num, *shape), dtype=numpy.float32)


def shown(rates):
    middle = statistics.median(rates)
    return f"{middle:,.0f} ({min(rates):,.0f} to {max(rates):,.0f})"
