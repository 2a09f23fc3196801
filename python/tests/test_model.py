"""Trained networks: predictions, raw outputs, weights and gradients."""

import csv
import gc
import io
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import burn_runner as br
from burn_runner import _native
from burn_runner._arrays import argument

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

COLUMNS = ["sepal_length", "sepal_width", "petal_length", "petal_width"]


@pytest.fixture(scope="module")
def frame(folder):
    return pd.read_csv(folder / "iris.csv")


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).random((5, 1, 8, 8), dtype=np.float32)


def test_predictions_are_those_of_the_program(folder, flowers, frame):
    out = subprocess.run(
        [br.program(), "predict", flowers.info["folder"], "--data", folder / "iris.csv"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = list(csv.DictReader(io.StringIO(out)))
    predicted = flowers.predict(frame)
    assert list(predicted.labels) == [row["prediction"] for row in rows]
    assert flowers.names == ["setosa", "versicolor", "virginica"]
    for at, name in enumerate(flowers.names):
        expected = np.array([row[f"probability_{name}"] for row in rows], dtype=np.float32)
        assert (predicted.probabilities[:, at] == expected).all()
    assert (flowers.predict(folder / "iris.csv").probabilities == predicted.probabilities).all()
    assert (np.asarray(predicted) == predicted.probabilities).all()
    assert len(predicted.frame()) == len(predicted) == 150


def test_rows_can_have_many_forms(flowers, frame):
    expected = flowers.predict(frame).probabilities
    shuffled = frame[COLUMNS[::-1]].assign(extra="x")
    forms = [
        shuffled,
        pl.DataFrame(frame.to_dict("list")),
        frame[COLUMNS].to_numpy(),
        np.asfortranarray(frame[COLUMNS].to_numpy()),
        frame[COLUMNS].to_dict("records"),
        frame[COLUMNS].values.tolist(),
        br.Table.from_rows(frame[COLUMNS].to_dict("records")),
        frame[COLUMNS].set_index(np.arange(150)[::-1]),
    ]
    for form in forms:
        assert (flowers.predict(form).probabilities == expected).all(), type(form)
    assert (flowers.predict(frame, batch_size=7).probabilities == expected).all()


def test_rows_that_do_not_fit_are_refused(flowers, frame):
    cases = [
        (frame.drop(columns="petal_width"), "petal_width"),
        (frame.assign(petal_width=np.nan), "no value"),
        (frame.assign(petal_width=np.inf), "inf"),
        (frame.assign(petal_width="wide"), "wide"),
        (frame.iloc[:0], "no rows"),
        (np.zeros((3, 5)), r"\(N, 4\)"),
        (np.zeros((0, 4)), "no items"),
        (np.zeros(4), r"\(N, 4\)"),
        (np.array(["a"]), "numbers are needed|petal"),
        (np.zeros((2, 4), dtype=complex), "complex128"),
        ([], "no items"),
        ({"petal_width": 1.0}, "list"),
        ([[1, 2], [3]], "array"),
        ("nowhere.csv", "nowhere.csv"),
        (object(), "object"),
        ([{"petal_width": 1.0}, 3], "row 2"),
        (pd.concat([frame, frame], axis=1), "several columns"),
        (frame.astype({"petal_width": "Float64"}).assign(petal_width=pd.NA), "no value"),
        (np.ma.masked_array(np.zeros((2, 4)), mask=[[True] * 4] * 2), "masked"),
    ]
    for data, words in cases:
        with pytest.raises(br.RequestError, match=words):
            flowers.predict(data)
    with pytest.raises(br.RequestError, match="batch_size"):
        flowers.predict(frame, batch_size=0)


def test_arrays_are_read_as_their_files(tmp_path, pictures, images):
    for dtype in ("float32", "float64", "float16"):
        np.save(tmp_path / "images.npy", images.astype(dtype))
        of_file = pictures.predict(tmp_path / "images.npy")
        of_memory = pictures.predict(images.astype(dtype))
        assert (of_file.probabilities == of_memory.probabilities).all()
        assert of_file.ids == ["0", "1", "2", "3", "4"] and of_memory.ids is None
    wrong = np.full((2, 1, 8, 8), np.inf)
    np.save(tmp_path / "wrong.npy", wrong)
    for data in (tmp_path / "wrong.npy", wrong):
        with pytest.raises(br.RequestError, match="item 0.*inf"):
            pictures.predict(data)


def test_pictures_can_have_many_forms(pictures, images):
    image = pytest.importorskip("PIL.Image")
    expected = pictures.predict(images)
    assert expected.probabilities.shape == (5, 10)
    assert np.allclose(expected.probabilities.sum(1), 1, atol=1e-5)
    forms = [images[:, 0], images.transpose(0, 2, 3, 1), images.astype("float64"), list(images)]
    for form in forms:
        assert np.allclose(pictures.predict(form).probabilities, expected.probabilities, atol=1e-6)
    files = [image.fromarray((picture[0] * 255).astype("uint8")) for picture in images]
    found = pictures.predict(files)
    assert np.allclose(found.probabilities, expected.probabilities, atol=0.05) and len(found.ids) == 5
    with pytest.raises(br.RequestError, match="shape"):
        pictures.predict(np.zeros((2, 9, 9)))


def test_raw_arrays_can_be_of_any_type_and_layout(flowers, images, pictures):
    x = np.random.default_rng(1).random((6, 4), dtype=np.float32)
    expected = flowers(x)
    assert expected.shape == (6, 3) and expected.dtype == np.float32
    wide = np.zeros((12, 8), dtype=np.float32)
    wide[::2, ::2] = x
    forms = [
        x.astype("float64"),
        np.asfortranarray(x),
        wide[::2, ::2],
        x.astype(">f4"),
        x[::-1][::-1],
        x.tolist(),
        memoryview(x),
    ]
    for form in forms:
        assert (flowers(form) == expected).all()
    assert np.allclose(flowers(x.astype("float16")), expected, atol=1e-2)
    assert (flowers(np.ones((1, 4), dtype=bool)) == flowers(np.ones((1, 4), dtype="int8"))).all()
    assert pictures(images).shape == (5, 10)
    assert np.isnan(flowers(np.full((1, 4), np.nan, dtype=np.float32))).any()


def test_arrays_are_taken_over_dlpack(flowers):
    x = np.random.default_rng(2).random((3, 4), dtype=np.float32)

    class Foreign:
        def __dlpack__(self, **options):
            return x.__dlpack__(**options)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    assert (flowers(Foreign()) == flowers(x)).all()
    assert np.from_dlpack(flowers(x)).shape == (3, 3)


def test_raw_arrays_that_do_not_fit_are_refused(flowers, pictures):
    cases = [np.zeros((2, 5)), np.zeros(4), np.zeros((0, 4)), np.float32(1), np.zeros((2, 4, 1))]
    for x in cases:
        with pytest.raises(br.RequestError, match="shape|items"):
            flowers(x)
    for x in (np.array([["a"] * 4]), np.zeros((1, 4), dtype="datetime64[s]"), None):
        with pytest.raises(br.RequestError):
            flowers(x)
    with pytest.raises(br.RequestError, match="shape"):
        pictures(np.zeros((2, 8, 8)))


def test_weights_are_those_that_compute_the_outputs(flowers):
    x = np.random.default_rng(3).random((6, 4), dtype=np.float32)
    burn = list(flowers.state_dict("burn").values())
    torch = list(flowers.state_dict().values())
    hidden = np.maximum(x @ burn[0] + burn[1], 0)
    assert np.allclose(hidden @ burn[2] + burn[3], flowers(x), atol=1e-5)
    assert [one.shape for one in torch] == [one.T.shape for one in burn]
    with pytest.raises(br.RequestError, match="names"):
        flowers.state_dict("tensorflow")


def test_outputs_of_layers(flowers, pictures, images):
    x = np.random.default_rng(4).random((6, 4), dtype=np.float32)
    names = list(flowers.layers)
    every = flowers.intermediate(*names, x=x)
    assert list(every) == names
    assert (every[names[-1]] == flowers(x)).all()
    for name, shape in pictures.layers.items():
        assert pictures.intermediate(name, x=images).shape == (5, *shape)
    with pytest.raises(br.RequestError, match="no layer `nothing`"):
        flowers.intermediate("nothing", x=x)


def cross_entropy(logits, y):
    logits = logits.astype("float64")
    shifted = logits - logits.max(1, keepdims=True)
    return (np.log(np.exp(shifted).sum(1)) - shifted[np.arange(len(y)), y]).mean()


@pytest.mark.parametrize("which", ["flowers", "pictures"])
def test_gradients_are_finite_differences(which, request, images):
    model = request.getfixturevalue(which)
    rng = np.random.default_rng(5)
    x = images if which == "pictures" else rng.random((5, 4), dtype=np.float32)
    y = rng.integers(0, len(model.names), 5)
    gradients = model.grad(x, y)
    assert gradients.loss == pytest.approx(cross_entropy(model(x), y), rel=1e-5)
    assert gradients.inputs.shape == x.shape
    # Running statistics have none.
    weights = [name for name in model.state_dict("burn") if "running" not in name]
    assert list(gradients.parameters) == weights
    step = 2e-3
    # Rectifiers have kinks; PyTorch's gradients below are equal.
    tolerance = 0.1 if which == "pictures" else 3e-3
    for _ in range(8):
        direction = rng.choice([-1, 1], x.shape).astype("float32")
        there, back = (cross_entropy(model(x + sign * step * direction), y) for sign in (1, -1))
        expected = (gradients.inputs * direction).sum()
        assert (there - back) / (2 * step) == pytest.approx(expected, abs=tolerance, rel=0.05)
    again = model.grad(x, [model.names[at] for at in y])
    assert (again.inputs == gradients.inputs).all()


def test_gradients_of_parameters_are_those_of_the_chain_rule(flowers):
    x, y = np.random.default_rng(6).random((7, 4), dtype=np.float32), np.array([0, 1, 2, 0, 1, 2, 0])
    names, (w1, b1, w2, b2) = zip(*flowers.state_dict("burn").items())
    hidden = np.maximum(x @ w1 + b1, 0)
    exponentials = np.exp(hidden @ w2 + b2)
    outer = (exponentials / exponentials.sum(1, keepdims=True) - np.eye(3)[y]) / len(y)
    inner = (outer @ w2.T) * (hidden > 0)
    expected = (x.T @ inner, inner.sum(0), hidden.T @ outer, outer.sum(0))
    found = flowers.grad(x, y).parameters
    assert list(found) == list(names)
    for name, gradient in zip(names, expected):
        assert np.allclose(found[name], gradient, atol=1e-6), name


def test_gradients_refuse_what_does_not_fit(flowers):
    x = np.zeros((2, 4), dtype=np.float32)
    for y, words in (([0], "targets"), ([0, 3], "class 3"), (["setosa", "rose"], "rose"), ([0.5, "a"], "unknown")):
        with pytest.raises(br.RequestError, match=words):
            flowers.grad(x, y)


def test_modules_of_pytorch_have_the_same_outputs(flowers, pictures, images):
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    x = np.random.default_rng(6).random((6, 4), dtype=np.float32)
    for model, items in ((flowers, x), (pictures, images)):
        module = model.to_torch()
        given = torch.tensor(items, requires_grad=True)
        outputs = module(given)
        assert np.allclose(outputs.detach().numpy(), model(given), atol=1e-5)
        y = np.zeros(len(items), dtype="int64")
        torch.nn.functional.cross_entropy(outputs, torch.tensor(y)).backward()
        gradients = model.grad(items, y)
        assert np.allclose(given.grad.numpy(), gradients.inputs, atol=1e-6)
        norms = sorted(float((one.grad**2).sum()) for one in module.parameters())
        assert np.allclose(norms, sorted((one**2).sum() for one in gradients.parameters.values()), rtol=1e-4)
        # A counter of batches is not a weight.
        names = {name for name in module.state_dict() if not name.endswith("num_batches_tracked")}
        assert names == set(model.state_dict())


def test_models_of_missing_or_damaged_runs_are_refused(tmp_path, results):
    import shutil

    with pytest.raises(br.RequestError, match="does not exist"):
        br.load(tmp_path / "nothing")
    with pytest.raises(br.RequestError, match="is not a device"):
        br.load(results.path, device="abacus")
    with pytest.raises(br.RequestError, match="no weights `newest`"):
        br.load(results.path, weights="newest")
    shutil.copytree(results.best().folder, tmp_path / "runs" / "copy")
    weights = next((tmp_path / "runs" / "copy" / "model").glob("*.bpk"))
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(br.RequestError):
        br.load(tmp_path / "runs" / "copy", weights=weights.stem)


def test_a_model_does_not_need_its_folder(tmp_path, results, frame):
    import shutil

    shutil.copytree(results.best().folder, tmp_path / "runs" / results.best().id)
    model = br.load(tmp_path / "runs" / results.best().id)
    shutil.rmtree(tmp_path / "runs")
    expected = results.best().load().predict(frame).probabilities
    assert (model.predict(frame).probabilities == expected).all()
    assert model.state_dict() and model.grad(frame[COLUMNS].to_numpy(), frame["species"]).loss > 0


def test_a_pickled_model_never_becomes_another_one(tmp_path, results):
    import shutil

    first, second = results.run("hidden=4-s1"), results.run("hidden=4-s2")
    folder = tmp_path / "runs" / first.id
    shutil.copytree(first.folder, folder)
    model = br.load(folder)
    kept = pickle.dumps(model)
    x = np.random.default_rng(9).random((6, 4), dtype=np.float32)
    assert (pickle.loads(kept)(x) == model(x)).all()
    shutil.rmtree(folder)
    shutil.copytree(second.folder, folder)
    with pytest.raises(br.RequestError, match="were replaced since the model was pickled"):
        pickle.loads(kept)


def test_modules_of_pytorch_do_not_need_the_folder(tmp_path, results):
    import shutil

    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    folder = tmp_path / "runs" / "hidden=4-s1"
    shutil.copytree(results.run("hidden=4-s1").folder, folder)
    model = br.load(folder)
    shutil.rmtree(folder)
    shutil.copytree(results.run("hidden=4-s2").folder, folder)
    x = np.random.default_rng(9).random((6, 4), dtype=np.float32)
    assert np.allclose(model.to_torch()(torch.tensor(x)).detach().numpy(), model(x), atol=1e-5)


TEXTS = {
    "data": {
        "type": "csv",
        "path": "texts.csv",
        "target": "kind",
        "columns": [{"name": "text", "type": "text"}],
        "tokens": {"length": 3},
    },
    "model": {
        "layers": [
            {"type": "embedding", "embedding_dim": 4},
            {"type": "flatten"},
            {"type": "linear", "out_features": 2},
        ]
    },
    "optimizer": {"type": "adam", "learning_rate": 1e-2},
    "train": {"epochs": 1, "batch_size": 16},
}


def test_tokens_are_whole_numbers_of_the_vocabulary(tmp_path):
    words = ["calm", "storm", "tide", "stone"]
    rows = [f"{words[at % 4]} {words[at % 3]},{'ab'[at % 2]}\n" for at in range(60)]
    (tmp_path / "texts.csv").write_text("text,kind\n" + "".join(rows))
    outcome = br.Experiment.from_dict(TEXTS, name="texts", folder=tmp_path).run(results=tmp_path, progress=False)
    model = outcome.check().runs[0].load()
    assert model.info["input"] == "text"
    x = np.array([[2, 3, 0], [1, 0, 0]])
    assert (model(x) == model(x.astype("float32"))).all()
    for wrong in (1.5, np.nan, np.inf):
        with pytest.raises(br.RequestError, match="whole numbers"):
            model(np.full((1, 3), wrong))
    for wrong in (9999, -1, 2**32 + 1):
        with pytest.raises(br.RequestError, match=f"no token {wrong}"):
            model(np.full((1, 3), wrong))
    with pytest.raises(br.RequestError, match="whole numbers"):
        model.grad(x[:1], [0.5])
    assert len(model.predict(["calm tide", "storm\nstone"])) == 2
    # None is left out without a word.
    with pytest.raises(br.RequestError, match="`text` has no value"):
        model.predict(["calm tide", "", "storm"])


def test_missing_and_infinite_numbers_in_arrays_of_rows(tmp_path):
    x = np.random.default_rng(10).random((40, 3)).astype("float32")
    x[3, 1] = np.nan
    np.savez(tmp_path / "x.npz", x=x, y=x[:, 0])
    spec = {
        "data": {"type": "npz", "path": "x.npz", "features": ["x"], "target": "y", "missing": "zero"},
        "task": {"type": "regression"},
        "model": {"type": "mlp", "hidden": [4]},
        "optimizer": {"type": "adam", "learning_rate": 1e-2},
        "train": {"epochs": 1, "batch_size": 16},
    }
    outcome = br.Experiment.from_dict(spec, name="arrays", folder=tmp_path).run(results=tmp_path, progress=False)
    model = outcome.check().runs[0].load()
    rows = [{"x": row} for row in x]
    assert np.allclose(model.predict(rows).values, model.predict(x).values)
    with pytest.raises(br.RequestError):
        model.predict([{"x": [np.float32(np.inf), 0.0, 0.0]}])


def test_a_panic_is_an_exception_and_the_model_still_works(flowers, capfd):
    x = np.zeros((1, 4), dtype=np.float32)
    expected = flowers(x)
    held, (address, _, dtype, shape) = argument(x)
    with pytest.raises(br.InternalError, match=r"defect.*report|\.rs:\d+"):
        _native.forward(flowers._handle, (address, 4, dtype, shape), [])
    assert capfd.readouterr() == ("", "")
    assert (flowers(x) == expected).all()


def test_threads_share_a_model(flowers, frame):
    expected = flowers.predict(frame).probabilities
    found = []

    def predict():
        for _ in range(50):
            found.append((flowers.predict(frame).probabilities == expected).all())

    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 100 and all(found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forks_can_use_a_model_of_their_parent(pictures):
    x = np.random.default_rng(7).random((512, 1, 8, 8), dtype=np.float32)
    expected = pictures(x)
    child = os.fork()
    if child == 0:
        import signal

        # A dead lock ends the child instead of the tests.
        signal.alarm(60)
        is_same = (pictures(x) == expected).all() and (pictures.predict(x).probabilities > 0).any()
        os._exit(0 if is_same else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (pictures(x) == expected).all()


def work(model, x):
    return model(x)


def test_spawned_processes_get_a_model_by_its_folder(flowers):
    x = np.random.default_rng(8).random((6, 4), dtype=np.float32)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(work, (flowers, x))
    assert (found == flowers(x)).all()
    assert pickle.loads(pickle.dumps(flowers)).info == flowers.info


def test_another_interpreter_is_refused():
    code = """
        import sys
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        import burn_runner
        it = interpreters.create()
        script = '''
        try:
            import burn_runner
        except ImportError as error:
            print("refused:", error, flush=True)
        '''
        import textwrap
        code = "import sys; sys.path = " + repr(sys.path) + textwrap.dedent(script)
        run = getattr(interpreters, "exec", None) or interpreters.run_string
        run(it, code)
    """
    import textwrap

    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert "refused:" in done.stdout, done


def memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def assert_no_growth(use):
    """Asserts that a call of `use` does not make the process larger by 2 MiB, in one of three rounds."""
    grown = []
    # A leak grows with each round; caches of the allocator and of other threads do not.
    for _ in range(3):
        before = memory()
        use()
        grown.append(memory() - before)
        if grown[-1] < 2 << 20:
            return
    raise AssertionError(f"memory grew by {grown} bytes")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_nothing_leaks_over_10000_predictions(flowers):
    x = np.random.default_rng(9).random((64, 4), dtype=np.float32)
    rows = [dict(zip(COLUMNS, row)) for row in x[:2].tolist()]

    def use(num):
        for _ in range(num):
            flowers(x)
            flowers.predict(rows)
        gc.collect()

    use(1000)
    # A leak of 256 bytes, the smallest result of the two, would be 2.5 MiB.
    assert_no_growth(lambda: use(10_000))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_loading_and_gradients_leak_nothing(results, flowers):
    x, y = np.zeros((64, 4), dtype=np.float32), np.zeros(64, dtype=int)
    folder = results.best().folder

    def use(num):
        for _ in range(num):
            flowers.grad(x, y)
            br.load(folder).state_dict()
        gc.collect()

    use(100)
    assert_no_growth(lambda: use(300))
