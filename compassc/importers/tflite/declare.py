"""The operators of TFLite, as `compassc.importers.declare` explains it; `since` is always 1.

Keyword parameters are the options, by their names in the schema. The activation at the end of an operator (option
`fused_activation_function`) is added by the walk. An operator sees real numbers, quantised or not; what it does with
integers that stand for them is declared beside it:

    @quantised("CONV_2D")
    def convolution(b: Conversion, call: Call, out: Levels) -> Value | None: ...

None and Refused: there is no layer of integers for this form, and it is computed in floats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from compass_core.dataclass import dataclass
from compassc.importers.declare import Constant, Table
from compassc.importers.onnx.operators.quantised import Levels, Quantised
from compassc.importers.tflite.window import Steps
from compassc.importers.values import Value

if TYPE_CHECKING:
    from compassc.importers.tflite.convert import Conversion

__all__ = [
    "Call",
    "Constant",
    "Handle",
    "Item",
    "Value",
    "as_they_are",
    "moves",
    "operator",
    "operators",
    "quantised",
    "refuse",
    "stateful",
    "tabled",
]


@dataclass(frozen=True)
class Handle:
    """A variable, which is kept from run to run, by its container and name."""

    container: str
    name: str


Item = Value | Quantised | Handle | None
"""A tensor of numbers, one of integers that stand for real numbers, a variable, or an input that is not there."""


@dataclass(frozen=True)
class Call:
    """A node with what it gets: its inputs and options, and the limits of the activation at its end."""

    operator: str
    inputs: list[Any]
    options: Mapping[str, Any] = field(default_factory=dict)

    def pair(self, *at: int) -> list[Quantised] | None:
        """Some of the inputs when all of them are quantised; else None."""
        found = [self.inputs[i] if i < len(self.inputs) else None for i in at]
        known = [q for q in found if isinstance(q, Quantised)]
        return known if len(known) == len(found) else None


Form = Callable[["Conversion", Call, Levels], "Value | None"]
TABLE = Table("compassc.importers.tflite.operators", groups=(Steps,))
QUANTISED: dict[str, Form] = {}
"""Layers of integers by operator; filled by `operators`."""
MOVES: set[str] = set()
"""Operators that take elements as they are: integers in the same steps stay what they are."""
TABLED: set[str] = set()
"""Functions of one element, which are a table for integers of 8 bits."""
STATES: dict[str, frozenset[int]] = {}
"""Inputs of operators that keep values from run to run: each run here begins as after a reset."""
AS_THEY_ARE: set[str] = set()
"""Operators whose functions take items as they are, not the real numbers that these stand for, and give items."""
EFFECTS = ("ASSIGN_VARIABLE", "CALL_ONCE")
"""Operators that do something, whether or not somebody takes what they make."""
operator, refuse, operators = TABLE.operator, TABLE.refuse, TABLE.operators


def quantised(*names: str) -> Callable[[Form], Form]:
    """Declares the function that makes layers of integers."""

    def declare(form: Form) -> Form:
        QUANTISED.update(dict.fromkeys(names, form))
        return form

    return declare


def moves(*names: str) -> None:
    """Declares operators that take elements as they are."""
    MOVES.update(names)


def tabled(*names: str) -> None:
    """Declares functions of one element."""
    TABLED.update(names)


def as_they_are(*names: str) -> None:
    """Declares operators that take items."""
    AS_THEY_ARE.update(names)


def stateful(name: str, *inputs: int) -> None:
    """Declares which inputs of an operator are its states."""
    STATES[name] = frozenset(inputs)
