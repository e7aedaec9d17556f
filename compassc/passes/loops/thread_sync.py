"""Have the threads of a block wait for each other where they share memory.

Before: a function of loops for a grid. After: between two accesses of memory that threads share, one of them a store, of which
it is not known that each thread has elements of its own, is a barrier, to which all threads of a block come (`_barriers`);
the mark `SCALAR_LOOPS` is gone. LowerError for what barriers do not help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from compass_core.namedtuple import NamedTuple
from compassc.analysis.itermap import separates
from compassc.analysis.structure import Interner, variables
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Expr, Var
from compassc.ir.stmts import SCALAR_LOOPS, Body, IRModule, PrimFunc, Stmt
from compassc.ir.visit import substitute, walk_exprs, walk_stmts
from compassc.passes.loops._barriers import checked_barriers
from compassc.te.errors import LowerError
from compassc.te.machine import OWN_MEMORY, barrier, launched, launches
from compassc.tir.blocks import constant
from compassc.tir.region_cover import facts_of, turns_of

NAME = "ThreadSync"
_TAGS = {tag: Var(tag, INT32, True) for tag in S.THREAD_LOOPS}


class Access(NamedTuple):
    """A load or a store, and the loops around it."""

    data: Var
    indices: tuple[Expr, ...]
    writes: bool
    loops: tuple[S.For, ...]


def run(module: IRModule) -> IRModule:
    return module.map_functions(lambda f: checked_barriers(_with_barriers(f.without_attr(SCALAR_LOOPS))))


def _with_barriers(function: PrimFunc) -> PrimFunc:
    """The function with barriers in its launches."""
    return function.replace(body=launched(_Launch(launch).statements() for launch in launches(function.body)))


class _Launch:
    def __init__(self, body: Body) -> None:
        self.body, inside = body, list(walk_stmts(body))
        self.tags = sorted({s.kind for s in inside if isinstance(s, S.For) and s.kind in S.THREAD_LOOPS})
        stores = [s.buffer.data for s in inside if isinstance(s, S.BufferStore)]
        self.stores = {data: stores.count(data) for data in stores if data.pointer_type.scope not in OWN_MEMORY}
        """How many statements write each buffer that threads share."""
        self.keys = Interner()

    def statements(self) -> Body:
        made, accesses = self._level(self.body, (), False)
        for i, a in enumerate(accesses):
            for b in accesses[:i]:
                if a.data is b.data and (a.writes or b.writes) and a.data.pointer_type.scope == "global":
                    self._check_blocks(a, b)
        return made

    def _level(self, body: Body, loops: tuple[S.For, ...], repeated: bool) -> tuple[Body, list[Access]]:
        """Statements in sequence with barriers between, and their accesses. `repeated`: the last is followed by the first."""
        made: list[Stmt] = []
        everything: list[Access] = []
        first: list[Access] | None = None
        pending: list[Access] = []
        for s in body:
            new, accesses = self._statement(s, loops)
            if self._conflict(pending, accesses):
                made.append(barrier())
                first = pending if first is None else first
                pending = []
            made.append(new)
            pending = [*pending, *accesses]
            everything += accesses
        if repeated and self._conflict(pending, pending if first is None else first):
            made.append(barrier())
        return tuple(made), everything

    def _statement(self, s: Stmt, loops: tuple[S.For, ...]) -> tuple[Stmt, list[Access]]:
        own = self._accesses(s, loops)
        if not s.bodies():
            self._check_together(own, own)
            return s, own
        around = (*loops, s) if isinstance(s, S.For) else loops
        repeated = isinstance(s, S.For) and s.kind not in S.THREAD_LOOPS and constant(s.stop) != 1
        inner: list[Access] = []

        def level(body: Body) -> Body:
            made, accesses = self._level(body, around, repeated)
            inner.extend(accesses)
            return made

        new = s.map(lambda e: e, level)
        self._check_together(own, inner)
        return new, [*own, *inner]

    def _accesses(self, s: Stmt, loops: tuple[S.For, ...]) -> list[Access]:
        """Those of a statement itself."""
        found = []
        if isinstance(s, S.BufferStore) and s.buffer.data in self.stores:
            found.append(Access(s.buffer.data, s.indices, True, loops))
        for root in s.exprs():
            for e in walk_exprs(root):
                if isinstance(e, E.BufferLoad) and e.buffer.data in self.stores:
                    found.append(Access(e.buffer.data, e.indices, False, loops))
        return found

    def _check_together(self, some: Sequence[Access], others: Sequence[Access]) -> None:
        """LowerError for accesses between which no thread can wait."""
        for a in some:
            for b in others:
                if a is not b and self._meets(a, b) and not _elsewhere(a, b):
                    raise LowerError(
                        f"threads change '{a.data.name}' while others read it, in one statement", "copy it first"
                    )

    def _conflict(self, some: Sequence[Access], others: Sequence[Access]) -> bool:
        return any(self._meets(a, b) for a in some for b in others)

    def _meets(self, a: Access, b: Access) -> bool:
        """Whether a thread may touch what another one of its block writes."""
        return a.data is b.data and (a.writes or b.writes) and not self._apart(a, b, "threadIdx")

    def _check_blocks(self, a: Access, b: Access) -> None:
        """LowerError where a block may touch what another one writes."""
        if self._apart(a, b, "blockIdx"):
            return
        common = [x for x, y in zip(a.loops, b.loops) if x is y]
        together = {t for t in self.tags if t.startswith("blockIdx")} <= {s.kind for s in common}
        if together and self.stores[a.data] == 1 and all(s.kind in S.THREAD_LOOPS for s in common):
            return  # each block writes all that it reads, the same values as others
        raise LowerError(
            f"a block of threads uses what another one writes to '{a.data.name}', and blocks do not wait for each other",
            "compute it on the outermost level, or at a loop that is bound to blockIdx",
        )

    def _apart(self, a: Access, b: Access, unit: str) -> bool:
        """Whether different threads (blocks) have different elements, in both accesses: indices that are the same but for
        the loops' names tell them apart."""
        tags = [t for t in self.tags if t.startswith(unit)]
        sizes: dict[Var, int] = {}
        for tag in tags:
            found = [next((s for s in reversed(x.loops) if s.kind == tag), None) for x in (a, b)]
            if None in found:
                return False
            sizes[_TAGS[tag]] = max(turns_of(s) for s in found if s is not None)
        known = []
        for own, others in zip(_named(a), _named(b)):
            if own is not None and others is not None and self.keys.key(own[0]) == self.keys.key(others[0]):
                known.append(own[0])
                for var, size in (*own[1].items(), *others[1].items()):
                    sizes[var] = max(size, sizes.get(var, 0))
        return all(separates(known, sizes, _TAGS[tag]) for tag in tags)


def _named(access: Access) -> list[tuple[Expr, Mapping[Var, int]] | None]:
    """The indices of an access in variables that are the same for all accesses, and their extents: those of tags, and for
    other loops one for each dimension and place in which a loop comes first. None for what is made of anything else."""
    loops = {s.loop_var: s for s in access.loops}
    mapping: dict[Var, Var] = {}
    made: list[tuple[Expr, Mapping[Var, int]] | None] = []
    for dim, index in enumerate(access.indices):
        nodes = list(walk_exprs(index))
        if any(isinstance(e, E.BufferLoad) or (type(e) is Var and e not in loops) for e in nodes):
            made.append(None)
            continue
        sizes: dict[Var, int] = {}
        first = 0
        for e in nodes:
            if type(e) is not Var:
                continue
            if e not in mapping:
                tag = loops[e].kind in S.THREAD_LOOPS
                mapping[e] = _TAGS[loops[e].kind] if tag else _number(dim, first)
                first += not tag
            sizes[mapping[e]] = max(turns_of(loops[e]), sizes.get(mapping[e], 0))
        made.append((substitute(index, mapping), sizes))
    return made


def _elsewhere(a: Access, b: Access) -> bool:
    """Whether two accesses of one statement are elements apart in a dimension whose index is the same for all threads."""
    own = {s.loop_var for x in (a, b) for s in x.loops if s.kind in S.THREAD_LOOPS}
    facts = facts_of(a.loops)
    for i, j in zip(a.indices, b.indices):
        if not any(isinstance(e, E.BufferLoad) for x in (i, j) for e in walk_exprs(x)) and not own & {
            *variables(i),
            *variables(j),
        }:
            low, high = facts.difference(i, j)
            if low > 0 or high < 0:
                return True
    return False


@cache
def _number(dim: int, place: int) -> Var:
    return Var(f"i{dim}_{place}", INT32, True)
