"""Structural equality: the same program up to the names of variables. Spans do not count."""

from __future__ import annotations

from . import exprs as E
from .dtypes import DataType, PointerType
from .stmts import IRModule, PrimFunc


def structural_equal(a: object, b: object) -> bool:
    """Whether two nodes, bodies, functions or modules are the same program. Free variables must be identical."""
    return _Equal({}, {}).eq(a, b)


class _Equal:
    """Compares two trees, pairing the variables of one with those of the other as they are met."""

    def __init__(self, forward: dict, backward: dict) -> None:
        self.forward, self.backward = forward, backward

    def eq(self, a: object, b: object) -> bool:
        if type(a) is E.Var and type(b) is E.Var:
            return self._vars(a, b)
        if type(a) is not type(b):
            return False
        if isinstance(a, IRModule):
            return (a.entry, a.target) == (b.entry, b.target) and self.eq(a.functions, b.functions)
        if isinstance(a, PrimFunc):
            fresh = _Equal({}, {})
            return all(fresh.eq(getattr(a, f), getattr(b, f)) for f in a.fields)
        if isinstance(a, tuple):
            return len(a) == len(b) and all(map(self.eq, a, b))
        if isinstance(a, E.FloatImm):
            return a.dtype is b.dtype and repr(a.value) == repr(b.value)
        if isinstance(a, E.Node):
            return all(self.eq(getattr(a, f), getattr(b, f)) for f in a.fields)
        if isinstance(a, (DataType, PointerType)):
            return a is b
        return a == b

    def _vars(self, a: E.Var, b: E.Var) -> bool:
        if a in self.forward or b in self.backward:
            return self.forward.get(a) is b and self.backward.get(b) is a
        if a.dtype is not b.dtype or a.nonneg != b.nonneg:
            return False
        self.forward[a], self.backward[b] = b, a
        return True
