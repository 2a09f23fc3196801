"""What the tests share: an experiment on tables that is trained once, and one on pictures."""

from pathlib import Path

import pytest

import burn_runner as br

ROOT = Path(__file__).resolve().parents[2]

IRIS = """\
[experiment]
name = "flowers"
seeds = [1, 2]

[data]
type = "csv"
path = "iris.csv"
target = "species"

[model]
type = "mlp"
hidden = [16]

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 3
batch_size = 16

[sweep.grid]
model.hidden = [[4], [16]]
"""

PICTURES = {
    "experiment": {"name": "pictures"},
    "data": {"type": "digits"},
    "model": {
        "layers": [
            {"type": "conv2d", "out_channels": 4, "kernel_size": 3},
            {"type": "batch_norm"},
            {"type": "relu"},
            {"type": "flatten"},
            {"type": "dropout", "probability": 0.2},
            {"type": "linear", "out_features": 10},
        ]
    },
    "optimizer": {"type": "adam", "learning_rate": 1e-2},
    "train": {"epochs": 1, "batch_size": 64},
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with the data and the experiment file."""
    folder = tmp_path_factory.mktemp("experiments")
    (folder / "iris.csv").write_bytes((ROOT / "experiments/data/iris.csv").read_bytes())
    (folder / "flowers.toml").write_text(IRIS)
    return folder


@pytest.fixture(scope="session")
def experiment(folder):
    return br.Experiment.from_file(folder / "flowers.toml")


@pytest.fixture(scope="session")
def outcome(folder, experiment):
    """The trained experiment."""
    return experiment.run(results=folder / "results", progress=False).check()


@pytest.fixture(scope="session")
def results(outcome):
    return outcome.results


@pytest.fixture(scope="session")
def flowers(results):
    """A network on rows of a table."""
    return results.best().load(device="flex")


@pytest.fixture(scope="session")
def pictures(folder):
    """A network with a convolution, a batch norm and a dropout."""
    experiment = br.Experiment.from_dict(PICTURES, folder=folder)
    outcome = experiment.run(results=folder / "results_of_pictures", progress=False).check()
    return outcome.runs[0].load()
