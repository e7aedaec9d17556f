"""What nodes say of reductions and of networks over time: attributes that functions of operators take as one, with ONNX's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.importers.onnx.interpolation import Resizing
from compassc.importers.onnx.window import Asked
from compassc.importers.values import ModelTensor, Refused


class Reducing(NamedTuple):
    """What a node says of a reduction."""

    keepdims: int = 1
    noop_with_empty_axes: int = 0

    def over(self, x: ModelTensor, axes: Array | None) -> list[int]:
        """The axes that are reduced, counted from the front: all where none are said, but for nodes that then do nothing."""
        listed = [] if axes is None else [x.axis(int(a)) for a in axes.reshape(-1)]
        return sorted(listed) if listed or self.noop_with_empty_axes else list(range(x.rank))


class Function(NamedTuple):
    """A function of gates: an operator of the registry, or AFFINE or SCALED_TANH, with its numbers."""

    operator: str
    numbers: Mapping[str, float]


AFFINE, SCALED_TANH = "affine", "scaled_tanh"
FUNCTIONS: dict[str, tuple[str, Mapping[str, float | None]]] = {
    "affine": (AFFINE, {"alpha": None, "beta": 0.0}),
    "elu": ("elu", {"alpha": 1.0}),
    "hardsigmoid": ("hard_sigmoid", {"alpha": 0.2, "beta": 0.5}),
    "leakyrelu": ("leaky_relu", {"alpha": 0.01}),
    "relu": ("relu", {}),
    "scaledtanh": (SCALED_TANH, {"alpha": None, "beta": None}),
    "sigmoid": ("sigmoid", {}),
    "softplus": ("softplus", {}),
    "softsign": ("softsign", {}),
    "tanh": ("tanh", {}),
    "thresholdedrelu": ("thresholded_relu", {"alpha": 1.0}),
}
"""By the name in ONNX, whose case does not matter: operator, and numbers with their defaults, None where a node has to say them."""
DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
"""Functions of operators over time."""
WAYS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


class Way(NamedTuple):
    """One direction: whether it goes back in time, and its functions."""

    back: bool
    functions: tuple[Function, ...]


class Recurrence(NamedTuple):
    """What a node says of a network over time."""

    hidden_size: int | None = None
    direction: str = "forward"
    activations: Sequence[str] | None = None
    activation_alpha: Sequence[float] = ()
    activation_beta: Sequence[float] = ()
    clip: float | None = None
    layout: int = 0
    input_forget: int = 0
    linear_before_reset: int = 0

    def ways(self, operator: str, state_weights: ModelTensor | Array) -> list[Way]:
        """The directions of an operator whose weights of states are [directions, gates * hidden, hidden]. Refused where these are others
        than the attributes say, and for functions that are not known or have no numbers."""
        ways, _, hidden = state_weights.shape
        if self.hidden_size is not None and self.hidden_size != hidden:
            raise Refused(f"its hidden_size is {self.hidden_size}, its weights have {hidden}")
        wanted = WAYS.get(self.direction)
        if wanted is None or len(wanted) != ways:
            raise Refused(f"its direction is {self.direction}, its weights have {ways}")
        names, many = list(self.activations or DEFAULTS[operator] * len(wanted)), len(DEFAULTS[operator])
        if len(names) != many * len(wanted):
            raise Refused(f"it has {len(names)} activations, {len(wanted)} directions of {many} each need others")
        functions = self._functions(names)
        return [Way(back, tuple(functions[i * many : (i + 1) * many])) for i, back in enumerate(wanted)]

    def _functions(self, names: Sequence[str]) -> list[Function]:
        """The functions by name; those that take numbers get the attributes' in order."""
        given = {"alpha": iter(self.activation_alpha), "beta": iter(self.activation_beta)}
        found = []
        for name in names:
            if name.lower() not in FUNCTIONS:
                raise Refused(f"its activation {name} is not known")
            operator, defaults = FUNCTIONS[name.lower()]
            numbers = {key: next(given[key], default) for key, default in defaults.items()}
            if missing := [key for key, value in numbers.items() if value is None]:
                raise Refused(f"its activation {name} has no {' and no '.join(missing)}, for which ONNX has no default")
            found.append(Function(operator, {key: value for key, value in numbers.items() if value is not None}))
        return found


GROUPS = (Asked, Recurrence, Reducing, Resizing)
"""Attributes that functions of operators take as one."""
