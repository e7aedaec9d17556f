"""Products of tiles while a function is parsed. Their loops are made when all of its statements are known: what is added to
the same tile one after the other is added in the same registers, and right sides that loops do not change are packed
before the loops.

Until then a statement stands for them, a call that names the memory which they read and write.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from compass_core.dataclass import dataclass
from compass_core.errors import Span

from ...analysis.buffers import size_of
from ...analysis.statements import used_vars
from ...ir import exprs as E
from ...ir import stmts as S
from ...ir.dtypes import INT32, VOID, PointerType
from ...ir.visit import all_exprs, walk_exprs, walk_stmts
from ...ops.core import load
from ..tiles.dot import Sums
from ..tiles.machine import Work
from ..tiles.packed import Packed
from .context import FunctionContext
from .values import PointerValue

_SUMS, _PACKED = "tile_sums", "tile_packed"
"""Operations that the statements call; the memory in the second operand is written by sums, all other memory is read."""


def await_sums(fp: FunctionContext, sums: Work) -> None:
    assert isinstance(sums, Sums)
    _await(fp, _SUMS, sums, [sums.to.pointer, *sums.read])


def await_packed(fp: FunctionContext, packed: Work) -> None:
    assert isinstance(packed, Packed)
    _await(fp, _PACKED, packed, [packed.b.pointer])


def _await(fp: FunctionContext, op: str, work: Work, used: list[object]) -> None:
    number = E.IntImm(INT32, len(fp.awaited))
    fp.awaited.append((work, fp.place()))
    fp.emit(S.Evaluate, E.Call(op, (number, *map(_expr, used)), VOID))


def _expr(pointer: object) -> E.Expr:
    assert isinstance(pointer, PointerValue)
    return pointer.expr


def made(fp: FunctionContext, body: S.Body) -> S.Body:
    """The body with the loops of all products."""
    return _Maker(fp, body).body if fp.awaited else body


@cache
def _only_read(op: str) -> frozenset[int]:
    """The operands of an operation whose memory it only reads."""
    declared = load().get(op)
    return frozenset() if declared is None else frozenset(t.operand for t in declared.touches if t.how == "r")


class _Memory:
    """Which arrays statements read and write."""

    def __init__(self, body: S.Body) -> None:
        self.arrays: dict[E.Var, E.Var | None] = {}
        for s in walk_stmts(body):
            if type(s) is S.Let and isinstance(s.var.dtype, PointerType):
                self.arrays[s.var] = self.array(s.value)

    def array(self, e: object) -> E.Var | None:
        """The array or parameter that a pointer points into; None where it is not known."""
        while type(e) is E.Pointer:
            e = e.base
        return self.arrays.get(e, e) if type(e) is E.Var else None

    def written(self, s: S.Stmt) -> Iterator[E.Var | None]:
        """The arrays that a statement changes, those in it included."""
        for x in walk_stmts((s,)):
            if isinstance(x, S.BufferStore):
                yield self.array(x.buffer.data)
            for root in x.exprs():
                if root.flags & (E.F_CALL | E.F_FUNC):
                    yield from self._by(root)

    def _by(self, root: E.Expr) -> Iterator[E.Var | None]:
        for e in walk_exprs(root, E.F_CALL | E.F_FUNC):
            if isinstance(e, E.Call) and e.op in (_SUMS, _PACKED):
                yield from (self.array(a) for a in e.args[1:2] if e.op == _SUMS)
            elif isinstance(e, (E.Call, E.FuncCall)):
                read = _only_read(e.op) if isinstance(e, E.Call) else frozenset()
                for i, a in enumerate(e.args):
                    if isinstance(a.dtype, PointerType) and i not in read:
                        yield self.array(a)

    def uses(self, s: S.Stmt, array: E.Var | None) -> bool:
        """Whether a statement has to do with an array."""
        return any(self.arrays.get(v, v) is array for v in used_vars((s,)))


class _Maker:
    """Makes the statements, of which `body` is what becomes of the function's."""

    def __init__(self, fp: FunctionContext, body: S.Body) -> None:
        self.fp, self.memory = fp, _Memory(body)
        self.changes: dict[S.For, set[E.Var | None]] = {}
        self.before: dict[S.For, list[_Shared]] = {}
        taken = _bytes(body) + sum(w.bytes for w, _ in fp.awaited if isinstance(w, Packed))
        calls = any(isinstance(e, E.FuncCall) for e in all_exprs(body, E.F_FUNC))
        if taken <= fp.lsram_bytes and not calls:  # what is packed in loops can take turns in the same memory
            self._plan(body, ())
        self.moved = {id(p) for shared in self.before.values() for one in shared for p in one.parts}
        self.packed = {loop: self._packed(shared) for loop, shared in self.before.items()}
        self.body = self._block(body)

    def _work(self, s: S.Stmt) -> tuple[object, Span | None]:
        """What a statement stands for, and where."""
        if type(s) is not S.Evaluate or type(s.value) is not E.Call or s.value.op not in (_SUMS, _PACKED):
            return None, None
        number = s.value.args[0]
        assert isinstance(number, E.IntImm)
        return self.fp.awaited[number.value]

    # -- right sides that are packed before loops

    def _plan(self, body: S.Body, loops: tuple[S.For, ...]) -> None:
        for s in body:
            work, span = self._work(s)
            if isinstance(work, Packed) and (loop := self._loop(work, loops)) is not None:
                _share(self.before.setdefault(loop, []), work, span)
            for inner in s.bodies():
                self._plan(inner, (*loops, s) if isinstance(s, S.For) else ())

    def _loop(self, packed: Packed, loops: tuple[S.For, ...]) -> S.For | None:
        """The outermost loop that does not change what is packed."""
        array, found = self.memory.array(_expr(packed.b.pointer)), None
        for loop in reversed(loops):
            if array is None or {array, None} & self._changed(loop):
                break
            found = loop
        return found

    def _changed(self, loop: S.For) -> set[E.Var | None]:
        """The arrays that a loop changes or allocates."""
        if loop not in self.changes:
            allocated = {s.buffer.data for s in walk_stmts(loop.body) if isinstance(s, S.Alloc)}
            self.changes[loop] = {*self.memory.written(loop), *allocated}
        return self.changes[loop]

    def _packed(self, shared: list[_Shared]) -> S.Body:
        made: list[S.Stmt] = []
        for one in shared:
            made += self._made(one.whole, one.span)
            for part in one.parts:
                part.take(one.whole)
        return tuple(made)

    # -- statements

    def _made(self, work: Work, span: Span | None) -> S.Body:
        with self.fp.at(span), self.fp.helpers.run(False):
            return self.fp.apart(work.work)[1]

    def _block(self, body: S.Body) -> S.Body:
        out: list[S.Stmt | tuple[Sums, Span | None]] = []
        last: tuple[Sums, Span | None] | None = None
        for s in body:
            work, span = self._work(s)
            if isinstance(work, Sums):
                if last is not None and last[0].may_join(work):
                    out.remove(last)
                    work = last[0].joined(work)
                last = work, span
                out.append(last)
                continue
            for made in self._statements(s, work, span):
                last = None if last is not None and self._meets(made, last[0]) else last
                out.append(made)
        return tuple([s for x in out for s in ((x,) if isinstance(x, S.Stmt) else self._made(*x))])

    def _statements(self, s: S.Stmt, work: object, span: Span | None) -> S.Body:
        """What stands in the place of a statement, sums left aside."""
        if isinstance(work, Packed):
            return () if id(work) in self.moved else self._made(work, span)
        ahead = self.packed.get(s, ()) if isinstance(s, S.For) else ()
        return (*ahead, s.map(lambda e: e, self._block) if s.bodies() else s)

    def _meets(self, s: S.Stmt, sums: Sums) -> bool:
        """Whether a statement has to do with a tile that is added to, changes what is added, or leaves the block."""
        to, *read = [self.memory.array(_expr(p)) for p in (sums.to.pointer, *sums.read)]
        if s.flags & E.F_JUMP or self.memory.uses(s, to):
            return True
        return not {*read, None}.isdisjoint(self.memory.written(s))


@dataclass
class _Shared:
    """What is packed at once, and the right sides that are parts of it."""

    whole: Packed
    span: Span | None
    parts: list[Packed]


def _share(shared: list[_Shared], packed: Packed, span: Span | None) -> None:
    """Add a right side to those that are packed at the same place."""
    for one in shared:
        whole = one.whole.joined(packed)
        if whole is not None:
            one.whole = whole
            one.parts.append(packed)
            return
    shared.append(_Shared(packed, span, [packed]))


def _bytes(body: S.Body) -> int:
    """The LSRAM that arrays take if each has its own; those that transfers of a pipelined loop touch have it once per turn."""
    rooms: dict[E.Var, int] = {}
    for loop in walk_stmts(body):
        if isinstance(loop, S.For) and loop.kind == "pipelined":
            stages = dict(loop.annotations).get("stages", 2)
            assert isinstance(stages, int)
            for e in all_exprs(loop.body, E.F_CALL):
                if isinstance(e, E.Call) and e.op in ("dma_copy", "dma_memset"):
                    arrays = [x for a in e.args for x in walk_exprs(a) if type(x) is E.Var]
                    rooms |= {x: max(stages, rooms.get(x, 2)) for x in arrays}
    allocated = [s.buffer for s in walk_stmts(body) if isinstance(s, S.Alloc) and s.buffer.scope == "lsram"]
    return sum(size_of(b) * rooms.get(b.data, 1) for b in allocated)
