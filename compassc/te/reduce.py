"""Reductions: sum, prod, min, max, all, any over axes, and reducers of one's own.

Called with axes they reduce; called with values (`te.max(a, b)`) they join them.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from compassc.ir.dtypes import BOOL, DataType
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.exprs import Binary, Expr, FloatImm, IntImm, Var
from compassc.ir.iter_vars import IterVar
from compassc.ir.operators import as_expr, binary, data_type, immediate, kind_of
from compassc.ir.tensor_exprs import CommReducer, ProducerLoad, Reduce

_FLOAT64_MAX = 1.7976931348623157e308


def min_value(dtype: object) -> Expr:
    """The smallest finite value of a type."""
    return _limit(data_type(dtype), 0)


def max_value(dtype: object) -> Expr:
    """The largest finite value of a type."""
    return _limit(data_type(dtype), 1)


def _limit(kind: DataType, side: int) -> Expr:
    if not kind.is_scalar or kind.is_bool or not (kind.is_integer or kind.is_floating):
        raise ExpressionTypeError(f"{kind} has no {'largest' if side else 'smallest'} value")
    if kind.is_integer:
        return IntImm(kind, int(kind.range()[side]))
    largest = _FLOAT64_MAX if kind.bits == 64 else kind.range()[1]
    return FloatImm(kind, largest if side else -largest)


class Reducer:
    """A combiner that is not bound to types yet."""

    def __init__(self, combine: Callable[..., Any], identity: Callable[..., Any], name: str) -> None:
        parameters = list(inspect.signature(combine).parameters)
        if len(parameters) != 2:
            raise ExpressionError(f"the combiner '{name}' takes {len(parameters)} values, expected two")
        self.combine, self.identity, self.name, self.parameters = combine, identity, name, parameters

    def __call__(self, expr: Any, *values: Any, axis: Any = None, where: object = None, init: object = None) -> Any:
        """The reduction of `expr` (or of a tuple) over one axis or several; or `f(f(expr, axis), ...)` of values.

        `where`: what is left out where it is false. `init`: where to start in place of the identity.
        """
        named = axis is not None
        given = [axis, *values] if named else list(values)
        axes = tuple(given[0]) if given and isinstance(given[0], (list, tuple)) else tuple(given[:1])
        if not axes or not builtins.all(isinstance(a, IterVar) for a in axes):
            if named or where is not None or init is not None or not given:
                raise ExpressionError(
                    f"'{self.name}' reduces over axes that te.reduce_axis made, got {axis!r}",
                    f"te.{self.name}(a, b) of values takes them without names",
                )
            return self._fold(expr, given)
        if len(given) > 3:
            raise ExpressionError(
                f"'{self.name}' takes an expression, axes, where and init, got {len(given) + 1} values"
            )
        where = given[1] if len(given) > 1 else where
        init = given[2] if len(given) > 2 else init
        if not builtins.all(a.is_reduction for a in axes):
            raise ExpressionError(f"'{self.name}' reduces over axes that te.reduce_axis made")
        several = isinstance(expr, (tuple, list))
        sources = tuple(as_expr(e) for e in (expr if several else (expr,)))
        combiner = self._bound(tuple(kind_of(e) for e in sources), several)
        condition = IntImm(BOOL, 1) if where is None else as_expr(where)
        if condition.dtype is not BOOL:
            raise ExpressionTypeError(f"the condition of a reduction is a bool, got {condition.dtype}")
        start = _start(init, sources)
        made = [Reduce(combiner, sources, axes, condition, i, start) for i in range(len(sources))]
        return tuple(made) if several else made[0]

    def _bound(self, kinds: tuple[DataType, ...], several: bool) -> CommReducer:
        names = [[f"{p}_{i}" if several else p for i in range(len(kinds))] for p in self.parameters]
        lhs, rhs = (tuple(Var(n, k) for n, k in zip(side, kinds)) for side in names)
        given = self.combine(lhs, rhs) if several else self.combine(lhs[0], rhs[0])
        identity = self.identity(*map(str, kinds))
        results = tuple(as_expr(e) for e in (given if several else (given,)))
        start = tuple(as_expr(e) for e in (identity if several else (identity,)))
        if not len(results) == len(start) == len(kinds):
            raise ExpressionError(
                f"'{self.name}' joins {len(kinds)} values, gives {len(results)} and has {len(start)} identities"
            )
        for what, found in (("joined value", results), ("identity", start)):
            for e, kind in zip(found, kinds):
                if e.dtype is not kind:
                    raise ExpressionTypeError(f"'{self.name}': the {what} is {e.dtype}, what is reduced is {kind}")
        return CommReducer(self.name, lhs, rhs, results, start)

    def _fold(self, first: object, rest: Sequence[object]) -> object:
        for other in rest:
            first = self.combine(first, other)
        return first


def _start(init: object, sources: tuple[Expr, ...]) -> tuple[Expr, ...]:
    if init is None:
        return ()
    listed = init if isinstance(init, (tuple, list)) else (init,)
    if len(listed) != len(sources):
        raise ExpressionError(f"{len(listed)} start values are given for {len(sources)} reduced values")
    made = []
    for value, source in zip(listed, sources):
        e = immediate(value, kind_of(source)) if isinstance(value, (int, float)) else as_expr(value)
        if not isinstance(e, (IntImm, FloatImm, ProducerLoad)) or e.dtype is not source.dtype:
            raise ExpressionError(f"a start value is a number or an element of a tensor of type {source.dtype}")
        made.append(e)
    return tuple(made)


def comm_reducer(combine: Callable[..., object], identity: Callable[..., object], name: str = "reduce") -> Reducer:
    """A reducer: `combine(a, b)` must be associative and commutative, which is not checked; `identity(dtype, ...)`
    gives the value that changes nothing. Both work on tuples when a tuple is reduced."""
    return Reducer(combine, identity, name)


def _typed(value: float) -> Callable[[str], Expr]:
    def identity(kind: str) -> Expr:
        if data_type(kind).is_bool:
            raise ExpressionTypeError(
                "sums and products are of numbers, got bools",
                "cast to int32 to count them; te.any and te.all join bools",
            )
        return immediate(value, data_type(kind))

    return identity


def _smaller(a: object, b: object) -> Expr:
    return binary("min", a, b)


def _larger(a: object, b: object) -> Expr:
    return binary("max", a, b)


sum = comm_reducer(lambda a, b: binary("add", a, b), _typed(0), "sum")
prod = comm_reducer(lambda a, b: binary("mul", a, b), _typed(1), "prod")
min = comm_reducer(_smaller, lambda kind: max_value(kind), "min")
max = comm_reducer(_larger, lambda kind: min_value(kind), "max")


def _logical(op: str, start: bool, name: str) -> Callable[..., Any]:
    reducer = comm_reducer(lambda a, b: Binary(op, as_expr(a), as_expr(b)), lambda kind: _truth(start), name)

    def apply(*args: object, axis: object = None, where: object = None, init: object = None) -> Any:
        if not args:
            raise ExpressionError(f"te.{name} needs a condition at least")
        second = args[1] if len(args) > 1 else None
        listed = second if isinstance(second, (list, tuple)) else (second,)
        if axis is not None or builtins.all(isinstance(x, IterVar) for x in listed):
            return reducer(args[0], second if axis is None else axis, where, init)
        conditions = [as_expr(a) for a in args]
        for e in conditions:
            if e.dtype is not BOOL:
                raise ExpressionTypeError(f"te.{name} joins bools, got {e.dtype}")
        joined = conditions[0]
        for e in conditions[1:]:
            joined = Binary(op, joined, e)
        return joined

    return apply


def _truth(value: bool) -> Expr:
    return IntImm(BOOL, int(value))


all = _logical("and", True, "all")
any = _logical("or", False, "any")
