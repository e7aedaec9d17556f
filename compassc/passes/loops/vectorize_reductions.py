"""Make vectors of vectorised loops, and variables of the elements that loops read and write over and over.

Before: any module. After: the entry has no vectorised loops, as far as these have a vector form (`_lanes`). An element whose place no turn of the loop changes is loaded (or has the value that was stored just before) where the loop
begins, is a variable in it and is stored where it ends. A `LaneUpdate` has a vector of partial results, which are joined
across the lanes after the loop. Products that are added to vectors of float32 are fused, rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from compass_core import targets
from compass_core.dataclass import dataclass
from compassc.analysis.arith import Linear
from compassc.analysis.buffers import position
from compassc.analysis.conditions import conjuncts, guarded
from compassc.analysis.statements import defined_vars
from compassc.analysis.structure import variables
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import FLOAT32, INT32, DataType, dtype
from compassc.ir.exprs import Binary, Buffer, Expr, IntImm, Var
from compassc.ir.stmts import Body, IRModule, PrimFunc, Stmt
from compassc.ir.visit import Rewriter, Rewritten, rewrites, walk_exprs, walk_stmts
from compassc.passes.loops._facts import Scoped
from compassc.passes.loops._functions import on_entry
from compassc.passes.loops._lanes import LaneUpdate, across, identity, vectors
from compassc.passes.loops.lower_thread_binding import is_shared_out

NAME = "VectorizeReductions"
OWN = ("private", "lsram")
"""Memory that other TECs do not see, so that storing what is there already is no race."""
_LARGEST = (1 << 31) - 1


def run(module: IRModule) -> IRModule:
    target = targets.load(module.target)
    return on_entry(module, lambda f: _accumulators(vectors(f, target), target))


def _accumulators(f: PrimFunc, target: targets.Target) -> PrimFunc:
    """The function with accumulators in variables and no `LaneUpdate`."""
    return _Promote(f, target.version == "X2").function(f)


@dataclass
class _Place:
    """An element, or the vector of them that an access reaches, and what is done to it in a loop."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    mask: Expr | None
    stores: list[Stmt] = field(default_factory=list)
    loads: list[E.BufferLoad] = field(default_factory=list)
    guards: list[Expr] = field(default_factory=list)
    """Conditions that hold wherever it is accessed, and that the loop does not change."""
    always: bool = True
    """Whether there are no other conditions than these."""

    span: tuple[Linear, int] | None = None

    @property
    def kind(self) -> DataType:
        lanes = self.indices[-1].dtype.lanes
        return self.buffer.dtype.with_lanes(lanes) if lanes > 1 else self.buffer.dtype

    @property
    def joins(self) -> list[LaneUpdate]:
        return [s for s in self.stores if isinstance(s, LaneUpdate)]


class _Promote(Scoped):
    def __init__(self, f: PrimFunc, sums_of_halves: bool) -> None:
        super().__init__(f)
        self.sums_of_halves = sums_of_halves
        """Whether products of halves can be added four at a time."""
        self._mentioned: dict[Expr, set[Var]] = {}

    def mentioned(self, e: Expr) -> set[Var]:
        """The variables in an expression: each loop around asks for them again."""
        found = self._mentioned.get(e)
        if found is None:
            found = self._mentioned[e] = variables(e)
        return found

    def body(self, body: Body) -> Body:
        made: list[Stmt] = []
        changed = False
        for run in _runs(body):
            found = self._loop(None, run, made) if _updates(run[0]) else []
            for s in () if found else run:
                new = self._one(s, made)
                changed |= len(new) != 1 or new[0] is not s
                made += new
            changed |= bool(found)
            made += found
        return tuple(made) if changed else body

    def _one(self, s: Stmt, before: list[Stmt]) -> list[Stmt]:
        """What a statement becomes. `before`: the statements in front of it, of which initial stores are taken."""
        if isinstance(s, LaneUpdate):
            return self._loop(None, (s,), before)
        if isinstance(s, S.For) and not is_shared_out(s):
            found = self._loop(s, s.body, before)
            if found:
                return found
        new = self.stmt(s)
        return [] if new is None else [new] if isinstance(new, Stmt) else list(new)

    def _loop(self, s: S.For | None, body: Body, before: list[Stmt]) -> list[Stmt]:
        """A loop (None: statements that are run once) with the places that it accumulates in as variables; empty where
        there are none."""
        inside = set(defined_vars(body)) | ({s.loop_var} if s is not None else set())
        seen = _Places(self, inside, _changing(body))
        if not seen.may_have_any(body):
            return []
        mark = self.facts.mark()
        places = seen.of(body)
        if s is not None:
            self.enter(s)
        chosen = [p for p in places if self._promotable(p, places, s is None)]
        self.facts.release(mark)
        if not chosen:
            return []
        counts = len(body) if s is None else self._counts(s)
        accumulators = [_Accumulator(p, counts, before, self) for p in chosen]
        made: list[Stmt] = [x for a in accumulators for x in a.start]
        if s is None:
            made += _Replace(accumulators).body(body)
        else:
            loop = s.replace(body=_Replace(accumulators).body(body))
            new = self.stmt(loop)
            assert new is not None
            made += [new] if isinstance(new, Stmt) else new
        made += [x for a in accumulators for x in a.end]
        return made

    def _promotable(self, place: _Place, places: list[_Place], alone: bool) -> bool:
        joins = place.joins
        if joins and (place.loads or len(joins) != len(place.stores) or len({j.op for j in joins}) > 1):
            return False
        if joins and len({(_lanes(j), j.other is None) for j in joins}) > 1:
            return False
        if not joins and (not place.loads or len(place.stores) < 1 + alone):
            return False
        if not place.always and (place.buffer.scope not in OWN or not self._exists(place)):
            return False
        return all(p is place or self._apart(place, p) for p in places if p.buffer.data is place.buffer.data)

    def _exists(self, place: _Place) -> bool:
        """Whether an element is one of its buffer for sure."""
        if not place.buffer.shape or place.mask is not None or _anywhere(place):
            return False
        ranges = []
        for index in place.indices:
            low, high = self.facts.range_of(index.base if isinstance(index, E.Ramp) else index)
            if isinstance(index, E.Ramp):
                if not isinstance(index.stride, IntImm):
                    return False
                high += index.stride.value * (index.lanes - 1)
            ranges.append((low, high))
        extents = [e.value if isinstance(e, IntImm) else 0 for e in place.buffer.shape]
        return all(0 <= low and high < extent for (low, high), extent in zip(ranges, extents))

    def _apart(self, a: _Place, b: _Place) -> bool:
        """Whether two places have no element in common."""
        if len(a.indices) != len(b.indices) or a.buffer.shape != b.buffer.shape or _anywhere(a) or _anywhere(b):
            return False
        first, second = (self._span(p) for p in (a, b))
        low, high = self.facts.bounds(first[0].add(second[0], -1))
        return low >= second[1] or -high >= first[1]

    def _span(self, place: _Place) -> tuple[Linear, int]:
        """The first element of a place in its buffer, and how many follow it at most."""
        if place.span is not None:
            return place.span
        *outer, last = place.indices
        base, count = (last, 1) if not isinstance(last, E.Ramp) else (last.base, last.lanes)
        if isinstance(last, E.Ramp) and isinstance(last.stride, IntImm):
            count = (last.lanes - 1) * last.stride.value + 1
        place.span = self.facts.exact(position(place.buffer.shape, (*outer, base))), count
        return place.span

    def _counts(self, s: S.For) -> int | None:
        """How many statements a loop runs at most; None where that is not known."""
        most = max(self.facts.difference(s.stop, s.min)[1], 0)
        inner = [self._counts(x) for x in s.body if isinstance(x, S.For)]
        inner += [1 for x in s.body if not isinstance(x, S.For)]
        return most * sum(i for i in inner if i is not None) if None not in inner else None


def _anywhere(place: _Place) -> bool:
    """Whether the lanes of a place may lie anywhere in its buffer: those of a gather."""
    return any(i.dtype.is_vector and not isinstance(i, E.Ramp) for i in place.indices)


def _runs(body: Body) -> list[Body]:
    """The statements in pieces: those that update elements one after another are one."""
    runs: list[list[Stmt]] = []
    for s in body:
        if runs and _updates(s) and _updates(runs[-1][-1]):
            runs[-1].append(s)
        else:
            runs.append([s])
    return [tuple(run) for run in runs]


def _updates(s: Stmt) -> bool:
    """Whether a statement only changes an element by its old value."""
    if isinstance(s, LaneUpdate):
        return True
    if not isinstance(s, S.BufferStore):
        return False
    loads = walk_exprs(s.value, E.F_LOAD)
    return any(isinstance(e, E.BufferLoad) and e.buffer.data is s.buffer.data for e in loads)


def _lanes(update: LaneUpdate) -> int:
    return update.value.dtype.lanes


def _changing(body: Body) -> set[Var]:
    """What a loop writes: variables and buffers."""
    found: set[Var] = set()
    for s in walk_stmts(body):
        if isinstance(s, (S.BufferStore, LaneUpdate)):
            found.add(s.buffer.data)
        elif isinstance(s, (S.Assign, S.SetElement)):
            found.add(s.var)
    return found


def _parts(indices: tuple[Expr, ...], mask: Expr | None) -> list[Expr]:
    return [*indices, *([] if mask is None else [mask])]


class _Places:
    """The places that a loop accesses and does not change; `other`: arrays with accesses of another kind."""

    def __init__(self, at: _Promote, inside: set[Var], changing: set[Var]) -> None:
        self.at, self.inside, self.changing = at, inside, changing
        self.found: dict[Any, _Place] = {}
        self.other: set[Var] = set()
        self.shared_out = 0
        """How many loops around are shared out over the TECs, of which each runs some turns or none."""

    def may_have_any(self, body: Body) -> bool:
        """Whether there is a place, for what is not stored to is none, without a look at all that is loaded."""
        stores = [s for s in walk_stmts(body) if isinstance(s, (S.BufferStore, LaneUpdate))]
        for s in stores:
            self._is_other(s.buffer, _parts(s.indices, s.mask if isinstance(s, S.BufferStore) else None))
        return any(s.buffer.data not in self.other for s in stores)

    def _is_other(self, buffer: Buffer, parts: list[Expr]) -> bool:
        """Whether an array has an access that is at no place."""
        if buffer.data in self.other:
            return True
        moves = buffer.data in self.inside
        for e in parts:
            found = self.at.mentioned(e)
            moves |= bool(e.flags & E.F_LOAD) or not (self.inside.isdisjoint(found) and self.changing.isdisjoint(found))
        if moves:
            self.other.add(buffer.data)
        return moves

    def of(self, body: Body) -> list[_Place]:
        self._walk(body, [])
        return [p for p in self.found.values() if p.buffer.data not in self.other]

    def _walk(self, body: Body, guards: list[Expr]) -> None:
        for s in body:
            stored = s.buffer.data if isinstance(s, (S.BufferStore, LaneUpdate)) else None
            for e in s.exprs():
                if e is not stored:
                    self._loads(e, guards)
            if isinstance(s, (S.BufferStore, LaneUpdate)):
                mask = s.mask if isinstance(s, S.BufferStore) else None
                place = self._note(s.buffer, s.indices, mask, guards)
                if place is not None:
                    place.stores.append(s)
            if isinstance(s, S.IfThenElse):
                self._walk(s.then_case, [*guards, *conjuncts(s.condition)])
                self._walk(s.else_case or (), [*guards, E.Unary("not", s.condition)])
            else:
                shared_out = is_shared_out(s)
                self.shared_out += shared_out
                for inner in s.bodies():
                    self._walk(inner, guards)
                self.shared_out -= shared_out

    def _loads(self, root: Expr, guards: list[Expr]) -> None:
        stack = [root]
        while stack:
            e = stack.pop()
            if isinstance(e, E.BufferLoad):
                place = self._note(e.buffer, e.indices, e.mask, guards)
                if place is not None:
                    place.loads.append(e)
                stack += [*e.indices, *([] if e.mask is None else [e.mask])]
            elif isinstance(e, Var):
                self.other.add(e)  # the address of an array, or a variable
            else:
                stack += e.children()

    def _note(self, buffer: Buffer, indices: tuple[Expr, ...], mask: Expr | None, guards: list[Expr]) -> _Place | None:
        if self._is_other(buffer, _parts(indices, mask)):
            return None
        key = self.at.facts.interner.key
        name = (
            buffer.data,
            tuple(map(key, buffer.shape)),
            tuple(map(key, indices)),
            None if mask is None else key(mask),
        )
        place = self.found.setdefault(name, _Place(buffer, indices, mask))
        moving = self.inside | self.changing
        fixed = [g for g in guards if moving.isdisjoint(self.at.mentioned(g)) and not g.flags & E.F_LOAD]
        known = fixed if not place.stores and not place.loads else place.guards
        here = {key(g) for g in fixed}
        place.guards = [] if self.shared_out else [g for g in known if key(g) in here]
        place.always = place.always and not self.shared_out and len(guards) == len(known) == len(place.guards)
        return place


class _Accumulator:
    """A variable for a place: the statements that begin and end with it, and what stands for accesses in the loop."""

    def __init__(self, place: _Place, counts: int | None, before: list[Stmt], at: _Promote) -> None:
        self.place = place
        self.key = at.facts.interner
        kind = place.kind
        self.joins, self.fours = place.joins, at.sums_of_halves
        self.dots = bool(self.joins) and self._dots(counts)
        name = place.buffer.data.name
        if self.joins:
            self.var = Var(f"{name}_lanes", self._partial())
            start: Expr = _splat(identity(self.joins[0].op, self.var.data_type.element_of), self.var.data_type)
            self.start: list[Stmt] = [S.Let(self.var, start)]
            self.end = self._joined(_taken(before, place, at))
            return
        self.var = Var(f"{name}_value", kind)
        guards = place.guards
        first = _taken(before, place, at)
        if first is not None:
            self.start = [S.Let(self.var, first)]
        elif guards:
            zero = _splat(identity("add", kind.element_of), kind)
            self.start = [S.Let(self.var, zero), *guarded(guards, [S.Assign(self.var, self._load())])]
        else:
            self.start = [S.Let(self.var, self._load())]
        self.end = guarded(guards, [S.BufferStore(place.buffer, place.indices, self.var, place.mask)])

    def _load(self) -> Expr:
        return E.BufferLoad(self.place.buffer, self.place.indices, self.place.mask)

    def _dots(self, counts: int | None) -> bool:
        """Whether sums of four products cannot leave 32 bits, where they would be clipped."""
        largest = 0
        for join in self.joins:
            if join.other is None:
                return False
            if join.value.dtype.is_floating:
                return True
            x, y = (1 << (8 - t.dtype.is_int) for t in (join.value, join.other))
            largest = max(largest, x * y * 4)
        return counts is not None and counts * largest < _LARGEST

    def _partial(self) -> DataType:
        join = self.joins[0]
        lanes = join.value.dtype.lanes
        if not self.dots:
            return self.place.buffer.dtype.with_lanes(lanes)
        if join.value.dtype.is_floating:
            return FLOAT32.with_lanes(lanes // 2)
        signed = any(t.dtype.is_int for t in (join.value, join.other) if t is not None)
        return dtype("int32" if signed else "uint32").with_lanes(lanes // 4)

    def _joined(self, first: Expr | None) -> list[Stmt]:
        """The statements after the loop. `first`: the value that the element had before, None for that in memory."""
        place, join = self.place, self.joins[0]
        whole = across(join.op, self.var)
        if whole.dtype is not place.buffer.dtype:
            whole = E.Cast(place.buffer.dtype, whole)
        plain = isinstance(first, IntImm) and first.value == _number(identity(join.op, place.buffer.dtype))
        value = whole if plain else Binary(join.op, self._load() if first is None else first, whole)
        return guarded(place.guards, [S.BufferStore(place.buffer, place.indices, value, None)])

    def is_of(self, buffer: Buffer, indices: tuple[Expr, ...], mask: Expr | None) -> bool:
        place = self.place
        if buffer.data is not place.buffer.data or len(indices) != len(place.indices):
            return False
        if not all(map(self.key.same, indices, place.indices)):
            return False
        if mask is None or place.mask is None:
            return mask is place.mask
        return self.key.same(mask, place.mask)

    def update(self, s: LaneUpdate) -> Stmt:
        """The accumulator with the lanes of a vector joined to its own."""
        var = self.var
        if s.other is not None and self.dots and s.value.dtype.is_floating and not self.fours:
            even = E.Call("vfmae", (var, s.value, s.other), var.dtype)
            return S.Assign(var, E.Call("vfmao", (even, s.value, s.other), var.dtype))
        if s.other is not None and self.dots:
            return S.Assign(var, E.Call("vqdpa", (var, s.value, s.other), var.dtype, s.mask))
        value = s.value
        if s.other is not None:
            value = Binary("mul", _wide(s.value), _wide(s.other))
        made = fused(Binary(s.op, var, value))
        return S.Assign(var, made if s.mask is None else E.Select(s.mask, made, var))


def _number(e: Expr) -> float:
    assert isinstance(e, (IntImm, E.FloatImm))
    return e.value


def _wide(e: Expr) -> Expr:
    attrs: Any = (("part", "all"), ("saturate", None))
    return E.Call("cast", (e,), INT32.with_lanes(e.dtype.lanes), attrs=attrs)


def fused(e: Expr) -> Expr:
    """A sum of vectors of float32 and a product as one operation."""
    if isinstance(e, Binary) and e.op == "add" and e.dtype.is_vector and e.data_type.element_of == "float32":
        for total, product in ((e.a, e.b), (e.b, e.a)):
            if isinstance(product, Binary) and product.op == "mul":
                return E.Call("fma", (total, product.a, product.b), e.dtype)
    return e


def _splat(value: Expr, kind: DataType) -> Expr:
    return E.Broadcast(value, kind.lanes) if kind.lanes > 1 else value


def _taken(before: list[Stmt], place: _Place, at: _Promote) -> Expr | None:
    """The value that was stored to a place just before, whose store is taken away."""
    interner = at.facts.interner
    for number in range(len(before) - 1, -1, -1):
        s = before[number]
        if not isinstance(s, S.BufferStore):
            return None
        if s.value.flags & (E.F_LOAD | E.F_FUNC | E.F_CALL):
            return None
        same = s.buffer.data is place.buffer.data and len(s.indices) == len(place.indices)
        if same and all(map(interner.same, s.indices, place.indices)) and s.mask is None and place.mask is None:
            if place.guards:
                return None
            del before[number]
            return s.value
    return None


class _Replace(Rewriter):
    """Statements with variables for the places that are accumulated in."""

    def __init__(self, accumulators: Sequence[_Accumulator]) -> None:
        super().__init__()
        self.accumulators = accumulators

    def _of(self, buffer: Buffer, indices: tuple[Expr, ...], mask: Expr | None) -> _Accumulator | None:
        return next((a for a in self.accumulators if a.is_of(buffer, indices, mask)), None)

    @rewrites(E.BufferLoad)
    def rewrite_load(self, e: E.BufferLoad) -> Expr:
        found = self._of(e.buffer, e.indices, e.mask)
        return self.default(e) if found is None else found.var

    @rewrites(S.BufferStore)
    def rewrite_store(self, s: S.BufferStore) -> Rewritten:
        found = self._of(s.buffer, s.indices, s.mask)
        if found is None:
            return self.default_stmt(s)
        return S.Assign(found.var, fused(self.expr(s.value)), span=s.span)

    @rewrites(LaneUpdate)
    def rewrite_update(self, s: LaneUpdate) -> Rewritten:
        found = self._of(s.buffer, s.indices, None)
        mapped = s.map(self.expr, self.body)
        assert isinstance(mapped, LaneUpdate)
        return mapped if found is None else found.update(mapped)
