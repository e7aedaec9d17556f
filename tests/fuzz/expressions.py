"""Random expressions of a wanted type, every one of them with a defined value."""

from __future__ import annotations

from typing import Any

from compassc.ir.dtypes import INT32, DataType

from .arithmetic import Arithmetic
from .conditions import Conditions
from .pointers import Pointers
from .tree import Expr
from .vectors import Vectors


class Expressions(Pointers, Conditions, Arithmetic, Vectors):
    """Draws expressions over what is in scope. `depth` bounds their nesting; at 0 only leaves are made."""

    def gen(self, t: DataType, depth: int, width: int = 0) -> Expr:
        """An expression of type `t`; `width` is the element bits a mask goes with."""
        if t.is_mask:
            return self.mask(t.lanes, width, depth)
        if t.is_bool:
            return self.boolean(depth)
        leaves = [
            (4, lambda: self.variable(t)),
            (self.constancy, lambda: self.constant(t)),
            (1.5, lambda: self.load(t, depth)),
        ]
        if depth <= 0 or self.chance(0.2):
            return self.first_of(leaves, lambda: self.constant(t))
        common = [
            (5, lambda: self.binary(t, depth)),
            (1, lambda: self.unary(t, depth)),
            (8, lambda: self.operation(t, depth)),
            (0.7, lambda: self.ternary(t, depth)),
            (2, lambda: self.conversion(t, depth)),
            (2, lambda: self.sub_call(t, depth)),
            (1, lambda: self.reinterpreted(t, depth)),
            (0.7, lambda: self.matrix_load(t, depth)),
        ]
        own = self.scalar_makers(t, depth) if t.is_scalar else self.vector_makers(t, depth)
        return self.first_of(common + own + leaves, lambda: self.constant(t))

    def scalar_makers(self, t: DataType, depth: int) -> list[Any]:
        return [
            (0.3, lambda: Expr("S.get_local_size()", [], t) if t is INT32 else None),
            (1, lambda: self.element(t, depth)),
            (1, lambda: self.reduction(t, depth)),
            (0.7, lambda: self.scalar_division(t, depth)),
        ]

    def vector_makers(self, t: DataType, depth: int) -> list[Any]:
        return [
            (1, lambda: self.vload(t, depth)),
            (0.6, lambda: self.gather(t, depth)),
            (1, lambda: self.literal_vector(t, depth)),
            (1, lambda: self.selected(t, depth)),
            (0.4, lambda: self.lanes_ternary(t, depth)),
            (0.4, lambda: self.lane_numbers(t, depth)),
            (3, lambda: self.permuted(t, depth)),
            (0.7, lambda: self.vector_remainder(t, depth)),
        ]
