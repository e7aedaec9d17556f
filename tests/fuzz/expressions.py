"""Random expressions of a wanted type, every one of them with a defined value."""

from __future__ import annotations

from random import Random
from typing import Any

from compass_core.errors import CompassError
from compassc.ir.dtypes import BOOL, INT32, STORAGE, DataType, bool_of, dtype
from compassc.ops.convert import check_pair

from . import forms
from .scope import Region, Scope, SubFunction, Variable, short
from .tree import Expr

INTS = tuple(t for t in STORAGE if t.is_integer)
FLOATS = (0.0, 1.0, -1.0, 0.5, 3.25, -7.75, 0.1, 100.0, 1e-3, -0.0, 2048.0)
HALVES = ("low", "high", "even", "odd")
QUARTERS = ("ll", "lh", "hl", "hh")
SAFE = ("({} & 7) + 1", "({} & 15) + 3", "(({} | 1) & 63)")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class Expressions:
    """Draws expressions over what is in scope. `depth` bounds their nesting; at 0 only leaves are made."""

    def __init__(self, rng: Random, version: str) -> None:
        self.rng = rng
        self.version = version
        self.scope = Scope()
        self.functions: list[SubFunction] = []

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
        """A bare literal that adapts to `t`, or an expression."""
        if t.is_integer and not t.is_bool and self.chance(0.25):
            return Expr(self.number(t.element_of), [], t)
        return self.gen(t, depth)

    # ---------------------------------------------------------------------------------------------- memory

    def index(self, limit: int, depth: int) -> Expr:
        """An integer expression from 0 to `limit`."""
        if limit <= 0:
            return Expr("0", [], INT32)
        if depth <= 0 or self.chance(0.4):
            return Expr(str(self.rng.randint(0, limit)), [], INT32)
        bits = self.rng.randint(0, (limit + 1).bit_length() - 1)
        if bits == 0:
            return Expr(str(self.rng.randint(0, limit)), [], INT32)
        mask, t = (1 << bits) - 1, self.rng.choice((INT32, INT32, INT32, *INTS))
        base = self.rng.randint(0, limit - mask)
        if mask > t.range()[1] or base + mask > t.range()[1]:
            t = INT32
        text = f"({{}} & {mask})" + (f" + {base}" if base else "")
        return Expr(f"({text})" if base else text, [self.gen(t, min(depth - 1, 1))], t)

    def region(self, elem: DataType, size: int, writable: bool = False, raw: bool = False) -> Region | None:
        found = [
            r
            for r in self.scope.regions
            if r.type is elem and r.size >= size and (r.writable or not writable) and (r.raw or not raw)
        ]
        return self.rng.choice(found) if found else None

    def load(self, t: DataType, depth: int) -> Expr | None:
        if t.is_vector and not any(r.type is t for r in self.scope.regions):
            return self.slice_load(t, depth)
        found = self.region(t, 1)
        if found is None:
            return None
        return Expr(f"{found.name}[{{}}]", [self.index(found.size - 1, depth - 1)], t)

    def span(self, region: Region, lanes: int, depth: int) -> tuple[Expr, int] | None:
        """Start and stride of an access of `lanes` elements."""
        if region.size < lanes:
            return None
        most = (region.size - 1) // (lanes - 1)
        stride = self.rng.randint(1, min(most, 3)) if self.chance(0.25) else 1
        return self.index(region.size - 1 - (lanes - 1) * stride, depth - 1), stride

    def slice_load(self, t: DataType, depth: int) -> Expr | None:
        found = self.region(t.element_of, t.lanes)
        span = self.span(found, t.lanes, depth) if found else None
        if found is None or span is None:
            return None
        start, stride = span
        step = f":{stride}" if stride > 1 else ""
        if start.args:  # the start is written twice: keep it small
            start = self.index(found.size - 1 - (t.lanes - 1) * stride, 0)
        return Expr(f"{found.name}[{start.text()}:{int(start.text()) + t.lanes * stride}{step}]", [], t)

    def address(self, region: Region, start: Expr) -> tuple[str, list[Expr]]:
        """The text of a pointer to an element of a region."""
        if start.text() == "0":
            return region.name, []
        if region.scope == "constant":  # a table is a buffer
            return f"{region.name}.addr_of({{}})", [start]
        return f"{region.name} + {{}}", [start]

    def vload(self, t: DataType, depth: int) -> Expr | None:
        if t.is_bfloat and t.lanes != 16 and self.chance(0.5):
            return None
        found = self.region(t.element_of, t.lanes)
        span = self.span(found, t.lanes, depth) if found else None
        if found is None or span is None:
            return None
        where, args = self.address(found, span[0])
        options = "" if t.lanes == t.native_lanes and self.chance(0.5) else f", lanes={t.lanes}"
        if span[1] > 1:
            options += f", stride={span[1]}"
        if self.chance(0.4):
            mask = self.mask_argument(t.lanes, t.bits, depth - 1)
            options += ", mask={}"
            args = [*args, mask]
        return Expr(f"S.vload({where}{options})", args, t)

    def offsets(self, lanes: int, limit: int, depth: int) -> Expr | None:
        """16-bit element offsets from 0 to `limit`."""
        bits = (limit + 1).bit_length() - 1
        if bits < 2:
            return None
        t = self.rng.choice((dtype("int16"), dtype("uint16"))).with_lanes(lanes)
        return Expr(f"({{}} & {(1 << min(bits, 8)) - 1})", [self.gen(t, depth)], t)

    def gather(self, t: DataType, depth: int) -> Expr | None:
        found = self.region(t.element_of, 16)
        if found is None or found.scope == "constant":
            return None
        offsets = self.offsets(t.lanes, found.size - 1, depth - 1)
        if offsets is None:
            return None
        return Expr(f"S.vload_gather({found.name}, {{}})", [offsets], t)

    # ---------------------------------------------------------------------------------------------- masks

    def mask_text(self, lanes: int) -> str:
        bits = [self.chance(0.6) for _ in range(lanes)]
        if self.chance(0.5):
            n = self.rng.randint(1, lanes)
            return f'"{n}T{lanes - n}F"' if n < lanes else f'"{lanes}T"'
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
            low, high = self.gen(a, 0), self.gen(a, 0)
            return Expr("({} <= {} < {})", [low, left, high], BOOL)
        return Expr(f"({{}} {self.rng.choice(COMPARISONS)} {{}})", [left, right], BOOL)

    def logical(self, depth: int) -> Expr:
        if self.chance(0.3):
            return Expr("(not {})", [self.boolean(depth - 1)], BOOL)
        word = self.rng.choice(("and", "or"))
        return Expr(f"({{}} {word} {{}})", [self.boolean(depth - 1), self.boolean(depth - 1)], BOOL)

    def bool_operator(self, depth: int) -> Expr:
        symbol = self.rng.choice(("&", "|", "^", "==", "!="))
        return Expr(f"({{}} {symbol} {{}})", [self.boolean(depth - 1), self.boolean(depth - 1)], BOOL)

    def pointer_comparison(self) -> Expr | None:
        found = [r for r in self.scope.regions if not r.type.is_vector and r.scope in ("global", "lsram", "private")]
        if not found:
            return None
        region, t = self.rng.choice(found), BOOL
        a, b = self.rng.randint(0, region.size - 1), self.rng.randint(0, region.size - 1)
        return Expr(f"({region.name} + {a} {self.rng.choice(COMPARISONS[:4])} {region.name} + {b})", [], t)

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

    def mask_lane(self, depth: int) -> Expr | None:
        found = [
            v for v in self.scope.variables if v.type.is_mask and v.type.is_native and v.type.lanes * v.width == 256
        ]
        if not found:
            return None
        mask = self.rng.choice(found)
        return Expr(f"{{}}[{self.rng.randrange(mask.type.lanes)}]", [mask.expr()], BOOL)

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

    def safe_divisor(self, t: DataType, depth: int, unknown: str = "") -> Expr:
        """A divisor that is not 0; `unknown` is put into it so that it is no constant unless it is a literal."""
        if self.chance(0.4):
            return Expr(str(self.rng.choice((1, 2, 3, 4, 5, 7, 8, 10, 16, 64, 100))), [], t)
        text = self.rng.choice(SAFE)
        if unknown:
            text = text.replace("{}", f"({{}} ^ {unknown})")
        return Expr(text, [self.gen(t, depth - 1)], t)

    def scalar_division(self, t: DataType, depth: int) -> Expr | None:
        """Floor division and remainder of what folds to constants, and by what folds to a power of two, round down,
        which PySim cannot know: the operands get a value that is loaded."""
        if not t.is_integer:
            return None
        if self.chance(0.2) and t is INT32:
            return Expr("S.ceildiv(({} & 1023), {})", [self.gen(t, depth - 1), Expr("7", [], t)], t)
        symbol, loaded = self.rng.choice(("/", "//", "%")), self.load(t, 0)
        if symbol == "/" or loaded is None:
            return Expr("({} / ({}))", [self.gen(t, depth - 1), self.safe_divisor(t, depth)], t)
        unknown = loaded.text()
        divisor = self.safe_divisor(t, depth, unknown)
        return Expr(f"(({{}} ^ {unknown}) {symbol} ({{}}))", [self.gen(t, depth - 1), divisor], t)

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
        if not found:
            return None
        vector = self.rng.choice(found)
        lanes = vector.type.lanes
        if vector.type.is_native and self.chance(0.5):
            return Expr("{}[{}]", [vector.expr(), self.index(lanes - 1, depth - 1)], t)
        return Expr(f"{{}}[{self.rng.randrange(lanes)}]", [vector.expr()], t)

    # ---------------------------------------------------------------------------------------------- conversions

    def conversion(self, t: DataType, depth: int) -> Expr | None:
        if t.is_scalar:
            source = self.rng.choice((*STORAGE, INT32, INT32, BOOL))
            return Expr(f"S.{short(t)}({{}})", [self.gen(source, depth - 1)], t)
        if t.is_integer and self.chance(0.2):
            source = t.with_uint if t.is_int else t.with_int
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
        return Expr(
            f'S.cast({{}}, "{self.cast_name(t)}"{options})', [self.gen(source.with_lanes(t.lanes), depth - 1)], t
        )

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
        index = self.index(t.lanes - 1, depth - 1) if t.is_native else Expr(str(self.rng.randrange(t.lanes)), [], INT32)
        return Expr("S.vreplic({}, {})", [self.gen(t, depth - 1), index], t)

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
