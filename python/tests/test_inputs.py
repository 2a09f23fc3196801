"""Networks with named inputs: rows and frames by column, and raw arrays by input."""

import numpy as np
import pytest

import burn_runner as br

ROWS = 60

FLATS = {
    "experiment": {"name": "flats"},
    "data": {
        "type": "csv",
        "path": "flats.csv",
        "target": "rent",
        "tokens": {"tokenizer": "word", "length": 4},
        "columns": [{"name": "note", "type": "text"}],
        "inputs": [
            {"name": "measures"},
            {"name": "place", "columns": ["town", "kind"], "encode": "embedding"},
            {"name": "text", "columns": ["note"]},
        ],
    },
    "model": {
        "layers": [
            {"type": "embedding", "inputs": ["place"], "embedding_dim": 3},
            {"type": "flatten", "name": "where"},
            {"type": "embedding", "inputs": ["text"], "embedding_dim": 3},
            {"type": "mean", "axis": 0, "name": "meaning"},
            {"type": "concat", "inputs": ["measures", "where", "meaning"], "axis": 0},
            {"type": "linear"},
        ]
    },
    "optimizer": {"type": "adam", "learning_rate": 1e-2},
    "train": {"epochs": 2, "batch_size": 16},
}


def rows(num):
    return [
        {
            "area": float(20 + at),
            "town": "abc"[at % 3],
            "kind": ["old", "new"][at // 2 % 2],
            "note": ["a bright one", "a dark one"][at // 3 % 2],
        }
        for at in range(num)
    ]


@pytest.fixture(scope="module")
def flats(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flats")
    lines = [",".join(map(str, [*row.values(), at % 7 + 0.5])) for at, row in enumerate(rows(ROWS))]
    (folder / "flats.csv").write_text("\n".join(["area,town,kind,note,rent", *lines]) + "\n")
    experiment = br.Experiment.from_dict(FLATS, folder=folder)
    return experiment.run(results=folder / "results", progress=False).check().runs[0].load()


def test_rows_and_frames_are_predicted_by_column(flats):
    import pandas as pd

    by_rows = flats.predict(rows(5)).values
    frame = pd.DataFrame(rows(5))[["note", "kind", "area", "town"]]
    assert np.array_equal(flats.predict(frame).values, by_rows)
    for row, expected in zip(rows(5), by_rows, strict=True):
        assert np.array_equal(flats.predict([row]).values[0], expected)
    with pytest.raises(br.RequestError, match="`town`"):
        flats.predict(pd.DataFrame(rows(5)).drop(columns="town"))
    with pytest.raises(br.RequestError, match="not a category"):
        flats.predict([{**rows(1)[0], "town": "z"}])


def test_raw_arrays_have_the_names_of_inputs(flats):
    x = {
        "measures": np.array([[0.5], [-1.0]]),
        "place": np.array([[1, 5], [3, 6]]),
        "text": np.array([[2, 3, 0, 0], [4, 1, 2, 0]]),
    }
    together = flats(x)
    assert together.shape == (2, 1)
    one = flats({name: array[:1] for name, array in x.items()})
    assert np.array_equal(one, together[:1])
    assert flats.intermediate("where", x=x).shape == (2, 6)
    gradients = flats.grad(x, np.zeros((2, 1)))
    assert gradients.inputs is None
    assert set(gradients.parameters) == {
        "embedding_1.weight", "embedding_2.weight", "linear_1.weight", "linear_1.bias",
    }  # fmt: skip
    for wrong, message in [
        (np.zeros((2, 7)), "dictionary"),
        ({"measures": x["measures"]}, "`place`"),
        ({**x, "text": x["text"][:1]}, "same N"),
        ({**x, "place": np.array([[1, 5], [3, 99]])}, "99 is not an index"),
    ]:
        with pytest.raises(br.RequestError, match=message):
            flats(wrong)
