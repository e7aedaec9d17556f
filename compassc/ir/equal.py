"""Structural equality: the same program up to the names of variables. Spans do not count."""

from __future__ import annotations

from . import exprs as E
from .dtypes import DataType, PointerType
from .node import Node
from .stmts import PrimFunc


def structural_equal(a: object, b: object) -> bool:
    """Whether two nodes, bodies, functions or modules are the same program. Free variables must be identical."""
    return _Equal({}, {}).eq(a, b)


class _Equal:
    """Compares two trees, pairing the variables of one with those of the other as they are met."""

    def __init__(self, forward: dict[E.Var, E.Var], backward: dict[E.Var, E.Var]) -> None:
        self.forward, self.backward = forward, backward

    def eq(self, a: object, b: object) -> bool:
        match a, b:
            case E.Var(), E.Var():
                return self._vars(a, b)
            case tuple(), tuple():
                return len(a) == len(b) and all(map(self.eq, a, b))
            case Node(), Node() if type(a) is type(b):
                inner = _Equal({}, {}) if isinstance(a, PrimFunc) else self
                return all(inner.eq(getattr(a, name), getattr(b, name)) for name in a.fields)
            case ((DataType() | PointerType()), _):
                return a is b
            case float(), float():
                return repr(a) == repr(b)
        return type(a) is type(b) and a == b

    def _vars(self, a: E.Var, b: E.Var) -> bool:
        if a in self.forward or b in self.backward:
            return self.forward.get(a) is b and self.backward.get(b) is a
        if a.dtype is not b.dtype or a.nonneg != b.nonneg:
            return False
        self.forward[a], self.backward[b] = b, a
        return True
