"""Random masks and bools."""

from __future__ import annotations

from compassc.ir.dtypes import BOOL, INT32, STORAGE, DataType, bool_of

from . import forms
from .draw import COMPARISONS, Draw
from .tree import Expr


class Conditions(Draw):
    """Masks for vectors of a given element width, and scalar bools."""

    # ---------------------------------------------------------------------------------------------- masks

    def mask_text(self, lanes: int) -> str:
        bits = [self.chance(0.6) for _ in range(lanes)]
        if self.chance(0.4):
            n = self.rng.randint(1, lanes)
            return f'"{n}T{lanes - n}F"' if n < lanes else f'"{lanes}T"'
        if self.chance(0.2) and lanes % 4 == 0:  # groups of a count and a pattern, and one without a count
            return self.rng.choice((f'"{lanes // 4}TTFT"', f'"{lanes // 2}FT"', f'"{lanes // 2 - 1}TF_FT"'))
        if self.chance(0.3) and lanes <= 16:
            return str(bits)
        return '"' + "".join("T" if b else "F" for b in bits) + '"'

    def mask_argument(self, lanes: int, width: int, depth: int) -> Expr:
        if self.chance(0.4):
            return Expr(self.mask_text(lanes), [], bool_of(lanes), width)
        return self.mask(lanes, width, depth)

    def mask_constant(self, lanes: int, width: int) -> Expr:
        text = self.mask_text(lanes)
        if text.startswith('"') and len(text) - 2 > lanes:  # S.const_mask counts the characters too
            text = str([self.chance(0.6) for _ in range(lanes)])
        return Expr(f"S.const_mask({text})", [], bool_of(lanes), width)

    def mask(self, lanes: int, width: int, depth: int) -> Expr:
        """A mask for vectors of `width` element bits."""
        t = bool_of(lanes)
        leaves = [
            (5, lambda: self.variable(t, width)),
            (1, lambda: self.mask_constant(lanes, width)),
            (1, lambda: self.tail(lanes, width, depth)),
        ]
        if depth <= 0:
            return self.first_of(leaves, lambda: self.mask_constant(lanes, width))
        makers = [
            (6, lambda: self.vector_comparison(lanes, width, depth)),
            (2, lambda: self.mask_operator(lanes, width, depth)),
            (2, lambda: self.operation(t, depth, width)),
            (2, lambda: self.sub_call(t, depth, width)),
            (0.5, lambda: Expr(f"S.vbcast({{}}, lanes={lanes})", [self.boolean(depth - 1)], t, width)),
            (0.5, lambda: self.mask_permuted(lanes, width, depth)),
        ]
        return self.first_of(makers + leaves, lambda: self.mask_constant(lanes, width))

    def tail(self, lanes: int, width: int, depth: int) -> Expr:
        count = self.index(lanes, depth)
        return Expr(f"S.tail_mask({{}}, {lanes})", [count], bool_of(lanes), width)

    def vector_comparison(self, lanes: int, width: int, depth: int) -> Expr | None:
        elems = [t for t in STORAGE if t.bits == width and not t.is_bfloat]
        if not elems:
            return None
        pairs = forms.compare_pairs(self.rng.choice(elems), lanes)
        if not pairs:
            return None
        a, b = self.rng.choice(pairs)
        left, right = self.gen(a, depth - 1), self.literal_or(b, depth - 1) if a.is_vector else self.gen(b, depth - 1)
        return Expr(f"({{}} {self.rng.choice(COMPARISONS)} {{}})", [left, right], bool_of(lanes), width)

    def mask_operator(self, lanes: int, width: int, depth: int) -> Expr:
        a = self.mask(lanes, width, depth - 1)
        if self.chance(0.25):
            return Expr("(~{})", [a], a.type, width)
        b = self.mask(lanes, width, depth - 1)
        return Expr(f"({{}} {self.rng.choice('&|^')} {{}})", [a, b], a.type, width)

    def mask_permuted(self, lanes: int, width: int, depth: int) -> Expr | None:
        if lanes not in (8, 16, 32) or lanes * width != 256:
            return None
        return Expr("S.vrevs({})", [self.mask(lanes, width, depth - 1)], bool_of(lanes), width)

    # ---------------------------------------------------------------------------------------------- bools

    def boolean(self, depth: int) -> Expr:
        leaves = [(3, lambda: self.variable(BOOL)), (1, lambda: self.scalar_comparison(0))]
        if depth <= 0:
            return self.first_of(leaves, lambda: Expr("(S.i32(1) > 0)", [], BOOL))
        makers = [
            (5, lambda: self.scalar_comparison(depth)),
            (1.5, lambda: self.logical(depth)),
            (1, lambda: self.mask_test(depth)),
            (0.5, lambda: self.mask_lane(depth)),
            (0.5, lambda: self.operation(BOOL, depth)),
            (0.5, lambda: self.bool_operator(depth)),
            (0.7, lambda: self.sub_call(BOOL, depth)),
            (0.4, self.pointer_comparison),
        ]
        return self.first_of(makers + leaves, lambda: Expr("(S.i32(1) > 0)", [], BOOL))

    def scalar_comparison(self, depth: int) -> Expr | None:
        elem = self.rng.choice([t for t in STORAGE if not t.is_bfloat] + [INT32] * 4)
        a, b = self.rng.choice(forms.compare_pairs(elem, 1))
        right = self.literal_or(b, depth - 1)
        left = self.gen(a, depth - 1)
        if self.chance(0.1):
            low, high = self.gen(a, depth - 1), self.gen(a, depth - 1)
            return Expr("({} <= {} < {})", [low, left, high], BOOL)
        return Expr(f"({{}} {self.rng.choice(COMPARISONS)} {{}})", [left, right], BOOL)

    def logical(self, depth: int) -> Expr:
        if self.chance(0.3):
            return Expr("(not {})", [self.boolean(depth - 1)], BOOL)
        word = self.rng.choice(("and", "or"))
        return Expr(f"({{}} {word} {{}})", [self.boolean(depth - 1), self.boolean(depth - 1)], BOOL)

    def bool_operator(self, depth: int) -> Expr:
        symbol = self.rng.choice(("&", "|", "^", "==", "!=", "+", "-", "*"))
        if symbol in "+-&|" and self.chance(0.3):
            return Expr(f"({{}} {symbol} 1)", [self.boolean(depth - 1)], BOOL)
        return Expr(f"({{}} {symbol} {{}})", [self.boolean(depth - 1), self.boolean(depth - 1)], BOOL)

    def some_vector(self, native: bool = False) -> DataType:
        """A vector type that some variable has, or any."""
        found = [v.type for v in self.scope.variables if v.type.is_vector and not v.type.is_mask]
        found = [t for t in found if t.is_native] if native else found
        if found:
            return self.rng.choice(found)
        elem = self.rng.choice(STORAGE)
        return elem.with_lanes(elem.native_lanes)

    def mask_test(self, depth: int) -> Expr:
        t = self.some_vector()
        mask = self.mask(t.lanes, t.bits, depth - 1)
        return Expr(f"S.{self.rng.choice(('vall', 'vany'))}({{}})", [mask], BOOL)

    def mask_lane(self, depth: int) -> Expr:
        lanes = self.rng.choice((8, 16, 32))
        mask = self.mask(lanes, 256 // lanes, depth - 1)
        return Expr(f"{{}}[{self.rng.randrange(lanes)}]", [mask], BOOL)
