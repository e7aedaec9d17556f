"""Random operators and calls of operations."""

from __future__ import annotations

from compassc.ir.dtypes import INT32, DataType

from . import forms
from .draw import INTS, Draw
from .scope import short
from .tree import Expr

SAFE = ("({} & 7) + 1", "({} & 15) + 3", "(({} | 1) & 63)")


class Arithmetic(Draw):
    """Operators with defined results, operations with their options and masks."""

    # ---------------------------------------------------------------------------------------------- operators

    def symbol_for(self, t: DataType) -> str:
        symbols = ["+", "+", "-", "-", "*"] + (["&", "|", "^", "<<", ">>"] if t.is_integer else ["/", "**"])
        if t.is_vector and t.is_integer:
            symbols += ["/", "//"]
        return self.rng.choice(symbols)

    def binary(self, t: DataType, depth: int) -> Expr | None:
        symbol = self.symbol_for(t)
        if symbol in ("<<", ">>"):
            return self.shift(symbol, t, depth)
        pairs = forms.operand_pairs(symbol, t)
        if not pairs:
            return None
        a, b = self.rng.choice(pairs)
        if a.is_bool or b.is_bool:
            a, b = self.rng.choice(pairs)
        left, right = self.gen(a, depth - 1), self.gen(b, depth - 1)
        adapts = t.is_integer and a.is_integer and self.chance(0.3)
        if adapts and a.element_of is t.element_of and a.lanes == t.lanes:
            number = self.number(t.element_of)
            if number != "0" or symbol not in ("/", "//"):
                right = Expr(number, [], b)
        return Expr(f"({{}} {symbol} {{}})", [left, right], t)

    def shift(self, symbol: str, t: DataType, depth: int) -> Expr:
        left = self.gen(t, depth - 1)
        if self.chance(0.5):
            return Expr(f"({{}} {symbol} {self.rng.randrange(t.bits)})", [left], t)
        other = self.rng.choice([e for e in INTS if e.bits <= t.bits])
        return Expr(f"({{}} {symbol} {{}})", [left, self.gen(other.with_lanes(t.lanes), depth - 1)], t)

    def unary(self, t: DataType, depth: int) -> Expr | None:
        if t.is_integer and self.chance(0.5):
            return Expr("(~{})", [self.gen(t, depth - 1)], t)
        if t.is_uint or t.is_bfloat or (t.is_vector and t.bits == 8):
            return None
        return Expr("(-{})", [self.gen(t, depth - 1)], t)

    def safe_divisor(self, t: DataType, depth: int) -> Expr:
        """A divisor that is not 0."""
        if self.chance(0.4):
            return Expr(str(self.rng.choice((1, 2, 3, 4, 5, 7, 8, 10, 16, 64, 100))), [], t)
        return Expr(self.rng.choice(SAFE), [self.gen(t, depth - 1)], t)

    def scalar_division(self, t: DataType, depth: int) -> Expr | None:
        if not t.is_integer:
            return None
        if self.chance(0.2) and t is INT32:
            return Expr("S.ceildiv(({} & 1023), {})", [self.gen(t, depth - 1), Expr("7", [], t)], t)
        symbol = self.rng.choice(("/", "//", "%"))
        return Expr(f"({{}} {symbol} ({{}}))", [self.gen(t, depth - 1), self.safe_divisor(t, depth)], t)

    def vector_remainder(self, t: DataType, depth: int) -> Expr | None:
        if not t.is_integer or not t.is_native:
            return None
        return Expr("({} % ({}))", [self.gen(t, depth - 1), self.safe_divisor(t, depth)], t)

    def ternary(self, t: DataType, depth: int) -> Expr:
        condition = self.boolean(depth - 1)
        return Expr("({} if {} else {})", [self.gen(t, depth - 1), condition, self.gen(t, depth - 1)], t)

    # ---------------------------------------------------------------------------------------------- operations

    def operation(self, t: DataType, depth: int, width: int = 0) -> Expr | None:
        """A call of a declared value operation."""
        found = forms.op_forms(t, self.version)
        if t.is_mask:
            found = tuple(f for f in found if f.operands[0].bits == width or f.operands[0].is_bool)
        if not found:
            return None
        names = sorted({f.op.name for f in found})
        name = self.rng.choice(names)
        form = self.rng.choice([f for f in found if f.op.name == name])
        args = [self.gen(o, depth - 1, width) for o in form.operands]
        last = form.operands[-1]
        plain = form.operands[0].is_vector and len(args) > 1 and last.is_vector and not last.is_bool
        plain = plain and not (form.op.operands[0] == "acc" and (len(args) < 3 or last is not form.operands[1]))
        if plain and form.op.name not in ("vzip",) and self.chance(0.25):
            elem = last.element_of
            args[-1] = self.gen(elem, depth - 1) if self.chance(0.5) else Expr(self.number(elem), [], elem)
            first = form.operands[1 if form.op.operands[0] == "acc" else 0]
            if elem.is_int != first.is_int or elem.is_floating:
                args[-1] = Expr(f"S.{short(elem)}({{}})", [args[-1]], elem)
        texts = ["{}"] * len(args) + [f"{k}={v!r}" for k, v in form.options]
        call = Expr(f"S.{name}({', '.join(texts)})", args, t, width)
        return self.masked(form, call, depth)

    def masked(self, form: forms.Form, call: Expr, depth: int) -> Expr:
        """The call with a mask, where inactive lanes are defined or put out of sight."""
        op, t = form.op, call.type
        if not form.mask_lanes or not form.mask_width or form.mask_width < 8 or not self.chance(0.4):
            return call
        aware = op.r == "none" or t.is_bool
        hidden = op.r == "auto" and not t.is_bool
        if hidden and (t.lanes != form.mask_lanes or t.bits != form.mask_width):
            return call
        mask = self.mask_argument(form.mask_lanes, form.mask_width, 1 if not hidden else 0)
        head, more = call.template[:-1], [mask]
        text = f"{head}, mask={{}}"
        if op.r == "param":
            source = self.gen(t, depth - 1) if self.chance(0.7) else self.gen(t.element_of, depth - 1)
            text, more = f"{text}, r={{}}", [mask, source]
        elif not (aware or hidden):
            return call
        done = Expr(f"{text})", [*call.args, *more], t, call.width)
        if hidden:  # in one expression, which a reduction does not take apart
            return Expr(f"S.vsel({done.template}, {{}}, mask={{}})", [*done.args, self.gen(t, depth - 1), mask], t)
        return done

    def reduction(self, t: DataType, depth: int) -> Expr | None:
        found = forms.lane0_forms(t)
        if not found:
            return None
        op, operand = self.rng.choice(found)
        return Expr(f"S.{op.name}({{}})[0]", [self.gen(operand, depth - 1)], t)

    def element(self, t: DataType, depth: int) -> Expr | None:
        found = [v for v in self.scope.variables if v.type.element_of is t and v.type.is_vector]
        found = [v for v in found if v.type.total_bits % 256 == 0]
        if found and self.chance(0.7):
            vector = self.rng.choice(found).expr()
        else:
            vector = self.gen(t.with_lanes(t.native_lanes * self.rng.choice((1, 1, 2))), depth - 1)
        lanes = vector.type.lanes
        if vector.type.is_native and self.chance(0.5):
            return Expr("{}[{}]", [vector, self.index(lanes - 1, depth - 1)], t)
        return Expr(f"{{}}[{self.rng.randrange(lanes)}]", [vector], t)
