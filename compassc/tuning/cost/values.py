"""What the numbers of a program may be, at a few sampled points of its loops: enough to count turns and guards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from compassc.ir import exprs as E
from compassc.ir.exprs import Expr, Var

if TYPE_CHECKING:
    Points = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

POINTS = 16
_GOLDEN = 0.6180339887498949
_BINARY: Mapping[str, Callable[[Any, Any], object]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "floordiv": lambda a, b: np.floor(a / _not_zero(b)),
    "div": lambda a, b: np.trunc(a / _not_zero(b)),
    "floormod": lambda a, b: np.mod(a, _not_zero(b)),
    "mod": lambda a, b: np.fmod(a, _not_zero(b)),
    "shl": lambda a, b: a * np.exp2(np.clip(b, 0, 62)),
    "shr": lambda a, b: np.floor(a / np.exp2(np.clip(b, 0, 62))),
}


def _not_zero(b: Points) -> Points:
    return np.where(b == 0, 1.0, b)


class Values:
    """Variables with their values at the sampled points, as far as they are known."""

    def __init__(self, tecs: int, sizes: Mapping[Var, float]) -> None:
        """`sizes`: what is known of parameters. The program is followed on the first of `tecs` TECs."""
        self.known: dict[Var, Points] = {v: np.full(POINTS, float(x)) for v, x in sizes.items()}
        self.calls = {"get_local_id": np.zeros(POINTS), "get_local_size": np.full(POINTS, float(tecs))}
        self.tables: dict[Var, Points] = {}
        self._loops = 0

    def of(self, e: Expr) -> Points | None:
        """The values of a scalar expression; None where they are not known."""
        if isinstance(e, (E.IntImm, E.FloatImm)):
            return np.full(POINTS, float(e.value))
        if isinstance(e, Var):
            return self.known.get(e)
        if isinstance(e, E.Binary) and e.op in _BINARY:
            a, b = self.of(e.a), self.of(e.b)
            return None if a is None or b is None else np.asarray(_BINARY[e.op](a, b), dtype=np.float64)
        if isinstance(e, E.Unary) and e.op == "not":
            a = self.of(e.a)
            return None if a is None else np.asarray(np.logical_not(a), dtype=np.float64)
        if isinstance(e, E.Cast):
            return self.of(e.value)
        if isinstance(e, E.Select):
            cond, a, b = (self.of(x) for x in (e.condition, e.true_value, e.false_value))
            return None if cond is None or a is None or b is None else np.where(cond != 0, a, b)
        if isinstance(e, E.Call):
            return self.calls.get(e.op)
        return None

    def mean(self, e: Expr, otherwise: float) -> float:
        """The mean of an expression."""
        found = self.of(e)
        return otherwise if found is None else float(found.mean())

    def turns(self, start: Expr, stop: Expr, step: Expr) -> Points | None:
        """How many turns a loop has."""
        first, last, by = (self.of(x) for x in (start, stop, step))
        if first is None or last is None or by is None:
            return None
        return np.maximum(np.ceil((last - first) / _not_zero(by)), 0)

    def enter(self, var: Var, start: Expr, step: Expr, turns: Points) -> None:
        """Gives the variable of a loop some of its values; those of loops inside of each other are independent."""
        self._loops += 1
        at = np.mod(_GOLDEN * (np.arange(POINTS) + 1) * (2 * self._loops - 1) + 0.13 * self._loops, 1.0)
        first, by = self.of(start), self.of(step)
        if first is not None and by is not None:
            self.known[var] = first + by * np.floor(at * np.maximum(turns, 1))
