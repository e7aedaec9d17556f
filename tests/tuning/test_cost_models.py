"""Models of costs: what they learn, that they rank, that they are the same for the same data."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from compass_core.errors import UsageError
from compassc.tuning import cost
from compassc.tuning.cost.models import Ridge

MODELS = ["ridge", "auto"] + (["xgboost"] if importlib.util.find_spec("xgboost") else [])
BOUND = cost.names().index("cycles.bound")


def invented(count=60, seed=0, noise=0.0):
    """Programs whose cost is the bound times powers of two features."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 8, (count, len(cost.names())))
    x[:, BOUND] = rng.uniform(8, 20, count)
    x[:, 5] = 3.0  # the same for all
    y = x[:, BOUND] + 0.2 * x[:, 1] - 0.1 * x[:, 12] + 0.5 + noise * rng.normal(size=count)
    return x, np.exp2(y)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_has_seen_nothing_ranks_by_the_bound(name):
    x, _ = invented()
    assert cost.rank(cost.create(name), x) == list(np.argsort(x[:, BOUND], kind="stable"))


@pytest.mark.parametrize("name", MODELS)
def test_models_come_nearer_than_the_bound(name):
    (x, y), (other, right) = invented(), invented(seed=1)
    model = cost.create(name)
    model.fit(x, y)
    wrong = np.abs(np.log2(model.predict(other) / right)).mean()
    untaught = np.abs(np.log2(cost.create(name).predict(other) / right)).mean()
    assert wrong < untaught / 2


def test_ridge_finds_what_is_linear():
    (x, y), (other, right) = invented(300), invented(seed=1)
    model = Ridge()
    model.fit(x, y)
    assert np.allclose(model.predict(other), right, rtol=0.02)
    shares = model.importance()
    assert sorted(shares, key=shares.get)[-2:] == [cost.names()[12], cost.names()[1]]


@pytest.mark.parametrize("name", MODELS)
def test_the_same_data_give_the_same_model(name):
    x, y = invented(noise=0.3)
    models = [cost.create(name, seed=7) for _ in "ab"]
    for model in models:
        model.fit(x[:5], y[:5])  # what was learned before is forgotten
        model.fit(x, y)
    assert np.array_equal(*(m.predict(x) for m in models))
    assert models[0].importance() == models[1].importance()
    assert sum(models[0].importance().values()) == pytest.approx(1)


@pytest.mark.parametrize("name", MODELS)
def test_a_few_programs_teach_nothing_wrong(name):
    x, y = invented(3)
    model = cost.create(name)
    model.fit(x, y)
    assert np.array_equal(model.predict(x), cost.create(name).predict(x))
    model.fit(*invented(4))
    assert np.isfinite(model.predict(x)).all()


@pytest.mark.parametrize("name", MODELS)
def test_what_does_not_belong_together_is_refused(name):
    x, y = invented(8)
    model = cost.create(name)
    for features, costs in ((x[:, :3], y), (x, y[:5]), (x, -y), (x * np.nan, y)):
        with pytest.raises(ValueError, match="features"):
            model.fit(features, costs)


def test_names_of_models_are_checked():
    with pytest.raises(UsageError, match="no cost model 'forest'"):
        cost.create("forest")
