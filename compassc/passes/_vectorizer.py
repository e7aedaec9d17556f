"""The body of a loop on vectors: statements and expressions for all iterations at once (`VectorizeLoop`)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, TypeVar

from ..analysis.arith import Arith
from ..analysis.buffers import position
from ..analysis.statements import is_const
from ..analysis.structure import is_pure, may_be_reported, variables
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import FLOAT32, INT32, UINT32, DataType
from ..ir.exprs import Binary, Expr, IntImm, Ramp, Var
from ..ir.rules import method, table
from ..ir.stmts import Body, Stmt
from ..ir.visit import Rewriter, all_exprs, located, rewrites, substitute, walk_exprs

_T = TypeVar("_T")
_LANEWISE = frozenset("abs exp exp2 log tanh sin cos sqrt rsqrt floor ceil rint erf pow".split())
"""Functions of floats that give each lane of a vector what they give a scalar."""
_REACH = 1 << 16
"""Bytes that the offsets of a gather reach."""
_AS_MASK_OP = {"and": "bitand", "or": "bitor", "ne": "bitxor", "eq": "bitxor"}
"""Operators of bools as those of masks."""
_SHIFTED = {"floordiv": "shr", "floormod": "bitand"}


class NoVectorForm(Exception):
    """The loop's body cannot be expressed on vectors."""


class Vectorizer:
    """Rewrites the body of one loop; `of` maps scalars that differ between iterations to their vectors or Ramps.

    `mask`: the lanes that are active (None: all). `guarded`: the program may not come here in any iteration.
    """

    def __init__(
        self,
        arith: Arith,
        simplify: Callable[[Expr], Expr],
        s: S.For,
        lanes: int,
        mask: Expr | None,
        on_npu: bool = True,
    ) -> None:
        self.lanes, self.mask, self.mutable, self.on_npu = lanes, mask, arith.mutable, on_npu
        self.arith, self.simplify, self.loop = arith, simplify, s
        self.guarded = False
        self.of: dict[Var, Expr] = {s.loop_var: Ramp(s.min, IntImm(s.loop_var.data_type, 1), lanes)}
        self._memo: dict[Expr, Expr] = {}
        self._loads: dict[int, Expr] = {}
        """By structure the vectors that are loaded whenever the program comes here."""

    # -- statements

    def body(self, body: Body) -> Body:
        made: list[Stmt] = []
        for new in map(self._stmt, body):
            made += new if isinstance(new, tuple) else (new,)
        return tuple(made)

    def _stmt(self, s: Stmt) -> Stmt | Body:
        rule = _STMT_RULES.get(type(s))
        if rule is None:
            raise NoVectorForm
        return rule(self, s)

    def _let(self, s: S.Let) -> Stmt:
        value = self.expr(s.value)
        if not _is_vector(value):
            return s
        if s.var in self.mutable:
            raise NoVectorForm
        if type(value) is Ramp:
            base = Var(s.var.name, value.base.dtype)
            self.of[s.var] = Ramp(base, value.stride, self.lanes)
            return S.Let(base, value.base, span=s.span)
        var = Var(s.var.name, value.dtype)
        self.of[s.var] = var
        return S.Let(var, value, span=s.span)

    def _store(self, s: S.BufferStore) -> Stmt:
        buffer, indices = self._access(s.buffer, s.indices)
        if s.mask is not None or not _is_unit(indices[-1]) or s.buffer.dtype.is_vector:
            raise NoVectorForm
        return S.BufferStore(buffer, indices, self.vector(s.value), self.mask, span=s.span)

    def _access(self, buffer: E.Buffer, indices: tuple[Expr, ...]) -> tuple[E.Buffer, tuple[Expr, ...]]:
        """A buffer and indices of which only the last differs between iterations, for the same elements."""
        try:
            *outer, last = [self.expr(i) for i in indices]
        except NoVectorForm:
            outer, last = [], None
        if last is not None and _is_unit(last) and not any(map(_is_vector, outer)):
            return buffer, (*outer, last)
        return E.Buffer(buffer.data, buffer.dtype), (self.expr(self.simplify(position(buffer.shape, indices))),)

    def _if(self, s: S.IfThenElse) -> Stmt | Body:
        if not _is_vector(self.expr(s.condition)):
            return S.IfThenElse(
                self._uniform(s.condition), self.body(s.then_case), self.body(s.else_case or ()), span=s.span
            )
        if any(map(may_be_reported, all_exprs(s.then_case))) or any(map(may_be_reported, all_exprs(s.else_case or ()))):
            raise NoVectorForm  # with no lane active, a checked run must not report the division
        cond = self.vector(s.condition)
        then = self._where(cond, lambda: self.body(s.then_case))
        if not s.else_case:
            return then
        return (*then, *self._where(E.Unary("bitnot", cond), lambda: self.body(s.else_case or ())))

    def _where(self, cond: Expr, made: Callable[[], _T]) -> _T:
        """The statements that `make` returns with only the lanes of `cond` active."""
        outer, memo, guarded, loads = self.mask, self._memo, self.guarded, self._loads
        self.mask, self._memo, self.guarded = cond if outer is None else Binary("bitand", outer, cond), {}, True
        self._loads = dict(loads)
        result = made()
        self.mask, self._memo, self.guarded, self._loads = outer, memo, guarded, loads
        return result

    def _for(self, s: S.For) -> Stmt:
        start, stop, step = (self._uniform(e) for e in (s.min, s.stop, s.step))
        return S.For(s.loop_var, s.kind, start, stop, step, self.body(s.body), span=s.span)

    def _uniform(self, e: Expr) -> Expr:
        """An expression that must be the same in all iterations."""
        if self.expr(e) is not e or e.flags & E.F_LOAD:
            raise NoVectorForm
        return e

    # -- expressions

    def expr(self, e: Expr) -> Expr:
        """The value in all iterations: `e` itself when it is the same in all, else a vector or Ramp."""
        found = self._memo.get(e)
        if found is None:
            rule = _EXPR_RULES.get(type(e))
            found = self._other(e) if rule is None else rule(self, e)
            if found is not e and isinstance(e, E.PlacedExpr):
                found = located(found, e.span)
            self._memo[e] = found
        return found

    def vector(self, e: Expr) -> Expr:
        """The value in all iterations as a vector."""
        value = self.expr(e)
        if type(value) is Ramp:
            return self._materialise(value)
        return value if _is_vector(value) else E.Broadcast(value, self.lanes)

    def _materialise(self, ramp: Ramp) -> Expr:
        """The vector base, base + stride, ..."""
        dtype = ramp.base.data_type
        if type(ramp.stride) is not IntImm:
            raise NoVectorForm
        steps = [IntImm(dtype, i * ramp.stride.value) for i in range(self.lanes)]
        low, high = dtype.integer_range()
        if not dtype.native_lanes or not low <= min(steps[0].value, steps[-1].value) <= steps[-1].value <= high:
            raise NoVectorForm
        lanes = E.VectorLiteral(dtype.with_lanes(self.lanes), tuple(steps))
        if is_const(ramp.base, 0):
            return lanes
        return Binary("add", lanes, E.Broadcast(ramp.base, self.lanes))

    def _var(self, e: Var) -> Expr:
        return self.of.get(e, e)

    def _binary(self, e: Binary) -> Expr:
        if e.op in ("and", "or") and e.b.flags & E.F_LOAD and self._varies(e):
            return self._in_turn(e)
        a, b = self.expr(e.a), self.expr(e.b)
        if not _is_vector(a) and not _is_vector(b):
            return e
        if type(a) is Ramp and not _is_vector(b) and e.op in ("add", "sub", "mul"):
            stride = a.stride if e.op != "mul" else self.simplify(Binary("mul", a.stride, b))
            return Ramp(self.simplify(Binary(e.op, a.base, b)), stride, self.lanes)
        if type(b) is Ramp and not _is_vector(a) and e.op in ("add", "mul"):
            stride = b.stride if e.op == "add" else self.simplify(Binary("mul", b.stride, a))
            return Ramp(self.simplify(Binary(e.op, a, b.base)), stride, self.lanes)
        if type(b) is Ramp and not _is_vector(a) and e.op == "sub" and e.dtype.is_int:
            stride = self.simplify(Binary("sub", IntImm(e.data_type, 0), b.stride))
            return Ramp(self.simplify(Binary("sub", a, b.base)), stride, self.lanes)
        if e.op == "mul" and e.dtype.is_integer and e.dtype.bits == 8:
            return self._product_of_bytes(e)
        if e.op == "div" and e.dtype.is_floating and e.dtype.bits == 16:
            return self._quotient_of_halves(e)
        if not _has_vector_form(e):
            raise NoVectorForm
        if e.op in _SHIFTED:
            return self._by_power_of_two(e)
        op = _AS_MASK_OP.get(e.op, e.op) if e.a.dtype.is_bool else e.op
        made = Binary(op, self.vector(e.a), self.vector(e.b))
        if op == "div" and self._may_overflow(e):
            return self._wrapped(made)
        return E.Unary("bitnot", made) if e.op == "eq" and e.a.dtype.is_bool else made

    def _in_turn(self, e: Binary) -> Expr:
        """`and` and `or` of what reads memory: the second operand where the first leaves it open, unless all it reads exists."""
        first = self.vector(e.a)
        if all(self._exist(x.buffer, x.indices) for x in walk_exprs(e.b) if isinstance(x, E.BufferLoad)):
            return Binary(_AS_MASK_OP[e.op], first, self.vector(e.b))
        open_ = first if e.op == "and" else E.Unary("bitnot", first)
        return Binary(_AS_MASK_OP[e.op], first, self._where(open_, lambda: self.vector(e.b)))

    def _product_of_bytes(self, e: Binary) -> Expr:
        """There is no multiplication of bytes: the product in 16 bits, of which the low ones are kept."""
        wide = e.data_type.with_bits(16)
        product = Binary("mul", *(self._converted(self.vector(x), wide) for x in (e.a, e.b)))
        return self._converted(product, e.data_type)

    def _may_overflow(self, e: Binary) -> bool:
        """Whether a quotient of scalars may wrap, where that of lanes saturates: the least number over -1."""
        if not self.on_npu or not e.dtype.is_int:
            return False
        low, high = self.arith.range_of(e.b)
        return low <= -1 <= high and self.arith.range_of(e.a)[0] == e.data_type.range()[0]

    def _wrapped(self, quotient: Binary) -> Expr:
        """The quotient as scalars have it: over -1, what is taken from zero, which wraps."""
        one, zero = (E.Broadcast(IntImm(quotient.data_type.element_of, n), self.lanes) for n in (-1, 0))
        return E.Select(Binary("eq", quotient.b, one), Binary("sub", zero, quotient.a), quotient)

    def _quotient_of_halves(self, e: Binary) -> Expr:
        """There is no division of halves: that of float32 has more than twice their digits, so it rounds as they would."""
        if e.dtype.is_bfloat:
            raise NoVectorForm
        quotient = Binary("div", *(self._converted(self.vector(x), FLOAT32) for x in (e.a, e.b)))
        return self._converted(quotient, e.data_type)

    def _by_power_of_two(self, e: Binary) -> Expr:
        """Division that rounds down is a shift; there is no such operator on vectors."""
        assert type(e.b) is IntImm
        by = e.b.value.bit_length() - 1 if e.op == "floordiv" else e.b.value - 1
        return Binary(_SHIFTED[e.op], self.vector(e.a), E.Broadcast(IntImm(e.b.dtype, by), self.lanes))

    def _unary(self, e: E.Unary) -> Expr:
        a = self.expr(e.a)
        if not _is_vector(a):
            return e
        return E.Unary("bitnot", self.vector(e.a))

    def _cast(self, e: E.Cast) -> Expr:
        value = self.expr(e.value)
        if not _is_vector(value):
            return e
        source, target = e.value.data_type, e.data_type
        if source.is_bool or target.is_bool:
            return self._truth(e, source, target)
        if type(value) is Ramp and (narrow := self._narrow_ramp(value, target)) is not None:
            return narrow
        if source.is_floating and target == "uint32":
            return self._to_uint32(self._converted_by(self.vector(e.value), (FLOAT32,)))
        if source == "uint32" and target.is_floating and self.on_npu:
            return self._converted_by(self._from_uint32(self.vector(e.value)), (target,))
        steps = _conversion(source, target)
        if steps is None:
            raise NoVectorForm
        return self._converted_by(self.vector(e.value), steps)

    def _reinterpret(self, e: E.Reinterpret) -> Expr:
        source, kind = e.value.dtype, e.dtype
        if not isinstance(source, DataType) or not isinstance(kind, DataType) or not _is_vector(self.expr(e.value)):
            return self._other(e)
        if source.is_bool or kind.is_bool or not source.native_lanes or source.bits != kind.bits:
            raise NoVectorForm
        return E.Reinterpret(kind.with_lanes(self.lanes), self.vector(e.value))

    def _narrow_ramp(self, ramp: Ramp, kind: DataType) -> Expr | None:
        """Whole numbers that follow each other in a narrower type, made in it: the low bits of sums are those of the terms."""
        if not kind.is_int or kind.bits >= ramp.base.dtype.bits or type(ramp.stride) is not IntImm:
            return None
        if not kind.native_lanes or abs(ramp.stride.value) * (self.lanes - 1) > kind.integer_range()[1]:
            return None
        base = self.simplify(E.Cast(kind, ramp.base))
        return self._materialise(Ramp(base, IntImm(kind, ramp.stride.value), self.lanes))

    def _converted_by(self, value: Expr, steps: tuple[DataType, ...]) -> Expr:
        for step in steps:
            if value.data_type.element_of is not step:
                value = self._converted(value, step)
        return value

    def _to_uint32(self, value: Expr) -> Expr:
        """float32 towards zero, limited to what there is: the upper half of uint32 by way of the lower one."""
        half = E.Broadcast(E.FloatImm(FLOAT32, 2.0**31), self.lanes)
        upper = Binary("ge", value, half)
        lower = self._converted(E.Select(upper, Binary("sub", value, half), value), INT32)
        zero, top = (E.Broadcast(IntImm(kind, n), self.lanes) for kind, n in ((INT32, 0), (UINT32, 1 << 31)))
        whole = self._converted(Binary("max", lower, zero), UINT32)
        return E.Select(upper, Binary("add", whole, top), whole)

    def _from_uint32(self, value: Expr) -> Expr:
        """The upper and the lower 16 bits, each of them exact, added with one rounding."""
        by, low = (E.Broadcast(IntImm(UINT32, n), self.lanes) for n in (16, 0xFFFF))
        high, rest = (
            self._converted_by(x, (INT32, FLOAT32)) for x in (Binary("shr", value, by), Binary("bitand", value, low))
        )
        return E.Call("fma", (rest, high, E.Broadcast(E.FloatImm(FLOAT32, 65536.0), self.lanes)), rest.dtype)

    def _truth(self, e: E.Cast, source: DataType, target: DataType) -> Expr:
        """A number as whether it is not 0, and a truth as 1 or 0."""
        value, kind = self.vector(e.value), source if target.is_bool else target
        if source is target:
            return value
        if not kind.native_lanes or kind.is_bfloat:
            raise NoVectorForm
        one, zero = (
            E.Broadcast(E.FloatImm(kind, float(i)) if kind.is_floating else IntImm(kind, i), self.lanes) for i in (1, 0)
        )
        return Binary("ne", value, zero) if target.is_bool else E.Select(value, one, zero)

    def _converted(self, value: Expr, target: DataType) -> Expr:
        attrs: Any = (("part", "all"), ("saturate", None))
        return E.Call("cast", (value,), target.with_lanes(self.lanes), attrs=attrs)

    def _select(self, e: E.Select) -> Expr:
        if not self._varies(e):
            return e
        if may_be_reported(e.true_value) or may_be_reported(e.false_value):
            raise NoVectorForm
        chosen = self.vector(e.condition)
        a = (
            self._where(chosen, lambda: self.vector(e.true_value))
            if e.true_value.flags & E.F_LOAD
            else self.vector(e.true_value)
        )
        other = E.Unary("bitnot", chosen)
        b = (
            self._where(other, lambda: self.vector(e.false_value))
            if e.false_value.flags & E.F_LOAD
            else self.vector(e.false_value)
        )
        return E.Select(chosen, a, b)

    def _load(self, e: E.BufferLoad) -> Expr:
        if not any(map(self._varies, e.indices)):
            return self._uniform_load(e)
        key = self.arith.interner.key(e)
        found = self._loads.get(key)
        if found is None:
            found = self._loads[key] = self._vector_load(e)
        return found

    def _vector_load(self, e: E.BufferLoad) -> Expr:
        if e.mask is not None or e.buffer.dtype.is_vector or not e.dtype.native_lanes:
            raise NoVectorForm
        buffer, indices = self._access(e.buffer, e.indices)
        last = indices[-1]
        if _is_unit(last):
            return E.BufferLoad(buffer, indices, self.mask)
        whole = self.on_npu and self.mask is None and not self.lanes % e.dtype.native_lanes
        if whole and type(last) is Ramp and is_const(last.stride, -1):
            first = self.simplify(Binary("sub", last.base, IntImm(last.base.data_type, self.lanes - 1)))
            forwards = E.BufferLoad(buffer, (Ramp(first, IntImm(last.base.data_type, 1), self.lanes),), None)
            return E.Call("vrevs", (forwards,), forwards.dtype)
        pieces = self._pieces(e.buffer, e.indices) if self.on_npu and self.mask is None else None
        if pieces is not None:
            return _zipped(pieces)
        return self._gathered(e.buffer, e.indices)

    def _pieces(self, buffer: E.Buffer, indices: tuple[Expr, ...]) -> list[Expr] | None:
        """Loads of elements that follow each other, one, two or four of which in turn are those that the iterations read."""
        s, (shared, own) = self.loop, self._terms(self.simplify(position(buffer.shape, indices)))
        if not is_const(s.step, 1) or own.flags & E.F_LOAD or variables(own) & self.of.keys() != {s.loop_var}:
            return None
        for by in (n for n in (1, 2, 4) if self.lanes % n == 0 and self.lanes > n):
            turn, mark = Var("turn", s.loop_var.data_type), self.arith.mark()
            self.arith.bind(turn, 0, self.lanes // by - 1)
            places = [p for n in range(by) if (p := self._place(own, turn, by, n)) is not None]
            self.arith.release(mark)
            if len(places) == by:
                whole, one = E.Buffer(buffer.data, buffer.dtype), IntImm(own.data_type, 1)
                starts = [self.simplify(Binary("add", shared, p)) for p in places]
                return [E.BufferLoad(whole, (Ramp(p, one, self.lanes // by),), None) for p in starts]
        return None

    def _place(self, e: Expr, turn: Var, by: int, n: int) -> Expr | None:
        """Where the elements begin that every `by`-th iteration from `n` on reads, if they follow each other."""
        kind, s = turn.data_type, self.loop
        ahead = Binary("add", Binary("mul", turn, IntImm(kind, by)), IntImm(kind, n))
        own = substitute(e, {s.loop_var: Binary("add", s.min, ahead)})
        own = self.simplify(_Uncarried(self.arith, self.simplify, turn, self.lanes // by - 1).expr(own))
        first = self.simplify(substitute(own, {turn: IntImm(kind, 0)}))
        return first if self.arith.difference(own, Binary("add", first, turn)) == (0, 0) else None

    def _gathered(self, buffer: E.Buffer, indices: tuple[Expr, ...]) -> Expr:
        """Elements that lie apart: offsets of 16 bits, which would wrap, from the buffer or from what all lanes share."""
        flat = self.simplify(position(buffer.shape, indices))
        if self._exist(buffer, indices) and _elements(buffer) * buffer.dtype.bytes <= _REACH:
            return E.BufferLoad(E.Buffer(buffer.data, buffer.dtype), (self._places(flat),), self.mask)
        if not self.on_npu:
            raise NoVectorForm
        shared, own = self._terms(flat)
        low, high = self._ranges(own)[0]
        from_memory = own.flags & E.F_LOAD and not self._exist(buffer, indices, own=True)
        if from_memory or (high - low) * buffer.dtype.bytes >= _REACH:
            raise NoVectorForm
        least = IntImm(flat.data_type, low)
        start = E.Pointer(buffer.dtype, buffer.data, self.simplify(Binary("add", shared, least)))
        places = self._places(self.simplify(Binary("sub", own, least)))
        return E.Call("vload_gather", (start, places), buffer.dtype.with_lanes(self.lanes), self.mask)

    def _places(self, e: Expr) -> Expr:
        places = self.vector(e)
        if places.dtype.bits not in (16, 32):
            raise NoVectorForm
        return places

    def _terms(self, e: Expr) -> tuple[Expr, Expr]:
        """A sum as that of the terms that all iterations share, and that of the others."""
        sums: list[Expr] = [IntImm(e.data_type, 0), IntImm(e.data_type, 0)]
        terms: list[tuple[str, Expr]] = [("add", e)]
        while terms:
            sign, term = terms.pop()
            if type(term) is Binary and term.op in ("add", "sub"):
                terms += [(sign, term.a), (sign if term.op == "add" else "sub" if sign == "add" else "add", term.b)]
            else:
                own = self._varies(term) or bool(term.flags & E.F_LOAD)
                sums[own] = Binary(sign, sums[own], term)
        return self.simplify(sums[0]), self.simplify(sums[1])

    def _varies(self, e: Expr) -> bool:
        """Whether an expression may differ between iterations."""
        return not variables(e).isdisjoint(self.of)

    def _ranges(self, *numbers: Expr) -> list[tuple[int, int]]:
        """What numbers can be in any iteration."""
        mark, s = self.arith.mark(), self.loop
        self.arith.bind_loop(s.loop_var, s.min, s.stop, s.step)
        found = [self.arith.range_of(e) for e in numbers]
        self.arith.release(mark)
        return found

    def _exist(self, buffer: E.Buffer, indices: tuple[Expr, ...], own: bool = False) -> bool:
        """Whether all places are known to be elements of a buffer. `own`: by the indices that differ between iterations."""
        extents = [e.value for e in buffer.shape if type(e) is IntImm]
        if len(extents) != len(indices):
            return False
        asked = [(i, extent) for i, extent in zip(indices, extents, strict=True) if not own or self._varies(i)]
        ranges = self._ranges(*(i for i, _ in asked))
        return all(low >= 0 and high < extent for (low, high), (_, extent) in zip(ranges, asked, strict=True))

    def _uniform_load(self, e: E.BufferLoad) -> Expr:
        """A load that is the same in all iterations; where only some of them do it, of an element that exists."""
        if self.guarded and (e.mask is not None or not self._exist(e.buffer, e.indices)):
            raise NoVectorForm
        return e

    def _call(self, e: E.Call) -> Expr:
        kind = e.dtype
        if e.op not in _LANEWISE or not isinstance(kind, DataType) or not kind.is_float or not kind.native_lanes:
            return self._other(e)
        if not any(_is_vector(self.expr(a)) for a in e.args):
            return e
        arguments = tuple([self.vector(a) for a in e.args])
        return E.Call(e.op, arguments, kind.with_lanes(self.lanes), attrs=e.attrs, span=e.span)

    def _other(self, e: Expr) -> Expr:
        """Any other expression must be the same in all iterations, and without effects."""
        if not is_pure(e) or any(self.expr(child) is not child for child in e.children()):
            raise NoVectorForm
        return e


def _is_vector(e: Expr) -> bool:
    return e.dtype.is_vector


def _elements(buffer: E.Buffer) -> int:
    return prod(e.value for e in buffer.shape if type(e) is IntImm)


class _Uncarried(Rewriter):
    """Quotients of what they are where a variable is 0, and remainders of that and the variable, where it carries nothing."""

    def __init__(self, arith: Arith, simplify: Callable[[Expr], Expr], turn: Var, most: int) -> None:
        super().__init__()
        self.arith, self.simplify, self.turn, self.most = arith, simplify, turn, most

    @rewrites(Binary)
    def rewrite_binary(self, e: Binary) -> Expr:
        e = e.map(self.expr)
        if e.op not in ("floordiv", "floormod") or type(e.b) is not IntImm or self.turn not in variables(e.a):
            return e
        kind, by = e.data_type, e.b.value
        zero, one = (self.simplify(substitute(e.a, {self.turn: IntImm(kind, n)})) for n in (0, 1))
        step = self.simplify(Binary("sub", one, zero))
        if type(step) is not IntImm or step.value < 0:
            return e
        more = Binary("mul", self.turn, step)
        if self.arith.difference(e.a, Binary("add", zero, more)) != (0, 0):
            return e
        for size in (n for n in range(by, 0, -1) if by % n == 0):
            rest = self.simplify(Binary("floormod", zero, IntImm(kind, size)))
            if type(rest) is IntImm and rest.value + step.value * self.most < size:
                first = Binary(e.op, zero, e.b)
                return first if e.op == "floordiv" else Binary("add", first, more)
        return e


def _zipped(vectors: list[Expr]) -> Expr:
    """Vectors interleaved: the first lane of each, the second of each, ..."""
    if len(vectors) == 1:
        return vectors[0]
    a, b = _zipped(vectors[::2]), _zipped(vectors[1::2])
    return E.Call("vzip", (a, b), a.data_type.with_lanes(2 * a.dtype.lanes), attrs=(("part", "all"),))


def _is_unit(index: Expr) -> bool:
    """Whether an index can be a vector access: a Ramp with a constant positive stride."""
    return type(index) is Ramp and type(index.stride) is IntImm and index.stride.value > 0


def _conversion(source: DataType, target: DataType) -> tuple[DataType, ...] | None:
    """The types through which vectors are converted so that each lane becomes what a scalar does; None: there are none.
    Conversions from and to uint32 take more than that.

    Floats become integers towards zero, limited to those of 32 bits, of which narrower types keep the low bits.
    """
    if not source.native_lanes or not target.native_lanes:
        return None
    if source.is_integer == target.is_integer:
        return (target,)
    if source.is_floating:
        return (FLOAT32, INT32, target)
    if source == "uint32":
        return None
    return (INT32, target)


def _has_vector_form(e: Binary) -> bool:
    """Whether the operator means the same on vectors of its operands' type."""
    dtype = e.a.dtype
    if dtype.is_bool:
        return e.op in (*_AS_MASK_OP, "bitand", "bitor", "bitxor")
    if not dtype.native_lanes or (dtype.is_bfloat and e.op in E.ARITHMETIC):
        return False
    if e.op == "mul":
        return dtype.bits > 8
    if e.op == "div":
        return dtype.is_integer or dtype.bits == 32
    return e.op != "mod" or dtype.is_integer


_STMT_RULES: dict[type, Callable[[Vectorizer, Stmt], Stmt | Body]] = table(
    method(S.Let, Vectorizer._let),
    method(S.BufferStore, Vectorizer._store),
    method(S.IfThenElse, Vectorizer._if),
    method(S.For, Vectorizer._for),
)
_EXPR_RULES: dict[type, Callable[[Vectorizer, Expr], Expr]] = table(
    method(Var, Vectorizer._var),
    method(Binary, Vectorizer._binary),
    method(E.Unary, Vectorizer._unary),
    method(E.Cast, Vectorizer._cast),
    method(E.Reinterpret, Vectorizer._reinterpret),
    method(E.Select, Vectorizer._select),
    method(E.BufferLoad, Vectorizer._load),
    method(E.Call, Vectorizer._call),
)
