"""Simplification of expressions under the facts of an `Arith`.

Results are equal to the input for all values, wrap-around included. Scalars of the index types become a normal form
(a sum with its constant last, products with constants multiplied out); other integers only lose constants. Floating
point is left as it is, but for the direction of comparisons.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import exprs as E
from ..ir.dtypes import BOOL, INT32, DataType, dtype
from ..ir.exprs import Binary, Call, Expr, IntImm
from ..ir.folding import ABSORBING, NEUTRAL, fold, wrap
from ..ir.rules import method, table
from ..ir.visit import located
from .arith import NEGATED, SWAPPED, Arith, Linear, truth
from .structure import is_pure, scalar_min_max

_SUMS = frozenset(("add", "sub", "mul"))
_QUOTIENT_OF = {"floormod": "floordiv", "mod": "div"}
_INDEX_TYPES = (INT32, dtype("int64"))
_EXACT_FLOAT = {"float32": 1 << 24, "float16": 1 << 11, "bfloat16": 1 << 8}
_ROUNDS = 8
"""The maximum number of times a node is simplified again after a rule changed it; one or two reach the normal form."""
_NEUTRAL = {**NEUTRAL, "bitor": 0, "bitxor": 0}
_ABSORBING = {**ABSORBING, "bitand": 0}
_LEAVES = E.LEAVES | {E.AddressOf}
_CHANGED = E.F_OPERATOR | E.F_MASK | E.F_POINTER | E.flags_of_calls("min", "max")
"""What an expression has one of that a rule changes."""


class Simplifier:
    """Rewrites expressions; the facts it may use are those `arith` holds at the time of the call."""

    def __init__(self, arith: Arith) -> None:
        self.arith = arith
        self._memo: dict[Expr, Expr] = {}
        self._epoch = -1

    def expr(self, e: Expr) -> Expr:
        """The simplified expression; `e` itself when there is nothing to do."""
        if not e.flags & _CHANGED or type(e) in _LEAVES:
            return e
        if self._epoch != self.arith.epoch:
            self._memo.clear()
            self._epoch = self.arith.epoch
        found = self._memo.get(e)
        if found is None:
            found = self._once(e)
            if found is not e:
                found = self._again(found)
            self._memo[e] = self._memo[found] = found
        return found

    def _again(self, e: Expr) -> Expr:
        """What a rule made of an expression, simplified until it stays."""
        for _ in range(_ROUNDS):
            if type(e) in _LEAVES or self._memo.get(e) is e:
                break
            new = self._once(e)
            if new is e:
                break
            e = new
        return e

    def _once(self, e: Expr) -> Expr:
        rule = _RULES.get(type(e))
        if rule is None:
            return e.map(self.expr)
        new = rule(self, e)
        return located(new, e.span) if new is not e and isinstance(e, E.PlacedExpr) else new

    # -- operators

    def _binary(self, e: Binary) -> Expr:
        if not e.a.dtype.is_scalar:
            return self._vector_binary(e)
        integer = e.a.dtype.is_integer
        if integer and e.op in _SUMS and e.dtype in _INDEX_TYPES:
            if _is_normal_sum(e):
                return e
            if is_pure(e):
                return self._sum(e)
        e = e.map(self.expr)
        if not integer:
            return Binary(SWAPPED[e.op], e.b, e.a) if e.op in SWAPPED else e
        if type(e.a) is IntImm and type(e.b) is IntImm:
            value = fold(e.op, e.a.value, e.b.value, e.a.dtype)
            return e if value is None else IntImm(e.data_type, value)
        if type(e.a) is IntImm and e.op in E.COMMUTATIVE and e.op not in E.LOGICAL:
            e = Binary(e.op, e.b, e.a)
        rule = _BINARY_RULES.get(e.op)
        return e if rule is None else rule(self, e)

    def _vector_binary(self, e: Binary) -> Expr:
        e = e.map(self.expr)
        return Binary(SWAPPED[e.op], e.b, e.a) if e.op in SWAPPED else e

    def _sum(self, e: Binary) -> Expr:
        """A sum in normal form: positive terms in the order they occur, then the constant, negative terms subtracted."""
        form = Linear()
        atoms: dict[int, Expr] = {}
        self._collect(e, 1, form, atoms, e.data_type)
        self._join(form, atoms)
        new = self._rebuild(e, form, atoms)
        if self.arith.interner.same(e, new):
            return e
        self._memo[new] = new  # of simplified parts
        return new

    def _collect(self, e: Expr, scale: int, form: Linear, atoms: dict[int, Expr], dtype: DataType) -> None:
        if type(e) is Binary and e.op in ("add", "sub"):
            self._collect(e.a, scale, form, atoms, dtype)
            self._collect(e.b, scale if e.op == "add" else -scale, form, atoms, dtype)
            return
        if type(e) is Binary and e.op == "mul":
            a, b = self.expr(e.a), self.expr(e.b)
            if type(a) is IntImm:
                a, b = b, a
            if type(b) is IntImm:
                whole = self._divided(a, b.value)
                a, factor = (whole[0], whole[1]) if whole else (a, b.value)
                self._collect(a, wrap(scale * factor, dtype), form, atoms, dtype)
                return
            e = e if a is e.a and b is e.b else Binary("mul", a, b)
        else:
            e = self.expr(e)
        if type(e) is IntImm:
            form.const = wrap(form.const + scale * e.value, dtype)
        elif type(e) is Binary and e.op in ("add", "sub"):
            self._collect(e, scale, form, atoms, dtype)
        else:
            key = self.arith.interner.key(e)
            atoms.setdefault(key, e)
            form.terms[key] = wrap(form.terms.get(key, 0) + scale, dtype)

    def _join(self, form: Linear, atoms: dict[int, Expr]) -> None:
        """`x // c * c + x % c` as x."""
        for key, factor in list(form.terms.items()):
            rest = atoms[key]
            if (
                type(rest) is not Binary
                or rest.op not in _QUOTIENT_OF
                or type(rest.b) is not IntImm
                or rest.b.value < 1
            ):
                continue
            quotient = self.expr(Binary(_QUOTIENT_OF[rest.op], rest.a, rest.b))
            other = self.arith.interner.key(quotient)
            if form.terms.get(other) == wrap(factor * rest.b.value, rest.data_type):
                del form.terms[key], form.terms[other]
                self._collect(rest.a, factor, form, atoms, rest.data_type)
                self._join(form, atoms)
                return

    def _divided(self, e: Expr, factor: int) -> tuple[Expr, int] | None:
        """`x // c * factor` as x times a number, where assumptions tell that x is a multiple of c."""
        if type(e) is not Binary or e.op not in ("floordiv", "div") or type(e.b) is not IntImm or e.b.value < 1:
            return None
        if factor % e.b.value or self.arith.remainder(e.a, e.b.value) != 0:
            return None
        return e.a, factor // e.b.value

    def _rebuild(self, e: Binary, form: Linear, atoms: dict[int, Expr]) -> Expr:
        dtype, const = e.data_type, form.const
        least = dtype.integer_range()[0]
        live = [(atoms[k], f) for k, f in form.terms.items() if f]
        negative = [(a, f) for a, f in live if least < f < 0]
        positive = [(a, f) for a, f in live if not least < f < 0]
        out: Expr | None = None
        for atom, factor in positive:
            term = atom if factor == 1 else Binary("mul", atom, IntImm(dtype, factor))
            out = term if out is None else Binary("add", out, term)
        if out is None and (const > 0 or not negative):
            out, const = IntImm(dtype, const), 0
        if out is None:
            atom, factor = negative.pop(0)
            out = Binary("mul", atom, IntImm(dtype, factor))
        if const > 0 or const == least:
            out, const = Binary("add", out, IntImm(dtype, const)), 0
        for atom, factor in negative:
            out = Binary("sub", out, atom if factor == -1 else Binary("mul", atom, IntImm(dtype, -factor)))
        return out if const == 0 else Binary("sub", out, IntImm(dtype, -const))

    def _neutral(self, e: Binary) -> Expr:
        """`x + 0`, `x * 1`, `x << 0`, `x & 0`, ... on any integer type."""
        if type(e.b) is not IntImm:
            return e
        if e.b.value == _NEUTRAL.get(e.op):
            return e.a
        return e.b if e.b.value == _ABSORBING.get(e.op) and is_pure(e.a) else e

    def _min_max(self, e: Binary) -> Expr:
        low, high = self.arith.difference(e.a, e.b)
        if e.op == "max":
            low, high = -high, -low
        if high <= 0 and is_pure(e.b):
            return e.a
        if low >= 0 and is_pure(e.a):
            return e.b
        inner = e.a
        if self._holds_inside(e) and is_pure(e.b):
            return inner
        if type(e.b) is IntImm and type(inner) is Binary and inner.op == e.op and type(inner.b) is IntImm:
            value = fold(e.op, inner.b.value, e.b.value, e.data_type)
            assert value is not None
            return Binary(e.op, inner.a, IntImm(e.data_type, value))
        return e

    def _holds_inside(self, e: Binary) -> bool:
        """Whether `max(min(a, b), c)` is the inner minimum because neither is less than c; the other way round, too."""
        inner = e.a
        if type(inner) is not Binary or (e.op, inner.op) not in (("max", "min"), ("min", "max")):
            return False
        differences = (self.arith.difference(x, e.b) for x in (inner.a, inner.b))
        return all(low >= 0 if e.op == "max" else high <= 0 for low, high in differences)

    def _quotient(self, e: Binary) -> Expr:
        """Quotient and remainder by a positive constant."""
        if type(e.b) is not IntImm or e.b.value <= 0 or not is_pure(e.a):
            return e
        by, div = e.b.value, e.op in ("floordiv", "div")
        if by == 1:
            return e.a if div else IntImm(e.data_type, 0)
        low, high = self.arith.range_of(e.a)
        rest = None if div else self.arith.remainder(e.a, by)
        if rest is not None and (rest == 0 or low >= 0 or e.op == "floormod"):
            return IntImm(e.data_type, rest)
        least = 0 if e.op in ("floordiv", "floormod") else 1 - by
        if least <= low and high < by:
            return IntImm(e.data_type, 0) if div else e.a
        parts = self._split_by(e, by, div)
        return e if parts is None else parts

    def _split_by(self, e: Binary, by: int, div: bool) -> Expr | None:
        """`(by * x + r) // by` is x and the remainder r, where `0 <= r < by`."""
        form = self.arith.exact(e.a)
        whole = Linear({k: f for k, f in form.terms.items() if f % by == 0})
        if not whole.terms:
            return None
        rest = Linear({k: f for k, f in form.terms.items() if f % by}, form.const % by)
        whole.const = form.const - rest.const
        low, high = self.arith.bounds(rest)
        agrees = e.op in ("floordiv", "floormod") or low == high == 0 or self.arith.range_of(e.a)[0] >= 0
        if low < 0 or high >= by or not agrees:
            return None
        if div:
            rest = Linear({k: f // by for k, f in whole.terms.items()}, whole.const // by)
        return self._rebuild(e, rest, self.arith.atoms)

    def _comparison(self, e: Binary) -> Expr:
        if e.op in SWAPPED:
            e = Binary(SWAPPED[e.op], e.b, e.a)
        if not is_pure(e):
            return e
        low, high = self.arith.difference(e.a, e.b)
        known = truth(e.op, low, high)
        if known is not None:
            return IntImm(BOOL, int(known))
        if e.op == "ne" and not e.a.dtype.is_bool and (low >= 0 or high <= 0):
            e = Binary("lt", e.b, e.a) if low >= 0 else Binary("lt", e.a, e.b)
        return self._cancel(e)

    def _cancel(self, e: Binary) -> Expr:
        """Drop what both sides of a comparison share, and collect the constants, where neither side can wrap."""
        if e.a.dtype not in _INDEX_TYPES or not any(type(x) is Binary and x.op in _SUMS for x in (e.a, e.b)):
            return e
        a, b = self.arith.exact(e.a), self.arith.exact(e.b)
        moves = (a.const and (b.const or not b.terms)) or (b.const and (a.const or not a.terms))
        if not moves and not any(k in b.terms for k in a.terms):
            return e
        form = a.add(b, -1)
        left = Linear({k: f for k, f in form.terms.items() if k in a.terms and (f > 0) == (a.terms[k] > 0)})
        right = Linear({k: -f for k, f in form.terms.items() if k not in left.terms})
        if not left.terms or (right.terms and form.const > 0):
            left.const = form.const
        else:
            right.const = -form.const
        least, most = e.a.dtype.range()
        if any(not least <= x <= most for side in (left, right) for x in self.arith.bounds(side)):
            return e
        base = Binary("sub", e.a, e.b)
        sides = [self._rebuild(base, side, self.arith.atoms) for side in (left, right)]
        same = self.arith.interner.same
        return e if same(sides[0], e.a) and same(sides[1], e.b) else Binary(e.op, *sides)

    def _logical(self, e: Binary) -> Expr:
        decides = 0 if e.op == "and" else 1
        for this, other in ((e.a, e.b), (e.b, e.a)):
            if type(this) is IntImm:
                if this.value != decides:
                    return other
                if this is e.a or is_pure(e.a):
                    return this
        return e.a if self.arith.interner.same(e.a, e.b) and is_pure(e.a) else e

    # -- other nodes

    def _unary(self, e: E.Unary) -> Expr:
        e = e.map(self.expr)
        a = e.a
        if e.op == "not":
            new = negate(a)
            return e if type(new) is E.Unary and new.a is a else new
        if e.op == "bitnot" and type(a) is IntImm:
            return IntImm(a.dtype, wrap(~a.value, a.dtype) if not a.dtype.is_bool else 1 - a.value)
        if e.op == "bitnot" and type(a) is E.ConstMask:
            return E.ConstMask(~a.bits, a.lanes)
        return e

    def _select(self, e: E.Select) -> Expr:
        e = e.map(self.expr)
        if type(e.condition) is IntImm:
            return e.true_value if e.condition.value else e.false_value
        return e.true_value if self.arith.interner.same(e.true_value, e.false_value) and is_pure(e.condition) else e

    def _cast(self, e: E.Cast) -> Expr:
        e = e.map(self.expr)
        value, dtype = e.value, e.dtype
        if value.dtype is dtype:
            return value
        if type(value) is IntImm and dtype.is_integer:
            return IntImm(dtype, wrap(value.value, dtype))
        if type(value) is IntImm and dtype.is_floating and abs(value.value) <= _EXACT_FLOAT.get(dtype, 0):
            return E.FloatImm(dtype, value.value)
        return e

    def _tail(self, e: E.TailMask) -> Expr:
        e = e.map(self.expr)
        if type(e.count) is IntImm and 0 <= e.count.value <= e.lanes:
            return E.ConstMask((1 << e.count.value) - 1, e.lanes)
        return e

    def _call(self, e: Call) -> Expr:
        e = e.map(self.expr)
        operator = scalar_min_max(e)
        if operator is not None:
            return self.expr(Binary(operator, *e.args))
        if type(e.mask) is E.ConstMask and e.mask.all_true:
            return e.replace(mask=None, r=None)
        return e

    def _load(self, e: E.BufferLoad) -> Expr:
        e = e.map(self.expr)
        full = type(e.mask) is E.ConstMask and e.mask.all_true
        return E.BufferLoad(e.buffer, e.indices) if full else e

    def _pointer(self, e: E.Pointer) -> Expr:
        e = e.map(self.expr)
        base = e.base
        if type(base) is E.Pointer and base.elem is e.elem and base.offset.dtype is e.offset.dtype:
            return E.Pointer(e.elem, base.base, self.expr(Binary("add", base.offset, e.offset)))
        return e


def _is_normal_sum(e: Binary) -> bool:
    """Whether a product of two leaves, or a sum of different variables or their multiples, is in normal form already (the
    most frequent cases)."""
    a, b = e.a, e.b
    if e.op == "mul":
        return type(a) is E.Var and (b.value > 1 if type(b) is IntImm else type(b) is E.Var)
    if type(b) is IntImm:
        if b.value < 1:
            return False
        terms = []
    elif e.op == "sub" and type(b) is not E.Var:
        return False
    else:
        terms = [b]
    while type(a) is Binary and a.op == "add":
        terms.append(a.b)
        a = a.a
    found: set[Expr] = set()
    for term in (*terms, a):
        if type(term) is Binary and term.op == "mul" and type(term.b) is IntImm and term.b.value > 1:
            term = term.a
        if type(term) is not E.Var or term in found:
            return False
        found.add(term)
    return True


def negate(cond: Expr) -> Expr:
    """`not cond`, with comparisons inverted where that is the same for NaN."""
    if type(cond) is IntImm:
        return IntImm(BOOL, 1 - cond.value)
    if type(cond) is E.Unary and cond.op == "not":
        return cond.a
    if type(cond) is Binary and cond.op in NEGATED:
        op, a, b = cond.op, cond.a, cond.b
        if op in ("eq", "ne") or getattr(a.dtype, "is_integer", False):
            op = NEGATED[op]
            return Binary(SWAPPED[op], b, a) if op in SWAPPED else Binary(op, a, b)
    return E.Unary("not", cond)


_BINARY_RULES: dict[str, Callable[[Simplifier, Binary], Expr]] = {
    **dict.fromkeys(("add", "sub", "mul", "bitand", "bitor", "bitxor"), Simplifier._neutral),
    **dict.fromkeys(("shl", "shr"), Simplifier._neutral),
    **dict.fromkeys(("min", "max"), Simplifier._min_max),
    **dict.fromkeys(("div", "mod", "floordiv", "floormod"), Simplifier._quotient),
    **dict.fromkeys(E.COMPARISON, Simplifier._comparison),
    **dict.fromkeys(E.LOGICAL, Simplifier._logical),
}
_RULES: dict[type, Callable[[Simplifier, Expr], Expr]] = table(
    method(Binary, Simplifier._binary),
    method(E.Unary, Simplifier._unary),
    method(E.Select, Simplifier._select),
    method(E.Cast, Simplifier._cast),
    method(E.TailMask, Simplifier._tail),
    method(Call, Simplifier._call),
    method(E.BufferLoad, Simplifier._load),
    method(E.Pointer, Simplifier._pointer),
)
