"""What statements read and write: boxes of the buffers, while the surroundings stand still."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compassc.analysis.arith import Arith
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import PointerType
from compassc.ir.exprs import Buffer, Expr, IntImm, Var
from compassc.ir.stmts import Stmt
from compassc.ir.visit import walk_exprs
from compassc.te.bounds import Interval, Unbounded, interval, union
from compassc.tir.blocks import add, at, last_index, number, sub, view

Spans = list["Interval | None"]
"""Per dimension the least and the largest index; None: not known."""
Reach = Mapping[Var, Interval]


class Touched:
    """The accesses of statements: per buffer and in order, the spans of each read and write. `opaque`: buffers of which
    an address is taken."""

    def __init__(self) -> None:
        self.reads: dict[Var, list[Spans]] = {}
        self.writes: dict[Var, list[Spans]] = {}
        self.opaque: set[Var] = set()
        self.own: set[Var] = set()
        """Buffers that the statements declare themselves."""


def touched(body: Iterable[Stmt], reach: Reach | None = None) -> Touched:
    """The accesses of statements. Loops inside take all their turns; so do the variables of `reach`."""
    found = _Finder(dict(reach or {}))
    found.body(body)
    return found.made


class _Finder:
    def __init__(self, reach: dict[Var, Interval]) -> None:
        self.reach = reach
        self.made = Touched()
        self.hidden: set[Var] = set()
        """Variables whose values are not known: those of Let."""

    def body(self, body: Iterable[Stmt]) -> None:
        for s in body:
            self.stmt(s)

    def stmt(self, s: Stmt) -> None:
        if isinstance(s, (S.Alloc, S.DeclBuffer, S.AllocConst)):
            self.made.own.add(s.buffer.data)
            return
        if isinstance(s, S.For):
            self._for(s)
        elif isinstance(s, S.Block):
            self._block(s)
        else:
            if isinstance(s, S.Let):
                self.hidden.add(s.var)
            roots = [e for e in s.exprs() if not (isinstance(s, S.BufferStore) and e is s.buffer.data)]
            for e in roots:
                self.expr(e)
            if isinstance(s, S.BufferStore):
                self.made.writes.setdefault(s.buffer.data, []).append(self._spans(s.indices))
            for inner in s.bodies():
                self.body(inner)

    def _for(self, s: S.For) -> None:
        for e in (s.min, s.stop):
            self.expr(e)
        last = sub(s.stop, number(1, s.loop_var))
        low, high = self._span(s.min), self._span(last)
        if low is None or high is None:
            self.hidden.add(s.loop_var)
        else:
            self.reach[s.loop_var] = low[0], high[1]
        self.body(s.body)

    def _block(self, s: S.Block) -> None:
        for e in (*s.iter_values, s.predicate):
            self.expr(e)
        inner: dict[Var, Expr] = dict(zip(s.vars, s.iter_values))
        for regions, table in ((s.reads, self.made.reads), (s.writes, self.made.writes)):
            for r in regions:
                spans: Spans = []
                for start, extent in zip(r.starts, r.extents):
                    last = last_index(start, extent)
                    first = self._span(at(start, inner))
                    end = first if last is start else self._span(at(last, inner))
                    spans.append(None if first is None or end is None else (first[0], end[1]))
                table.setdefault(r.buffer.data, []).append(spans)

    def expr(self, e: Expr) -> None:
        if isinstance(e, E.BufferLoad):
            self.made.reads.setdefault(e.buffer.data, []).append(self._spans(e.indices))
            for i in (*e.indices, *([] if e.mask is None else [e.mask])):
                self.expr(i)
        elif isinstance(e, Var):
            if isinstance(e.dtype, PointerType):
                self.made.opaque.add(e)
        else:
            for child in e.children():
                self.expr(child)

    def _spans(self, indices: Iterable[Expr]) -> Spans:
        return [self._span(i) for i in indices]

    def _span(self, index: Expr) -> Interval | None:
        if isinstance(index, E.Ramp):
            first, last = self._span(index.base), number(index.lanes - 1, index.stride)
            step = index.stride.value if isinstance(index.stride, IntImm) else None
            if first is None or step is None or step < 0:
                return None
            return first[0], add(first[1], number(step * last.value, index.stride))
        try:
            return interval(index, self._of)
        except Unbounded:
            return None

    def _of(self, var: Var) -> Interval | None:
        if var in self.hidden:
            raise Unbounded
        return self.reach.get(var)


def box(spans: list[Spans], buffer: Buffer, facts: Arith) -> list[tuple[Expr, Expr]]:
    """Start and extent per dimension of the smallest known box around accesses of a buffer."""
    shape = buffer.shape
    found: list[tuple[Expr, Expr]] = []
    for d, extent in enumerate(shape):
        dim = [row[d] for row in spans]
        known = [s for s in dim if s is not None]
        if len(known) < len(dim):
            found.append((number(0, extent), extent))
            continue
        region = union(known, facts)
        found.append(_clipped(region.min, region.extent, extent))
    return found


def _clipped(start: Expr, extent: Expr, whole: Expr) -> tuple[Expr, Expr]:
    """A range within a dimension, as far as that is known."""
    if not isinstance(extent, IntImm):
        return number(0, whole), whole
    if isinstance(whole, IntImm):
        if isinstance(start, IntImm):
            first = max(start.value, 0)
            last = min(start.value + extent.value, whole.value)
            return number(first, start), number(max(last - first, 0), extent)
        if extent.value >= whole.value:
            return number(0, whole), whole
    return start, extent


def regions(block: S.Block, buffers: Mapping[Var, Buffer], facts: Arith) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """What a block reads and writes, by its own statements. `facts` are about its axes."""
    found = touched((*block.init, *block.body))
    for e in walk_exprs(block.predicate):  # it is not about the axes: any element may be read
        if isinstance(e, E.BufferLoad):
            found.reads.setdefault(e.buffer.data, []).append([None for _ in buffers[e.buffer.data].shape])
    outside = {data: buffer for data, buffer in buffers.items() if data not in found.own}
    writes = _listed(found.writes, found.opaque, outside, facts)
    reads = _listed(found.reads, found.opaque, outside, facts)
    if block.init:
        written = {r.buffer.data for r in writes}
        reads = [r for r in reads if r.buffer.data not in written]
    return tuple(reads), tuple(writes)


def _listed(
    table: dict[Var, list[Spans]], opaque: set[Var], buffers: Mapping[Var, Buffer], facts: Arith
) -> list[E.BufferRegion]:
    made = []
    for data in [*table, *(d for d in opaque if d not in table)]:
        buffer = buffers.get(data)
        if buffer is None or not buffer.shape:  # a pointer of unknown size
            continue
        if data in opaque or any(len(spans) != len(buffer.shape) for spans in table[data]):
            ranges: list[tuple[Expr, Expr]] = [(number(0, e), e) for e in buffer.shape]
        else:
            ranges = box(table[data], buffer, facts)
        made.append(E.BufferRegion(view(buffer), tuple(r[0] for r in ranges), tuple(r[1] for r in ranges)))
    return made
