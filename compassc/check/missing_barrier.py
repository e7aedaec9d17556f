"""Shared memory that one TEC writes and another one reads with no barrier between.

The entry function is followed for each TEC with the addresses its number gives. What cannot be computed (a run-time
index, a condition on data) is left out, and a storage written at an unknown place is not judged until the next barrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import product

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Span, races

from ..analysis.arith import Linear
from ..analysis.interpret import evaluate
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.exprs import Expr, IntImm, Var
from ..ir.stmts import IRModule, PrimFunc, Stmt
from ..ir.visit import all_exprs, walk_exprs, walk_stmts
from ..ops.effects import touched
from . import Subject
from ._walk import Address, ReachedStatement, Walker

CODE = "missing-barrier"
_MOST_STEPS = 20_000
_Env = Mapping[Var, int]


def run(subject: Subject) -> Iterator[CompassError]:
    """An error per pair of a write and a read that race."""
    entry = subject.module.entry_func
    shared = {s.buffer.data for s in walk_stmts(entry.body) if type(s) is S.Alloc and s.buffer.scope == "shared"}
    if shared and subject.target.tecs > 1:
        values = {entry.params[i]: value for i, value in subject.values.items()}
        yield from _Race(subject.module, Walker(entry, subject.target.tecs, values), shared).run()


_Touch = tuple[Address, int, Span | None, bool]
"""An access: its first byte, the number of bytes, its place in the source, and whether it is atomic."""


@dataclass(frozen=True)
class _Access:
    """Bytes `low` to `high` of a storage that a TEC touches in a statement."""

    tec: int
    data: Var
    low: int
    high: int
    span: Span | None
    atomic: bool = False

    def meets(self, other: _Access) -> bool:
        if self.atomic and other.atomic:
            return False
        return self.data is other.data and self.low < other.high and other.low < self.high


@dataclass
class _Race:
    module: IRModule
    walker: Walker
    shared: set[Var]
    writes: list[_Access] = field(default_factory=list)
    opaque: set[Var] = field(default_factory=set)
    steps: int = 0
    found: dict[tuple[Span | None, Span | None], CompassError] = field(default_factory=dict)

    def run(self) -> list[CompassError]:
        for place in self.walker.walk():
            if _synchronises(place.stmt, self.module):
                self.writes.clear()
                self.opaque.clear()
            reads, writes = self.touched(place.stmt)
            for touch in reads:
                for access in self.concrete(place, touch) or ():
                    self.read(access)
            for touch in writes:
                accesses = self.concrete(place, touch)
                if accesses is None:
                    self.opaque.add(touch[0].data)
                else:
                    self.writes += accesses
            self.opaque |= self.handed_over(place.stmt)
        return list(self.found.values())

    # -- what a statement touches

    def touched(self, s: Stmt) -> tuple[list[_Touch], list[_Touch]]:
        """(reads, writes) of shared memory; a size of 0 means an unknown number of bytes."""
        reads: list[_Touch] = []
        writes: list[_Touch] = []
        for root in s.exprs():
            for e in walk_exprs(root):
                if type(e) is E.BufferLoad:
                    self._element(reads, e.buffer, e.indices, e.span or s.span)
                elif type(e) is E.Call:
                    self._call(e, reads, writes, e.span or s.span)
        if type(s) is S.BufferStore:
            self._element(writes, s.buffer, s.indices, s.span)
        return reads, writes

    def _element(self, into: list[_Touch], buffer: E.Buffer, indices: tuple[Expr, ...], span: Span | None) -> None:
        flat: Expr = indices[0]
        for index, extent in zip(indices[1:], buffer.shape[1:]):
            flat = E.Binary("add", E.Binary("mul", flat, extent), index)
        address = self.walker.address(E.Pointer(buffer.dtype, buffer.data, flat))
        self._add(into, address, buffer.dtype.total_bytes, span)

    def _call(self, call: E.Call, reads: list[_Touch], writes: list[_Touch], span: Span | None) -> None:
        if call.op in ("vload", "vstore"):
            position = 0 if call.op == "vload" else 1
            vector = call.dtype if call.op == "vload" else call.args[0].dtype
            stride = self.walker.settle(call.args[position + 1])
            plain = call.mask is None and type(stride) is IntImm and stride.value == 1
            into = reads if call.op == "vload" else writes
            self._add(into, self.walker.address(call.args[position]), vector.total_bytes if plain else 0, span)
            return

        atomic = E.is_single(call)
        for index, kind, extent in touched(call):
            size = extent if atomic and isinstance(extent, int) else self._row(call)
            self._add(reads if kind == "r" else writes, self.walker.address(call.args[index]), size, span, atomic)

    def _row(self, call: E.Call) -> int:
        """The bytes of a copy that is one row; 0 when it is not, or not for certain."""
        if call.op != "dma_copy":
            return 0
        width, size = (self.walker.settle(call.args[k]) for k in (2, 4))
        one = isinstance(width, IntImm) and isinstance(size, IntImm) and size.value == width.value
        return width.value if isinstance(width, IntImm) and one else 0

    def _add(
        self, into: list[_Touch], address: Address | None, size: int, span: Span | None, atomic: bool = False
    ) -> None:
        if address is not None and address.data in self.shared:
            into.append((address, size, span, atomic))

    def handed_over(self, s: Stmt) -> set[Var]:
        """The storage whose address a sub-function gets, or that is reached in a way not understood here."""
        found: set[Var] = set()
        for root in s.exprs():
            for e in walk_exprs(root):
                if type(e) is E.FuncCall:
                    addresses = [self.walker.address(a) for a in e.args if hasattr(a.dtype, "elem")]
                    found |= {a.data for a in addresses if a is not None} or set(self.shared)
        return found & self.shared

    # -- concrete accesses

    def concrete(self, place: ReachedStatement, touch: _Touch) -> list[_Access] | None:
        """The bytes each TEC touches; None when they are not known."""
        address, size, span, atomic = touch
        if not size or place.path.uncertain:
            return None
        found: list[_Access] = []
        for tec in range(self.walker.tecs):
            for env in self.runs(place, {self.walker.tec_id: tec}):
                if env is None:
                    return None
                low = self.offset(address.offset, env)
                if low is None:
                    return None
                found.append(_Access(tec, address.data, low, low + size, span, atomic))
        return found

    def runs(self, place: ReachedStatement, env: dict[Var, int]) -> Iterator[dict[Var, int] | None]:
        """The values of the loop variables each time the statement runs; None when that is not known."""
        ranges: list[range] = []
        for _, *bounds in place.path.loops:
            start, stop, step = (evaluate(e, env) for e in bounds)
            if start is None or stop is None or not step:
                yield None
                return
            ranges.append(range(start, stop, step))
        names = [var for var, *_ in place.path.loops]
        for values in product(*ranges):
            self.steps += 1
            inner = {**env, **dict(zip(names, values))}
            truths = [evaluate(cond, inner) for cond, _ in place.path.conditions]
            if self.steps > _MOST_STEPS or None in truths:
                yield None
                return
            if all(bool(value) is truth for value, (_, truth) in zip(truths, place.path.conditions)):
                yield inner

    def offset(self, form: Linear, env: _Env) -> int | None:
        total = form.const
        for key, factor in form.terms.items():
            value = evaluate(self.walker.arith.atoms[key], env)
            if value is None:
                return None
            total += factor * value
        return total

    # -- judging

    def read(self, access: _Access) -> None:
        if access.data in self.opaque:
            return
        if any(w.tec == access.tec and w.low <= access.low and access.high <= w.high for w in self.own(access)):
            return
        for write in self.writes:
            if write.tec != access.tec and write.meets(access):
                pair = (write.span, access.span)
                self.found.setdefault(pair, self.error(write, access))
                return

    def own(self, access: _Access) -> Iterator[_Access]:
        return (w for w in self.writes if w.data is access.data and not w.atomic)

    @staticmethod
    def error(write: _Access, read: _Access) -> CompassError:
        name = read.data.name.removesuffix("_buf")
        here, there = races.Access(read.tec, "reads", read.span), races.Access(write.tec, "writes", write.span)
        return races.error(repr(name), here, there, code=CODE)


def _synchronises(s: Stmt, module: IRModule) -> bool:
    """Whether a statement itself, or a function it calls, has a barrier."""
    for root in s.exprs():
        for e in walk_exprs(root):
            if type(e) is E.Call and e.op == "barrier":
                return True
            if type(e) is E.FuncCall and _has_barrier(module[e.func], module):
                return True
    return False


def _has_barrier(function: PrimFunc, module: IRModule) -> bool:
    for e in all_exprs(function.body, E.F_CALL | E.F_FUNC):
        if type(e) is E.Call and e.op == "barrier":
            return True
        if type(e) is E.FuncCall and _has_barrier(module[e.func], module):
            return True
    return False
