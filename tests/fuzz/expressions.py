"""Random expressions of a wanted type, every one of them with a defined value."""

from __future__ import annotations

from typing import Any

from compassc.ir.dtypes import INT32, DataType, dtype

from .arithmetic import Arithmetic
from .conditions import Conditions
from .memory import Memory
from .scope import Region, Variable
from .tree import Expr
from .vectors import Vectors


class Expressions(Memory, Conditions, Arithmetic, Vectors):
    """Draws expressions over what is in scope. `depth` bounds their nesting; at 0 only leaves are made."""

    def gen(self, t: DataType, depth: int, width: int = 0) -> Expr:
        """An expression of type `t`; `width` is the element bits a mask goes with."""
        if t.is_mask:
            return self.mask(t.lanes, width, depth)
        if t.is_bool:
            return self.boolean(depth)
        leaves = [(4, lambda: self.variable(t)), (1, lambda: self.constant(t)), (1.5, lambda: self.load(t, depth))]
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
            (3, lambda: self.permuted(t, depth)),
            (0.7, lambda: self.vector_remainder(t, depth)),
        ]

    # ---------------------------------------------------------------------------------------------- calls

    def sub_call(self, t: DataType | None, depth: int, width: int = 0) -> Expr | None:
        """A call of a generated function that returns `t` (None: one that writes memory)."""
        found = [f for f in self.functions if f.returns is t and f.width == width]
        if not found:
            return None
        function = self.rng.choice(found)
        texts, args = [], []
        count = len(function.params) - (self.rng.randint(0, function.defaults) if function.defaults else 0)
        for param in function.params[:count]:
            text, more = self.argument(param, depth)
            if text is None:
                return None
            named = self.chance(0.1) or (texts and "=" in texts[-1])
            texts.append(f"{param.name}={text}" if named else text)
            args += more
        return Expr(f"{function.name}({', '.join(texts)})", args, t or dtype("void"), width)

    def argument(self, param: Variable | Region, depth: int) -> tuple[str | None, list[Expr]]:
        if isinstance(param, Variable):
            return "{}", [self.gen(param.type, depth - 1, param.width)]
        found = [
            r
            for r in self.scope.regions
            if r.type is param.type
            and r.scope == param.scope
            and r.size >= param.size
            and (r.writable or not param.writable)
        ]
        if not found:
            return None, []
        region = self.rng.choice(found)
        return self.address(region, self.index(region.size - param.size, depth - 1))
