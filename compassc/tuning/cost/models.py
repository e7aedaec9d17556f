"""Models that learn costs from features, all with one interface.

What is learned is how far the logarithm of a cost is from that of the bound in the features (`cycles.bound`): a model that
has seen nothing ranks by the bound. The same data and seed give the same model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from compass_core.errors import UsageError
from compassc.tuning.cost.features import names

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]

_PENALTIES = tuple(10.0**e for e in range(-3, 5))
_LEAST = 4
"""Programs that must have been measured before there is something to learn."""


class CostModel(Protocol):
    """Learns what programs cost. Features are rows of `feature_vector`, costs positive numbers of any unit."""

    name: str

    def fit(self, features: Array, costs: Array) -> None:
        """Learns from all programs that are given, and forgets what it learned before."""

    def predict(self, features: Array) -> Array:
        """The cost of each program."""

    def importance(self) -> dict[str, float]:
        """How much of the predictions' differences comes from each feature; all together are 1."""


def rank(model: CostModel, features: Array) -> list[int]:
    """The numbers of the programs, those with the least predicted cost first."""
    return [int(i) for i in np.argsort(model.predict(features), kind="stable")]


def create(name: str = "auto", seed: int = 0) -> CostModel:
    """A model by name: `ridge`, `xgboost` (UsageError where the package is not installed), or `auto`, the better one
    of those that can be used."""
    makers: Mapping[str, Callable[[], CostModel]] = {"ridge": Ridge, "xgboost": lambda: Trees(seed), "auto": Ridge}
    if name not in makers:
        raise UsageError(
            f"there is no cost model '{name}'", code="tuning-model", help=f"one of {', '.join(sorted(makers))}"
        )
    return makers[name]()


def _checked(features: Array, costs: Array) -> tuple[Array, Array]:
    """Features and logarithms of costs; ValueError where they do not belong together."""
    x, y = np.asarray(features, np.float64), np.asarray(costs, np.float64)
    if x.ndim != 2 or x.shape != (len(y), len(names())):
        raise ValueError(f"{x.shape} features do not go with {y.shape} costs: {len(names())} features each")
    if not (np.isfinite(x).all() and np.isfinite(y).all() and (y > 0).all()):
        raise ValueError("features are finite and costs positive")
    return x, np.log2(y)


def _bound(x: Array) -> Array:
    """The logarithm of the bound of each program."""
    return np.asarray(x[:, names().index("cycles.bound")])


class Ridge:
    """Linear, with a penalty on squares of weights that is chosen by leaving out each program once."""

    name = "ridge"

    def __init__(self) -> None:
        self._mean, self._scale = np.zeros(len(names())), np.ones(len(names()))
        self._weights, self._start = np.zeros(len(names())), 0.0

    def fit(self, features: Array, costs: Array) -> None:
        x, y = _checked(features, costs)
        self.__init__()  # type: ignore[misc]  # forget
        if len(y) < _LEAST:
            return
        rest = y - _bound(x)
        spread = x.std(axis=0)
        self._mean, self._scale = x.mean(axis=0), np.where(spread > 1e-9, spread, 1.0)
        self._start = float(rest.mean())
        z = (x - self._mean) / self._scale * (spread > 1e-9)
        u, s, vt = np.linalg.svd(z, full_matrices=False)
        target = u.T @ (rest - self._start)
        best: tuple[float, Array] | None = None
        for penalty in _PENALTIES:
            shrunk = s**2 / (s**2 + penalty)
            left = np.clip(1.0 - (u**2 @ shrunk) - 1.0 / len(y), 1e-6, None)
            error = float((((rest - self._start - u @ (shrunk * target)) / left) ** 2).mean())
            if best is None or error < best[0]:
                best = error, vt.T @ (target * s / (s**2 + penalty))
        assert best is not None
        self._weights = best[1]

    def predict(self, features: Array) -> Array:
        x = np.asarray(features, np.float64)
        rest = self._start + (x - self._mean) / self._scale @ self._weights
        # Far from what was measured the bound is the better guess.
        return np.asarray(np.exp2(_bound(x) + np.clip(rest, self._start - 2.0, self._start + 2.0)))

    def importance(self) -> dict[str, float]:
        shares = np.abs(self._weights)
        shares[names().index("cycles.bound")] += 1.0 if not shares.any() else 0.0
        return _shares(shares)


class Trees:
    """Boosted trees of the package xgboost."""

    name = "xgboost"

    def __init__(self, seed: int = 0) -> None:
        """UsageError where the package is not installed."""
        try:
            import xgboost
        except ImportError:
            raise UsageError(
                "the cost model 'xgboost' needs the package xgboost",
                code="tuning-model",
                help="pip install 'compassc[tuning]', or use the model 'ridge'",
            ) from None
        self._package, self._seed = xgboost, seed
        self._trees: Any = None

    def fit(self, features: Array, costs: Array) -> None:
        x, y = _checked(features, costs)
        self._trees = None
        if len(y) < _LEAST:
            return
        options = {
            "max_depth": 4,
            "eta": 0.2,
            "min_child_weight": 1,
            "subsample": 1.0,
            "lambda": 1.0,
            "nthread": 1,
            "seed": self._seed,
            "verbosity": 0,
            "base_score": float((y - _bound(x)).mean()),
        }
        data = self._package.DMatrix(x, label=y - _bound(x), feature_names=names())
        self._trees = self._package.train(options, data, num_boost_round=60)

    def predict(self, features: Array) -> Array:
        x = np.asarray(features, np.float64)
        if self._trees is None:
            return np.asarray(np.exp2(_bound(x)))
        rest = self._trees.predict(self._package.DMatrix(x, feature_names=names()))
        return np.asarray(np.exp2(_bound(x) + rest))

    def importance(self) -> dict[str, float]:
        found = self._trees.get_score(importance_type="total_gain") if self._trees is not None else {}
        shares = np.array([float(found.get(n, 0.0)) for n in names()])
        shares[names().index("cycles.bound")] += 1.0 if not shares.any() else 0.0
        return _shares(shares)


def _shares(values: Array) -> dict[str, float]:
    total = float(values.sum())
    return {n: float(v) / total for n, v in zip(names(), values)}
