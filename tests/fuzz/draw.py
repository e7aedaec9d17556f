"""What all random expressions are drawn with: choices, variables, literals."""

from __future__ import annotations

from random import Random
from typing import Any

from compassc.ir.dtypes import STORAGE, DataType

from .scope import Scope, SubFunction, short
from .tree import Expr

INTS = tuple(t for t in STORAGE if t.is_integer)
FLOATS = (0.0, 1.0, -1.0, 0.5, 3.25, -7.75, 0.1, 100.0, 1e-3, -0.0, 2048.0)
HALVES = ("low", "high", "even", "odd")
QUARTERS = ("ll", "lh", "hl", "hh")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class Draw:
    """Choices over what is in scope. The other classes of expressions are parts of `expressions.Expressions`, which
    has `gen`, and use each other through it."""

    def __init__(self, rng: Random, version: str) -> None:
        self.rng = rng
        self.version = version
        self.scope = Scope()
        self.functions: list[SubFunction] = []
        self.constancy = rng.choice((1, 1, 1, 30))
        """How often constants are leaves: some programs are for what folds them."""

    # ---------------------------------------------------------------------------------------------- choices

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def first_of(self, makers: list[Any], fallback: Any) -> Expr:
        """The first maker, in random order by weight, that does not give None."""
        pool = list(makers)
        while pool:
            index = self.rng.choices(range(len(pool)), [w for w, _ in pool])[0]
            found = pool.pop(index)[1]()
            if found is not None:
                return found
        return fallback()

    # ---------------------------------------------------------------------------------------------- leaves

    def variable(self, t: DataType, width: int = 0) -> Expr | None:
        found = [v for v in self.scope.variables if v.type is t and (not width or v.width == width)]
        return self.rng.choice(found[-6:]).expr() if found else None

    def number(self, t: DataType) -> str:
        """The text of a literal that fits an element type."""
        if t.is_bool:
            return self.rng.choice(("True", "False"))
        if t.is_floating:
            return repr(self.rng.choice(FLOATS))
        low, high = (int(v) for v in t.range())
        near = [v for v in (-3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 100) if low <= v <= high]
        if self.chance(0.8):
            return str(self.rng.choice(near))
        return str(self.rng.choice((low, high, low + 1, high - 1, self.rng.randint(low, high))))

    def constant(self, t: DataType) -> Expr:
        return Expr(self.typed(t, self.number(t.element_of)), [], t)

    def typed(self, t: DataType, text: str) -> str:
        """The conversion of `text` to `t`."""
        if t.is_bool:
            return text
        bf16_lanes = t.is_bfloat and t.is_vector and t.lanes != 16
        return f'S.cast({text}, "{t}")' if bf16_lanes or self.chance(0.1) else f"S.{short(t)}({text})"

    def literal_or(self, t: DataType, depth: int) -> Expr:
        """A bare literal that adapts to `t`, a name for one, or an expression."""
        if t.is_integer and not t.is_bool and self.chance(0.25):
            low, high = t.element_of.range()
            known = [c for c in self.scope.constants if low <= c.value <= high]
            if known and self.chance(0.5):
                return Expr(self.rng.choice(known).name, [], t)
            return Expr(self.number(t.element_of), [], t)
        return self.gen(t, depth)
