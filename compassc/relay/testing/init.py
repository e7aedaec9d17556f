"""Values for the parameters of networks, by what their names end with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compass_runtime.ndarray import NDArray
from compassc.ir.errors import ExpressionError
from compassc.relay.expr import Expr, Function
from compassc.relay.module import MAIN, IRModule
from compassc.relay.passes import infer_type
from compassc.relay.types import TensorType

CONSTANTS = {"bias": 0, "beta": 0, "mean": 0, "gamma": 1, "var": 1}
"""What parameters are that are no weights, by the end of their names."""
Workload = tuple[IRModule, dict[str, NDArray]]
"""A module, and values for its parameters."""
Initializer = Callable[[str, Array], None]
"""Puts values into the array of a parameter of a name."""


class UnknownParameter(ExpressionError, ValueError):
    """A parameter whose name does not say what it is, or whose shape has no fans."""


def _weight(name: str, array: Array) -> bool:
    """Whether a parameter is a weight; others get their constants."""
    for end, value in CONSTANTS.items():
        if name.endswith(end):
            array[:] = value
            return False
    if not name.endswith("weight"):
        known = ", ".join(["weight", *CONSTANTS])
        raise UnknownParameter(
            f"the name of the parameter '{name}' does not say what it is", f"let it end with {known}"
        )
    return True


class Xavier:
    """Uniform numbers up to sqrt(magnitude / f), or normal ones of that deviation, of a generator of a seed. f is the mean of a
    weight's inputs and outputs (`factor_type`: "avg", "in", "out"), those of windows counted; of a depthwise weight the window."""

    def __init__(
        self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3, seed: int = 0
    ) -> None:
        for given, choices in ((rnd_type, ("uniform", "gaussian")), (factor_type, ("avg", "in", "out"))):
            if given not in choices:
                raise UnknownParameter(f"Xavier does not know '{given}'", f"give one of {', '.join(choices)}")
        self.rnd_type, self.factor_type, self.magnitude = rnd_type, factor_type, magnitude
        self.generator = np.random.default_rng(seed)

    def __call__(self, name: str, array: Array) -> None:
        if not _weight(name, array):
            return
        if array.ndim < 2:
            raise UnknownParameter(
                f"the weight '{name}' of shape {array.shape} has no inputs and outputs", "use Constant"
            )
        window = float(np.prod(array.shape[2:]))
        inputs, outputs = array.shape[1] * window, array.shape[0] * window
        factor = {"avg": (inputs + outputs) / 2, "in": inputs, "out": outputs}[self.factor_type]
        scale = np.sqrt(self.magnitude / (window if "depthwise" in name else factor))
        if self.rnd_type == "uniform":
            array[:] = self.generator.uniform(-scale, scale, array.shape)
        else:
            array[:] = self.generator.normal(0, scale, array.shape)


class Constant:
    """The same number everywhere in weights: 1 over their size, or `value`."""

    def __init__(self, value: float | None = None) -> None:
        self.value = value

    def __call__(self, name: str, array: Array) -> None:
        if _weight(name, array):
            array[:] = 1 / array.size if self.value is None else self.value


def create_workload(net: Expr, initializer: Initializer | None = None, seed: int = 0) -> Workload:
    """The typed module of a function, and values for its parameters but `data`: those of `initializer`, by default
    `Xavier(seed=seed)`. UnknownParameter (a ValueError) for names that end with nothing known."""
    module = infer_type.run(IRModule.from_expr(net))
    main, fill, params = module[MAIN], initializer or Xavier(seed=seed), {}
    assert isinstance(main, Function)
    for v in main.params:
        t = v.checked_type
        if v.name_hint == "data" or not isinstance(t, TensorType):
            continue
        array = np.zeros(t.concrete_shape, t.dtype)
        fill(v.name_hint, array)
        params[v.name_hint] = NDArray(array)
    return module, params
