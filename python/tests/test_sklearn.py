"""Estimators in scikit-learn's own checks."""

import copy
import pickle

import numpy as np
import pytest

import burn_runner as br

pytest.importorskip("sklearn")
from sklearn.datasets import load_iris, make_regression  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.model_selection import cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

from burn_runner.sklearn import RunnerClassifier, RunnerRegressor  # noqa: E402

#: Checks that do not apply, with the reason. None is expected to fail.
SKIPPED = {"check_array_api_input": "needs SCIPY_ARRAY_API, for arrays of other libraries than NumPy"}


@pytest.mark.parametrize("estimator", [RunnerClassifier(), RunnerRegressor()], ids=lambda one: type(one).__name__)
@pytest.mark.filterwarnings("ignore")
def test_estimators_pass_scikit_learns_checks(estimator):
    found = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {one["check_name"]: one["exception"] for one in found if one["status"] == "failed"}
    assert failed == {}
    assert {one["check_name"] for one in found if one["status"] == "skipped"} <= set(SKIPPED)
    assert sum(one["status"] == "passed" for one in found) > 45


def test_classes_keep_their_names_and_estimators_can_be_copied():
    iris = load_iris()
    names = iris.target_names[iris.target]
    classifier = RunnerClassifier(train={"epochs": 30}).fit(iris.data, names)
    assert classifier.score(iris.data, names) > 0.9
    assert classifier.network_.task == "classification" and "valid/loss" in classifier.metrics_
    for again in (pickle.loads(pickle.dumps(classifier)), copy.deepcopy(classifier)):
        assert (again.predict_proba(iris.data) == classifier.predict_proba(iris.data)).all()
        assert list(again.classes_) == ["setosa", "versicolor", "virginica"]


def test_estimators_work_in_pipelines_and_keep_runs(tmp_path):
    iris = load_iris()
    scores = cross_val_score(make_pipeline(StandardScaler(), RunnerClassifier()), iris.data, iris.target, cv=3)
    assert scores.mean() > 0.85
    x, y = make_regression(n_samples=100, n_features=3, n_targets=2, random_state=0)
    regressor = RunnerRegressor(model={"type": "mlp", "hidden": [32]}, results=tmp_path).fit(x, y)
    assert regressor.predict(x).shape == (100, 2) and regressor.score(x, y) > 0.8
    assert len(br.Results(tmp_path).runs(frame="table")) == 1


def test_wrong_settings_have_the_programs_messages():
    iris = load_iris()
    with pytest.raises(br.ExperimentError, match="did you mean `hidden`"):
        RunnerClassifier(model={"type": "mlp", "hiden": [3]}).fit(iris.data, iris.target)
    with pytest.raises(NotFittedError):
        RunnerRegressor().predict(iris.data)
    with pytest.raises(ValueError, match="one class"):
        RunnerClassifier().fit(iris.data, np.zeros(150))
