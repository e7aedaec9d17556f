"""Random conversions, and vectors made of other vectors."""

from __future__ import annotations

from compass_core.errors import CompassError
from compassc.ir.dtypes import BOOL, INT32, STORAGE, DataType, dtype
from compassc.ops.convert import check_pair

from .draw import HALVES, INTS, QUARTERS, Draw
from .scope import short
from .tree import Expr


class Vectors(Draw):
    """Casts, reinterpretations, literals, selections and permutations."""

    # ---------------------------------------------------------------------------------------------- conversions

    def conversion(self, t: DataType, depth: int) -> Expr | None:
        if t.is_scalar:
            source = self.rng.choice((*STORAGE, INT32, INT32, BOOL))
            value = self.gen(source, depth - 1)
            if value.args and source.is_integer and source.bits == 32 and t.is_float and t.bits == 16:
                # clang 23 takes an integer of few significant bits as it is, also one that is infinite as a half
                value = Expr("S.i16({})", [value], dtype("int16"))
            return Expr(f"S.{short(t)}({{}})", [value], t)
        if t.is_integer and self.chance(0.2):
            source = t.with_uint() if t.is_int else t.with_int()
            return Expr(f"S.{'i' if t.is_int else 'u'}({{}})", [self.gen(source, depth - 1)], t)
        source = self.rng.choice(STORAGE)
        try:
            check_pair(source, t)
        except CompassError:
            return None
        if t.bits > source.bits and self.chance(0.5):
            return self.part_cast(t, source, depth)
        if t.bits < source.bits and t.is_native and self.chance(0.3):
            return self.merge_cast(t, source, depth)
        if source is t.element_of:
            return None
        options = ", saturate=True" if t.is_integer and source.is_integer and self.chance(0.4) else ""
        text = f'S.cast({{}}, "{self.cast_name(t)}"{options})'
        reordered = source.is_floating and source.bits == 16 and t.is_float and t.bits == 32  # by X2, not by PySim
        text = f'S.tag({text}, "no_zip")' if self.chance(0.05) and not reordered else text
        return Expr(text, [self.gen(source.with_lanes(t.lanes), depth - 1)], t)

    def cast_name(self, t: DataType) -> str:
        return str(t) if self.chance(0.5) else short(t.element_of)

    def part_cast(self, t: DataType, source: DataType, depth: int) -> Expr | None:
        ratio = t.bits // source.bits
        native = source.with_lanes(source.native_lanes)
        if t.lanes * ratio != native.lanes:
            return None
        part = self.rng.choice(HALVES if ratio == 2 else QUARTERS)
        return Expr(f'S.cast({{}}, "{short(t.element_of)}", part="{part}")', [self.gen(native, depth - 1)], t)

    def merge_cast(self, t: DataType, source: DataType, depth: int) -> Expr | None:
        native, count = source.with_lanes(source.native_lanes), source.bits // t.bits
        options = ", saturate=True" if t.is_integer and source.is_integer and self.chance(0.4) else ""
        items = [self.gen(native, depth - 1) for _ in range(count)]
        return Expr(f'S.cast(({", ".join(["{}"] * count)}), "{short(t.element_of)}"{options})', items, t)

    def reinterpreted(self, t: DataType, depth: int) -> Expr | None:
        """Another view of integer bits (bits of NaNs that arithmetic made are not looked at)."""
        if t.is_vector and t.total_bits % 256:
            return None
        sources = [e for e in INTS if e is not t.element_of and t.total_bits % e.bits == 0]
        elem = self.rng.choice(sources)
        if t.is_scalar and elem.bits != t.bits:
            return None
        source = elem.with_lanes(t.total_bits // elem.bits)
        return Expr(f'S.reinterpret({{}}, "{short(t)}")', [self.gen(source, depth - 1)], t)

    # ---------------------------------------------------------------------------------------------- vectors

    def literal_vector(self, t: DataType, depth: int) -> Expr | None:
        if t.lanes > 32 or (t.is_bfloat and t.lanes != 16):
            return None
        items, args = [], []
        for _ in range(t.lanes):
            if depth > 1 and self.chance(0.1):
                items.append("{}")
                args.append(self.gen(t.element_of, 0))
            else:
                items.append(self.number(t.element_of))
        return Expr(f"S.{short(t)}([{', '.join(items)}])", args, t)

    def selected(self, t: DataType, depth: int) -> Expr:
        x, y = self.gen(t, depth - 1), self.gen(t, depth - 1)
        return Expr("S.vsel({}, {}, mask={})", [x, y, self.mask_argument(t.lanes, t.bits, depth - 1)], t)

    def permuted(self, t: DataType, depth: int) -> Expr | None:
        makers = [self._broadcast, self._compress, self._shuffle, self._concat, self._table, self._replicate]
        return self.rng.choice(makers)(t, depth)

    def _broadcast(self, t: DataType, depth: int) -> Expr:
        x = self.gen(t.element_of, depth - 1)
        return Expr(f"S.vbcast({{}}, lanes={t.lanes})", [x], t)

    def _compress(self, t: DataType, depth: int) -> Expr | None:
        if not t.is_native:
            return None
        mask = self.mask_argument(t.lanes, t.bits, depth - 1)
        if self.chance(0.5):
            return Expr("S.vcompt({}, {})", [self.gen(t, depth - 1), mask], t)
        return Expr("S.vcompc({}, {}, {})", [self.gen(t, depth - 1), self.gen(t, depth - 1), mask], t)

    def _shuffle(self, t: DataType, depth: int) -> Expr | None:
        if t.total_bits % 256:
            return None
        n = self.rng.randrange(t.lanes)
        if self.chance(0.5):
            return Expr(f"S.vsldl({{}}, {{}}, {n})", [self.gen(t, depth - 1), self.gen(t, depth - 1)], t)
        shift = self.index(t.lanes - 1, depth - 1) if t.is_native else Expr(str(n), [], INT32)
        return Expr("S.vshfl({}, {})", [self.gen(t, depth - 1), shift], t)

    def _concat(self, t: DataType, depth: int) -> Expr | None:
        if self.chance(0.5) and t.total_bits % 512 == 0:
            half = t.with_lanes(t.lanes // 2)
            return Expr("S.vconcat(({}, {}))", [self.gen(half, depth - 1), self.gen(half, depth - 1)], t)
        if t.total_bits % 256:
            return None
        part = self.rng.choice(HALVES)
        return Expr(f'S.vconcat(({{}}, {{}}), "{part}")', [self.gen(t, depth - 1), self.gen(t, depth - 1)], t)

    def _table(self, t: DataType, depth: int) -> Expr | None:
        if not t.is_native:
            return None
        index = self.rng.choice([e for e in INTS if e.bits == t.bits]).with_lanes(t.lanes)
        count = self.rng.randint(2, 4)
        at = Expr(f"({{}} & {min(t.lanes * count, 127)})", [self.gen(index, depth - 1)], index)
        items = [self.gen(t, depth - 1) for _ in range(count)]
        return Expr(f"S.vtbl(({', '.join(['{}'] * count)}), {{}})", [*items, at], t)

    def _replicate(self, t: DataType, depth: int) -> Expr | None:
        if t.total_bits % 256:
            return None
        index = self.index(t.lanes - 1, depth - 1)
        return Expr("S.vreplic({}, {})", [self.gen(t, depth - 1), index], t)

    def lane_numbers(self, t: DataType, depth: int) -> Expr | None:
        """S.iota, whose integers fit in any case where the start is known."""
        if t.is_mask:
            return None
        elem, most = t.element_of, max(1, (127 if t.is_integer else 60) // t.lanes)
        step = self.rng.randint(0, most) if t.is_integer else self.rng.choice((1, 0.5, -0.1, 3))
        name = f'"{elem}"'
        if t.is_bfloat or self.chance(0.4):
            return Expr(f"S.iota({name}, {t.lanes}, step={step})", [], t)
        start = self.gen(elem, depth - 1)
        return Expr(f"S.iota({name}, {t.lanes}, {{}}, {step})", [start], t)

    def lanes_ternary(self, t: DataType, depth: int) -> Expr | None:
        """`a if mask else b`."""
        if not t.is_vector or t.is_mask:
            return None
        mask = self.mask(t.lanes, t.bits, depth - 1)
        return Expr("({} if {} else {})", [self.gen(t, depth - 1), mask, self.gen(t, depth - 1)], t)
