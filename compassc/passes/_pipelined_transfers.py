"""What a turn of a pipelined loop moves, and whether the transfers of several turns may run at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import cache, cached_property
from typing import Any, Literal

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Note, Span

from ..analysis.statements import defined_vars, mutable_vars, own_breaks, used_vars
from ..analysis.structure import is_pure, variables
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import PointerType
from ..ir.exprs import Expr, Var
from ..ir.stmts import Body, IRModule, PrimFunc, Stmt
from ..ir.visit import all_exprs, walk_exprs, walk_stmts
from ..ops import core
from ._hazards import Hazards
from ._same_memory import apart

SRAM = ("lsram", "shared")
CODE = "pipelined"
_ACCESSES = E.F_LOAD | E.F_CALL | E.F_FUNC
_FORBIDDEN = ("barrier", "alloc_event", "wait_events", "free_events", "flush_cache", "aiff", "asm")
"""Operations that wait for transfers, or may read and write anything."""


def refusal(message: str, span: Span | None, help: str) -> CompassError:
    return CompassError(f"this loop cannot be pipelined: {message}", span, code=CODE, help=help)


def shown(array: object) -> str:
    """The name that an array has in the kernel."""
    return array.name.removesuffix("_buf") if isinstance(array, Var) else "memory that another pointer reaches"


@dataclass(frozen=True)
class Access:
    """An access of memory by a statement; `how`: "r", "w", or "rw" where it is not known."""

    root: Any
    how: Literal["r", "w", "rw"]


@dataclass(frozen=True, eq=False)
class Move:
    """A statement of the turn that only moves a tile: into `array` or out of it."""

    stmt: Stmt
    inward: bool
    array: Var
    far: object
    """The memory at the other side; None where a tile is only filled."""


@dataclass
class Turn:
    """The plan of a loop: what is moved ahead, behind, and the arrays that take turns."""

    loop: S.For
    stages: int
    ins: list[Move] = field(default_factory=list)
    outs: list[Move] = field(default_factory=list)
    made_ahead: list[S.Let] = field(default_factory=list)
    """What the transfers of `ins` are made of, in the order of the turn."""

    @cached_property
    def filled(self) -> list[Var]:
        return list(dict.fromkeys(m.array for m in self.ins))

    @cached_property
    def arrays(self) -> list[Var]:
        return list(dict.fromkeys(m.array for m in (*self.ins, *self.outs)))

    @cached_property
    def both(self) -> list[Var]:
        """Arrays that are filled and emptied."""
        return [a for a in self.filled if any(m.array is a for m in self.outs)]


@cache
def _touches(op: str) -> dict[int, Literal["r", "w"]]:
    """How an operation touches the memory of its operands, by their positions."""
    declared = core.load().get(op)
    return {} if declared is None else {t.operand: t.how for t in declared.touches}


class Turns:
    """The plans of the loops of a function."""

    def __init__(self, module: IRModule, f: PrimFunc) -> None:
        self.module, self.f = module, f
        self.hazards = Hazards(f)
        self._own: dict[Stmt, tuple[Access, ...]] = {}
        self.mutable = mutable_vars(f)
        self.allocs = {s.buffer.data: s for s in walk_stmts(f.body) if type(s) is S.Alloc}

    def plan(self, loop: S.For) -> Turn:
        """The plan of a loop; CompassError where its transfers cannot overlap, with the reason."""
        try:
            return self._plan(loop)
        except CompassError as e:
            if e.span is not None and e.span != loop.span:
                e.notes = (*e.notes, Note("this is what stands in the way", e.span))
            e.span = loop.span  # the loop as a whole is wrong: nothing in it is looked at further
            raise

    def _plan(self, loop: S.For) -> Turn:
        stages = dict(loop.annotations).get("stages", 2)
        assert isinstance(stages, int)
        turn = Turn(loop, stages)
        self._leaves(loop)
        moves = {id(s): m for s in loop.body if (m := self._move(s)) is not None}
        if not any(m.far is not None for m in moves.values()):
            raise refusal(
                "no statement of its body copies a tile between device memory and SRAM",
                loop.span,
                "copy tiles with S.dma_copy directly in the body, or use range",
            )
        for s in loop.body:
            if (move := moves.get(id(s))) is not None:
                (turn.ins if move.inward else turn.outs).append(move)
        filled_only = [
            m
            for m in turn.ins
            if m.far is None and not any(o.array is m.array and o.far not in (None, False) for o in turn.ins)
        ]
        turn.ins = [m for m in turn.ins if m not in filled_only]
        self._order(turn, moves)
        self._ahead(turn)
        self._far_sides(turn, moves)
        return turn

    # -- what the statements do

    def roots(self, e: Expr) -> frozenset[Any]:
        return self.hazards.roots(e)

    def accesses(self, body: Body) -> Iterator[Access]:
        """Accesses of memory in the order of the statements."""
        for s in walk_stmts(body):
            yield from self.own_accesses(s)

    def own_accesses(self, s: Stmt) -> tuple[Access, ...]:
        """Those of a statement without its blocks."""
        found = self._own.get(s)
        if found is None:
            found = self._own[s] = tuple(self._of_stmt(s))
        return found

    def _of_stmt(self, s: Stmt) -> Iterator[Access]:
        stored = s.buffer.data if isinstance(s, S.BufferStore) else None
        for root in s.exprs():
            if root is not stored:
                yield from self._of_expr(root)
        if stored is not None:
            yield from (Access(r, "w") for r in self.roots(stored))

    def _of_expr(self, root: Expr) -> Iterator[Access]:
        if not root.flags & _ACCESSES:
            return
        for e in walk_exprs(root, _ACCESSES):
            if type(e) is E.BufferLoad:
                yield from (Access(r, "r") for r in self.roots(e.buffer.data))
            elif type(e) is E.FuncCall:
                for a in e.args:
                    if isinstance(a.dtype, PointerType):
                        yield from (Access(r, "rw") for r in self.roots(a))
            elif type(e) is E.Call:
                yield from self._of_call(e)

    def _of_call(self, e: E.Call) -> Iterator[Access]:
        pointers = [(i, a) for i, a in enumerate(e.args) if isinstance(a.dtype, PointerType)]
        if not pointers:
            return
        touches = _touches(e.op)
        for i, a in sorted(pointers, key=lambda item: touches.get(item[0], "r") == "w"):  # reads first
            yield from (Access(r, touches.get(i, "rw")) for r in self.roots(a))

    def _leaves(self, loop: S.For) -> None:
        """Refuse what ends the loop early, and what synchronises in it."""
        leave = "the transfers of the following turns would run already"
        if own_breaks(loop.body):
            raise refusal(
                "a break leaves it or a continue its turn, and " + leave,
                loop.span,
                "compute the number of turns before the loop",
            )
        for s in walk_stmts(loop.body, E.F_JUMP):
            if type(s) is S.Return:
                raise refusal("a return leaves it, and " + leave, s.span, "return behind the loop")
        for op, span in self._calls(loop.body, set()):
            if op in _FORBIDDEN or op.startswith("async"):
                raise refusal(
                    f"S.{op.replace('alloc_event', 'alloc_events')} in it may have to do with transfers that run",
                    span or loop.span,
                    "take it out of the loop, or use range and transfers with events",
                )

    def _calls(self, body: Body, seen: set[str]) -> Iterator[tuple[str, Span | None]]:
        """The operations that a body and the functions that it calls use."""
        for e in all_exprs(body, E.F_CALL | E.F_FUNC):
            if type(e) is E.Call:
                yield e.op, e.span
            elif type(e) is E.FuncCall and e.func not in seen:
                seen.add(e.func)
                for op, _ in self._calls(self.module[e.func].body, seen):
                    yield op, e.span

    def _move(self, s: Stmt) -> Move | None:
        """The transfer that a statement is; None where it does anything else, too."""
        if not isinstance(s, (S.Evaluate, S.IfThenElse, S.For)):
            return None
        found: list[tuple[bool, Var, object]] = []
        for x in walk_stmts((s,)):
            if isinstance(x, (S.IfThenElse, S.For, S.Let)):
                if not all(map(is_pure, x.exprs())):
                    return None
                continue
            side = self._side(x)
            if side is None:
                return None
            found.append(side)
        if not found or len({(inward, array) for inward, array, _ in found}) > 1:
            return None
        inward, array, _ = found[0]
        far = [f for _, _, f in found if f is not None]
        return Move(s, inward, array, far[0] if far else None)

    def _side(self, s: Stmt) -> tuple[bool, Var, object] | None:
        """Of a copy or a filling: whether it goes into SRAM, the array there, the memory at the other side."""
        if type(s) is not S.Evaluate or type(s.value) is not E.Call or s.value.op not in ("dma_copy", "dma_memset"):
            return None
        to = self._array(s.value.args[0])
        if s.value.op == "dma_memset":
            return None if to is None else (True, to, None)
        source = self._array(s.value.args[1])
        if (to is None) == (source is None):
            return None
        inward = to is not None
        far = self.roots(s.value.args[1 if inward else 0])
        array = to if to is not None else source
        assert array is not None
        root = next(iter(far)) if len(far) == 1 else None
        return inward, array, False if root is None else root

    def _array(self, p: Expr) -> Var | None:
        """The SRAM array of this function that a pointer points into."""
        found = self.roots(p)
        one = next(iter(found)) if len(found) == 1 else None
        return one if one in self.allocs and self.allocs[one].buffer.scope in SRAM else None

    # -- what may be moved

    def _order(self, turn: Turn, moves: dict[int, Move]) -> None:
        """Refuse where the order of accesses of a tile in the turn leaves no room for transfers ahead or behind."""
        accesses = [(s, tuple(self.accesses((s,)))) for s in turn.loop.body]
        for array in turn.arrays:
            name = shown(array)
            used = emptied = copied = False
            first = True
            for s, every in accesses:
                move = moves.get(id(s))
                touched = [a for a in every if a.root is array or a.root is None]
                if not touched:
                    continue
                if move is not None and move.inward and move in turn.ins:
                    if used or emptied:
                        raise refusal(
                            f"{name!r} is filled while the turn works on it", s.span, "use an array for each transfer"
                        )
                    if copied and _fills(s):
                        raise refusal(
                            f"{name!r} is filled with a value behind the copy into it",
                            s.span,
                            "fill it before the copy",
                        )
                    copied = True
                elif move is not None and not move.inward:
                    emptied = True
                else:
                    if emptied and any("w" in a.how for a in touched):
                        raise refusal(
                            f"{name!r} is written behind the copy out of it",
                            s.span,
                            "copy it out at the end of the turn",
                        )
                    used = True
                if first and touched[0].how == "r":
                    raise refusal(
                        f"a turn reads {name!r}, which holds what the turn before it left there",
                        s.span,
                        "keep what goes from turn to turn in a variable or an array that no transfer touches",
                    )
                first = False

    def _ahead(self, turn: Turn) -> None:
        """Find what the transfers inward are made of; refuse what a turn computes."""
        body = turn.loop.body
        lets = {s.var: s for s in body if type(s) is S.Let}
        inside = set(defined_vars(body))
        changed = {s.var for s in walk_stmts(body) if isinstance(s, (S.Assign, S.SetElement))}
        written = {a.root for a in self.accesses(body) if "w" in a.how}
        needed: dict[Var, None] = {}
        for move in turn.ins:
            own = set(defined_vars((move.stmt,)))
            waiting = [v for v in used_vars((move.stmt,)) if v not in own]
            self._unwritten((move.stmt,), written, turn)
            while waiting:
                var = waiting.pop()
                if var in needed or var in self.allocs or var is turn.loop.loop_var:
                    continue
                if var in changed or (var in self.mutable and var in inside):
                    raise refusal(
                        f"the copy into {shown(move.array)!r} depends on {shown(var)!r}, which turns change",
                        move.stmt.span,
                        "compute it from the loop variable",
                    )
                if var not in inside:
                    continue
                let = lets.get(var)
                if let is None or not is_pure(let.value):
                    raise refusal(
                        f"the copy into {shown(move.array)!r} depends on {shown(var)!r}, which the turn computes",
                        move.stmt.span,
                        "compute it from the loop variable",
                    )
                self._unwritten((let,), written, turn)
                needed[var] = None
                waiting += variables(let.value)
        turn.made_ahead = [s for s in body if type(s) is S.Let and s.var in needed]

    def _unwritten(self, body: Body, written: set[object], turn: Turn) -> None:
        """Refuse loads of what the loop writes, in statements that are done ahead."""
        for e in all_exprs(body, E.F_LOAD):
            if type(e) is E.BufferLoad and (self.roots(e.buffer.data) & written or None in written):
                raise refusal(
                    f"what a transfer needs is read from {shown(e.buffer.data)!r}, which the loop writes",
                    body[0].span or turn.loop.span,
                    "read it before the loop",
                )

    def _far_sides(self, turn: Turn, moves: dict[int, Move]) -> None:
        """Refuse where turns would read device memory before, or use it while, transfers write it."""
        body = turn.loop.body
        work = tuple(s for s in body if moves.get(id(s)) is None or moves[id(s)] not in (*turn.ins, *turn.outs))
        for a in self.accesses(work):
            for move in turn.ins:
                if move.far is not None and "w" in a.how and _may_be(a.root, move.far):
                    raise refusal(
                        f"a turn writes {shown(move.far)!r}, from which the copy into {shown(move.array)!r} of the next "
                        "turn reads already",
                        move.stmt.span,
                        "write to other memory, or use range",
                    )
            for move in turn.outs:
                if _may_be(a.root, move.far):
                    raise refusal(
                        f"a turn uses {shown(move.far)!r} while the copy out of {shown(move.array)!r} still writes it",
                        move.stmt.span,
                        "use other memory, or range",
                    )
        for out in turn.outs:
            for move in turn.ins:
                if move.far is None or not _may_be(out.far, move.far):
                    continue
                if not apart(self.f, turn.loop, move.stmt, out.stmt):
                    raise refusal(
                        f"the copy into {shown(move.array)!r} may read what the turn before it copies to {shown(out.far)!r}",
                        move.stmt.span,
                        "let tiles lie a step apart, or write to other memory",
                    )


def _may_be(a: object, b: object) -> bool:
    """Whether two roots may be the same memory (None and False: any)."""
    return a is b or a is None or b is None or a is False or b is False


def _fills(s: Stmt) -> bool:
    return any(type(e) is E.Call and e.op == "dma_memset" for e in all_exprs((s,), E.F_CALL))
