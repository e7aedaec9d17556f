"""Models that learn costs from features, all with one interface.

What is learned is how far the logarithm of a cost is from that of the bound in the features (`cycles.bound`): a model that
has seen nothing ranks by the bound. The same data and seed give the same model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import UsageError
from compassc.tuning.cost.features import names

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


def create(name: str = "auto", seed: int = 0, fields: Sequence[str] | None = None) -> CostModel:
    """A model by name: `ridge`, `xgboost` (UsageError where the package is not installed), or `auto`, the better one
    of those that can be used. `fields`: the names of its features, where they are not those of programs."""
    columns = tuple(fields) if fields is not None else tuple(names())
    makers: Mapping[str, Callable[[], CostModel]] = {
        "ridge": lambda: Ridge(columns),
        "xgboost": lambda: Trees(seed, columns),
        "auto": lambda: Ridge(columns),
    }
    if name not in makers:
        raise UsageError(
            f"there is no cost model '{name}'", code="tuning-model", help=f"one of {', '.join(sorted(makers))}"
        )
    return makers[name]()


def _checked(features: Array, costs: Array, fields: Sequence[str]) -> tuple[Array, Array]:
    """Features and logarithms of costs; ValueError where they do not belong together."""
    x, y = np.asarray(features, np.float64), np.asarray(costs, np.float64)
    if x.ndim != 2 or x.shape != (len(y), len(fields)):
        raise ValueError(f"{x.shape} features do not go with {y.shape} costs: {len(fields)} features each")
    if not (np.isfinite(x).all() and np.isfinite(y).all() and (y > 0).all()):
        raise ValueError("features are finite and costs positive")
    return x, np.log2(y)


_BOUND = "cycles.bound"


def _bound(x: Array, fields: Sequence[str]) -> Array:
    """The logarithm of the bound of each program; 0 where it is no feature."""
    return np.asarray(x[:, fields.index(_BOUND)]) if _BOUND in fields else np.zeros(len(x))


class Ridge:
    """Linear, with a penalty on squares of weights that is chosen by leaving out each program once."""

    name = "ridge"

    def __init__(self, fields: Sequence[str] | None = None) -> None:
        self._fields = tuple(names() if fields is None else fields)
        count = len(self._fields)
        self._mean, self._scale, self._weights, self._start = np.zeros(count), np.ones(count), np.zeros(count), 0.0

    def fit(self, features: Array, costs: Array) -> None:
        x, y = _checked(features, costs, self._fields)
        self.__init__(self._fields)  # type: ignore[misc]  # forget
        if len(y) < _LEAST:
            return
        rest = y - _bound(x, self._fields)
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
        return np.asarray(np.exp2(_bound(x, self._fields) + np.clip(rest, self._start - 2.0, self._start + 2.0)))

    def importance(self) -> dict[str, float]:
        shares = np.abs(self._weights)
        return _shares(shares, self._fields)


class Trees:
    """Boosted trees of the package xgboost."""

    name = "xgboost"

    def __init__(self, seed: int = 0, fields: Sequence[str] | None = None) -> None:
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
        self._fields = tuple(names() if fields is None else fields)
        self._trees: Any = None

    def fit(self, features: Array, costs: Array) -> None:
        x, y = _checked(features, costs, self._fields)
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
            "base_score": float((y - _bound(x, self._fields)).mean()),
        }
        data = self._package.DMatrix(x, label=y - _bound(x, self._fields), feature_names=list(self._fields))
        self._trees = self._package.train(options, data, num_boost_round=60)

    def predict(self, features: Array) -> Array:
        x = np.asarray(features, np.float64)
        if self._trees is None:
            return np.asarray(np.exp2(_bound(x, self._fields)))
        rest = self._trees.predict(self._package.DMatrix(x, feature_names=list(self._fields)))
        return np.asarray(np.exp2(_bound(x, self._fields) + rest))

    def importance(self) -> dict[str, float]:
        found = self._trees.get_score(importance_type="total_gain") if self._trees is not None else {}
        shares = np.array([float(found.get(n, 0.0)) for n in self._fields])
        return _shares(shares, self._fields)


def _shares(values: Array, fields: Sequence[str]) -> dict[str, float]:
    """Parts of 1; without data all is the bound's."""
    if not values.any() and _BOUND in fields:
        values[fields.index(_BOUND)] = 1.0
    total = float(values.sum()) or 1.0
    return {n: float(v) / total for n, v in zip(fields, values)}
