"""Models of costs by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from compass_core.arrays import Array
from compassc.tuning import cost

if TYPE_CHECKING:
    from .space import DesignSpace


class CostModel:
    """The base of models. Those of here learn in the strategy, from the choices of traces; ones of a program's own have
    `update` and `predict`."""

    def load(self, path: str) -> None:
        """Takes what was saved."""

    def save(self, path: str) -> None:
        """Keeps what was learned."""

    def update(self, context: object, candidates: Sequence[object], results: Sequence[object]) -> None:
        """Learns from measurements."""

    def predict(self, context: object, candidates: Sequence[object]) -> Array:
        """Scores: the greater, the better."""
        return np.zeros(len(candidates))

    def learned(self, space: DesignSpace, seed: int) -> cost.CostModel | None:
        """The model of `compassc.tuning` that ranks the traces of a space; None: they are not ranked."""
        return None

    @staticmethod
    def create(kind: CostModel | str = "xgb", *args: object, **options: object) -> CostModel | None:
        """A model by name; None for `none`. ValueError for others."""
        if not isinstance(kind, str):
            return kind
        kinds: dict[str, Callable[..., CostModel]] = {"xgb": XGBModel, "mlp": XGBModel, "random": RandomModel}
        if kind == "none":
            return None
        if kind not in kinds:
            raise ValueError(f"Unknown CostModel: {kind}")
        return kinds[kind](*args, **options)


PyCostModel = CostModel


class RandomModel(CostModel):
    """Scores at random."""

    def __init__(self, *, seed: int | None = None, path: str | None = None, max_range: int = 100) -> None:
        self._random, self._range = np.random.default_rng(seed), max_range

    def predict(self, context: object, candidates: Sequence[object]) -> Array:
        return self._random.random(len(candidates)) * self._range


class XGBModel(CostModel):
    """Learns from the choices of traces, with ridge regression. Options change nothing."""

    def __init__(self, **options: object) -> None:
        self.options = options

    def learned(self, space: DesignSpace, seed: int) -> cost.CostModel | None:
        return cost.create("auto", seed, space.fields)
