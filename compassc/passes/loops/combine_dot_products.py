"""Multiply bytes that are added one after another four at a time.

Before: any module, of which ReuseLoads does not know yet: equal operands are found by their structure. After: statements of the entry in a row that add products of bytes to vectors of 32 bits become dot products (`vqdpa`, or `vqdot` and a sum where
the total might leave 32 bits): four vectors of bytes are interleaved once for all that they are multiplied by, four bytes
that all lanes share are one word. Bytes that are added alone are products with 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from compass_core.dataclass import dataclass
from compassc.analysis.buffers import position
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32, VECTOR_BITS, DataType, dtype
from compassc.ir.exprs import Binary, Broadcast, Expr, IntImm, Var
from compassc.ir.stmts import Body, IRModule, PrimFunc, Stmt
from compassc.ir.visit import walk_exprs
from compassc.passes.loops._facts import Scoped
from compassc.passes.loops._functions import on_entry

NAME = "CombineDotProducts"
_BYTES = ("int8", "uint8")
INT8 = dtype("int8")
_LARGEST, _PRODUCT = (1 << 31) - 1, 1 << 15
_REGISTER, _WORD = VECTOR_BITS // 8, 4
_WORDS = _REGISTER // _WORD
"""Bytes of a vector register, those of a word, and words of a register."""


def run(module: IRModule) -> IRModule:
    return on_entry(module, lambda f: _Dots(f).function(f))


@dataclass(frozen=True)
class _Product:
    """Vectors of bytes whose product is added to a variable; the first one is no number that all lanes share."""

    var: Var
    first: Expr
    second: Expr


class _Dots(Scoped):
    def __init__(self, f: PrimFunc) -> None:
        super().__init__(f)
        self.bounded: set[Var] = set()
        """Variables whose sums cannot leave 32 bits, in any order."""

    def body(self, body: Body) -> Body:
        made: list[Stmt] = []
        changed, at = False, 0
        while at < len(body):
            run = _run(body[at:])
            at += max(len(run), 1)
            found = _Run(self, run).made() if run else []
            if found:
                changed = True
                made += found
                continue
            for s in body[at - max(len(run), 1) : at]:
                if isinstance(s, S.Let) and _fits(s, body[at:]):
                    self.bounded.add(s.var)
                new = self.stmt(s)
                assert isinstance(new, Stmt)
                changed |= new is not s
                made.append(new)
        return tuple(made) if changed else body


def _run(body: Sequence[Stmt]) -> list[_Product]:
    """The products that the first statements add to variables, none of which are read otherwise."""
    found: list[_Product] = []
    assigned: set[Var] = set()
    for s in body:
        product = _product(s)
        if product is None:
            break
        assigned.add(product.var)
        found.append(product)
    if any(x in assigned for p in found for e in (p.first, p.second) for x in walk_exprs(e)):
        return []
    return found


def _product(s: Stmt) -> _Product | None:
    """What a statement adds to a variable, where that is a product of bytes, or bytes."""
    if not isinstance(s, S.Assign) or not isinstance(s.value, Binary) or s.value.op != "add":
        return None
    kind = s.var.dtype
    if not isinstance(kind, DataType) or kind.element_of is not INT32:
        return None
    term = s.value.b if s.value.a is s.var else s.value.a if s.value.b is s.var else None
    if term is None:
        return None
    if isinstance(term, Binary) and term.op == "mul":
        a, b = _narrow(term.a), _narrow(term.b)
    else:
        a, b = _narrow(term), Broadcast(IntImm(INT8, 1), kind.lanes)
    if a is None or b is None or (a.data_type.element_of == b.data_type.element_of == "uint8"):
        return None
    if isinstance(a, Broadcast):
        a, b = b, a
    return None if isinstance(a, Broadcast) else _Product(s.var, a, b)


def _narrow(e: Expr) -> Expr | None:
    """The bytes that a vector of 32 bits was converted from."""
    if isinstance(e, Broadcast):
        value = e.value
        if isinstance(value, IntImm) and -128 <= value.value < 128:
            return Broadcast(IntImm(INT8, value.value), e.lanes)
        if isinstance(value, E.Cast) and str(value.value.dtype) in _BYTES:
            return Broadcast(value.value, e.lanes)
        return None
    if isinstance(e, E.Call) and e.op == "cast" and e.mask is None and e.r is None:
        given = e.args[0]
        return given if str(given.data_type.element_of) in _BYTES else None
    return None


def _fits(s: S.Let, rest: Sequence[Stmt]) -> bool:
    """Whether a variable begins with a constant, and all that is added to it are so few products that no sum of them leaves
    32 bits."""
    if not isinstance(s.value, Broadcast) or not isinstance(s.value.value, IntImm):
        return False
    count = _added(s.var, rest)
    return count is not None and abs(s.value.value.value) + count * _PRODUCT < _LARGEST


def _added(var: Var, body: Sequence[Stmt]) -> int | None:
    """How many products are added to a variable at most; None where that is not known, or something else is done to it."""
    total = 0
    for s in body:
        if isinstance(s, (S.Assign, S.SetElement)) and s.var is var:
            if _product(s) is None:
                return None
            total += 1
        inner = [_added(var, b) for b in s.bodies()]
        if None in inner:
            return None
        count = sum(i for i in inner if i is not None)
        if count and isinstance(s, S.For):
            if not (isinstance(s.min, IntImm) and isinstance(s.stop, IntImm)):
                return None
            count *= max(s.stop.value - s.min.value, 0)
        elif count and not isinstance(s, S.IfThenElse):
            return None
        total += count
    return total


class _Run:
    """Statements in a row, as dot products. `lets`: operands that are made, by the structure of what they are made of."""

    def __init__(self, at: _Dots, products: Sequence[_Product]) -> None:
        self.at, self.products = at, products
        self.key = at.facts.interner.key
        self.lets: dict[tuple[object, ...], Var] = {}
        self.body: list[Stmt] = []

    def made(self) -> list[Stmt]:
        """The statements; empty where no variable has two products."""
        of: dict[Var, list[_Product]] = {}
        for p in self.products:
            of.setdefault(p.var, []).append(p)
        if max(map(len, of.values())) < 2 or not all(_uniform(found) for found in of.values()):
            return []
        for first in range(0, max(map(len, of.values())), _REGISTER):
            pieces = {var: found[first : first + _REGISTER] for var, found in of.items()}
            whole = {var: self._whole([p.second for p in piece]) for var, piece in pieces.items()}
            for number in range(_WORDS):
                for var, piece in pieces.items():
                    four = piece[number * _WORD : (number + 1) * _WORD]
                    if four:
                        self._add(var, four, whole[var], number)
        return self.body

    def _add(self, var: Var, four: list[_Product], whole: Var | None, number: int) -> None:
        x = self._operand([p.first for p in four])
        if whole is None:
            y = self._operand([p.second for p in four])
        else:
            y = _times(self._word(whole, number), x.dtype.lanes)
        kind = var.data_type
        if var in self.at.bounded:
            value: Expr = E.Call("vqdpa", (var, x, y), kind)
        else:
            value = Binary("add", var, E.Call("vqdot", (x, y), kind))
        self.body.append(S.Assign(var, value))

    def _let(self, name: str, key: tuple[object, ...], value: Expr) -> Var:
        if key not in self.lets:
            self.lets[key] = Var(name, value.dtype)
            self.body.append(S.Let(self.lets[key], value))
        return self.lets[key]

    def _whole(self, shared: list[Expr]) -> Var | None:
        """One load of the bytes that all lanes share, where they follow each other in memory."""
        loads = [e.value for e in shared if isinstance(e, Broadcast) and isinstance(e.value, E.BufferLoad)]
        if len(loads) != len(shared) or len(loads) < 2 or any(x.mask is not None for x in loads):
            return None
        first, facts = loads[0], self.at.facts
        if any(x.buffer.data is not first.buffer.data for x in loads):
            return None
        places = [position(x.buffer.shape, x.indices) for x in loads]
        if any(facts.difference(place, places[0]) != (n, n) for n, place in enumerate(places)):
            return None
        indices = (*first.indices[:-1], E.Ramp(first.indices[-1], IntImm(INT32, 1), _REGISTER))
        mask = E.ConstMask((1 << len(loads)) - 1, _REGISTER) if len(loads) < _REGISTER else None
        key = ("whole", *map(self.key, loads))
        return self._let("bytes", key, E.BufferLoad(first.buffer, indices, mask))

    def _word(self, whole: Var, number: int) -> Var:
        """Four bytes of a register in all words of another."""
        words = E.Reinterpret(INT32.with_lanes(_WORDS), whole)
        spread = E.Call("vreplic", (words, IntImm(INT32, number)), words.data_type)
        return self._let("word", (whole, number), E.Reinterpret(whole.data_type, spread))

    def _operand(self, four: list[Expr]) -> Expr:
        """For each lane its bytes of up to four vectors, side by side."""
        kind = four[0].data_type
        count = kind.lanes * _WORD
        if all(isinstance(e, Broadcast) for e in four):
            word = _packed([e.value for e in four if isinstance(e, Broadcast)])
            key = ("packed", *map(self.key, four))
            register = Broadcast(word, _WORDS)
            return _times(self._let("word", key, E.Reinterpret(kind.element_of.with_lanes(_REGISTER), register)), count)
        zero: Expr = Broadcast(IntImm(kind.element_of, 0), kind.lanes)
        a, b, c, d = [*map(self._vector, four), *[zero] * (_WORD - len(four))]
        return self._zip("fours", self._zip("even", a, c), self._zip("odd", b, d))

    def _vector(self, e: Expr) -> Expr:
        return e if isinstance(e, (Broadcast, Var)) else self._let("part", (self.key(e),), e)

    def _zip(self, name: str, a: Expr, b: Expr) -> Expr:
        """Two vectors interleaved, once for all that need it: it takes several registers."""
        kind = a.data_type.with_lanes(2 * a.data_type.lanes)
        made = E.Call("vzip", (a, b), kind, attrs=(("part", "all"),))
        return self._let(name, ("zip", self.key(a), self.key(b)), made)


def _uniform(products: list[_Product]) -> bool:
    return len({(p.first.dtype, p.second.dtype) for p in products}) == 1


def _times(register: Expr, lanes: int) -> Expr:
    """A register as often as lanes need it."""
    count, kind = -(-lanes // _REGISTER), register.data_type
    whole = register
    if count > 1:
        whole = E.Call("vconcat", (register,) * count, kind.with_lanes(count * _REGISTER), attrs=(("part", "all"),))
    return whole if lanes % _REGISTER == 0 else E.Reinterpret(kind.with_lanes(lanes), whole)


def _packed(values: list[Expr]) -> Expr:
    """Bytes as one word, the first one lowest."""
    if all(isinstance(v, IntImm) for v in values):
        whole = sum((v.value & 255) << (8 * n) for n, v in enumerate(values) if isinstance(v, IntImm))
        return IntImm(INT32, whole - (whole >> 31 << 32))
    made: Expr | None = None
    for n, v in enumerate(values):
        byte: Expr = Binary("bitand", E.Cast(INT32, v), IntImm(INT32, 255))
        part = Binary("shl", byte, IntImm(INT32, 8 * n)) if n else byte
        made = part if made is None else Binary("bitor", made, part)
    assert made is not None
    return made
