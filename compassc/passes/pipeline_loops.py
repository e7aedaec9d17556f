"""Let the transfers of a pipelined loop run beside the work of other turns.

Before: the body of a loop of kind pipelined has copies between device memory and SRAM arrays of the function, which
nothing else uses outside of such loops (CompassError with the reason where turns depend on each other).
After: there is no loop of kind pipelined. Arrays of tiles have room for several turns, which have them in rotation: the
copies into them are started `stages - 1` turns ahead, by the first turns before the loop; copies out of them are waited
for where the next ones are started. Arrays that are filled and emptied have room for one turn more, so that a copy never
waits for the work of the turn before, unless that takes more LSRAM than there is. Events are allocated before the loop
and freed behind it.
"""

from __future__ import annotations

from dataclasses import field

from compass_core import targets
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Span

from ..analysis.buffers import size_of
from ..analysis.statements import defined_vars, fresh_copy, mutable_vars, used_vars
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import INT32, VOID, DataType, PointerType
from ..ir.exprs import Binary, Buffer, Expr, IntImm, Var
from ..ir.stmts import Body, IRModule, PrimFunc, Stmt
from ..ir.visit import Rewritten, StatementRewriter, all_exprs, rewrites, substitute_body, walk_stmts
from ._events import Started, bit, wait
from ._pipelined_transfers import Move, Turn, Turns, refusal, shown
from ._sram_pieces import Room, rooms

NAME = "PipelineLoops"
ONE = IntImm(INT32, 1)


def run(module: IRModule) -> IRModule:
    return module.map_functions(lambda f: _function(module, f) if _has(f.body) else f)


def _has(body: Body) -> bool:
    return any(type(s) is S.For and s.kind == "pipelined" for s in walk_stmts(body))


def _function(module: IRModule, f: PrimFunc) -> PrimFunc:
    turns = Turns(module, f)
    plans = {id(s): turns.plan(s) for s in walk_stmts(f.body) if type(s) is S.For and s.kind == "pipelined"}
    target = targets.load(module.target)
    _own(turns, list(plans.values()))
    held = sum(type(e) is E.Call and e.op == "alloc_event" for e in all_exprs(f.body, E.F_CALL))
    for spare in (1, 0):
        new = _Pipeline(turns, plans, target.events - held, spare).function(f)
        arrays = [s.buffer for s in walk_stmts(new.body) if type(s) is S.Alloc and s.buffer.scope == "lsram"]
        if sum(map(size_of, arrays)) <= target.lsram_bytes:
            return new  # without sharing any
        taken = [room for room in rooms(new) if room.scope == "lsram"]
        if sum(room.bytes for room in taken) <= target.lsram_bytes:
            return new
    raise _too_large(turns, taken, target.lsram_bytes, target.name)


def _own(turns: Turns, plans: list[Turn]) -> None:
    """Refuse arrays of tiles that something outside of their loops uses."""
    for array in dict.fromkeys(a for plan in plans for a in plan.arrays):
        loops = {id(plan.loop) for plan in plans if array in plan.arrays}
        stack = list(turns.f.body)
        while stack:
            s = stack.pop()
            if id(s) in loops:
                continue
            defines = isinstance(s, (S.Let, S.Alloc, S.DeclBuffer))
            if not defines and any(a.root is array for a in turns.own_accesses(s)):
                raise refusal(
                    f"{shown(array)!r}, which has its tiles, is used outside of it",
                    s.span,
                    "allocate an array for the loop, and another one for what is outside",
                )
            for body in s.bodies():
                stack += body


def _too_large(turns: Turns, taken: list[Room], size: int, target: str) -> CompassError:
    table = "".join(f"\n  {room.bytes:>9,}  {room.arrays[0].removesuffix('_buf')}" for room in taken)
    loop = next(s for s in walk_stmts(turns.f.body) if type(s) is S.For and s.kind == "pipelined")
    total = sum(room.bytes for room in taken)
    return CompassError(
        f"with room for the tiles of several turns the arrays take {total:,} bytes of the LSRAM of a TEC, which has "
        f"{size:,} on {target}:{table}",
        loop.span,
        code="over-allocation",
        help="use smaller tiles or fewer stages",
    )


def _const(value: int, like: DataType = INT32) -> Expr:
    return IntImm(like, value)


@dataclass
class _Events:
    """The events of a loop: `ahead` has a list per group of copies inward, one event for each turn that is under way."""

    ahead: list[list[Var]]
    behind: list[Var]
    of: dict[Move, int] = field(default_factory=dict)

    @property
    def all(self) -> list[Var]:
        return [v for group in self.ahead for v in group] + self.behind


def _events(turn: Turn, available: int) -> _Events:
    """Events for a loop: one for each array that is filled and each memory that is written, shared if these are many."""
    into = list(dict.fromkeys(m.array for m in turn.ins))
    out = list(dict.fromkeys(m.far for m in turn.outs))
    least = (turn.stages - 1) * bool(into) + bool(out)
    if least > available:
        raise refusal(
            f"it needs {least} events, and {max(available, 0)} are free here",
            turn.loop.span,
            "use fewer stages, or free events of your own",
        )
    groups = min(len(into), (available - bool(out)) // (turn.stages - 1))
    behind = min(len(out), available - groups * (turn.stages - 1))
    found = _Events(
        [[Var(f"{shown(into[g])}_came", INT32) for _ in range(turn.stages - 1)] for g in range(groups)],
        [Var(f"{shown(turn.outs[g].array)}_went", INT32) for g in range(behind)],
    )
    found.of = {m: into.index(m.array) % groups for m in turn.ins}
    found.of |= {m: out.index(m.far) % behind for m in turn.outs}
    return found


class _Pipeline(StatementRewriter):
    def __init__(self, turns: Turns, plans: dict[int, Turn], events: int, spare: int) -> None:
        super().__init__()
        self.turns, self.plans, self.events, self.spare = turns, plans, events, spare
        self.rooms: dict[Var, int] = {}
        for plan in plans.values():
            for array in plan.arrays:
                room = plan.stages + spare * (array in plan.both) if array in plan.filled else 2
                self.rooms[array] = max(room, self.rooms.get(array, 0))

    @rewrites(S.Alloc)
    def rewrite_alloc(self, s: S.Alloc) -> Rewritten:
        room = self.rooms.get(s.buffer.data)
        if room is None:
            return s
        shape = (_const(room), *s.buffer.shape)
        return s.replace(buffer=Buffer(s.buffer.data, s.buffer.dtype, shape))

    @rewrites(S.For)
    def rewrite_for(self, s: S.For) -> Rewritten:
        turn = self.plans.get(id(s)) if s.kind == "pipelined" else None
        if turn is None:
            return self.default_stmt(s)
        events = _events(turn, self.events)
        self.events -= len(events.all)
        loop = self.default_stmt(s)
        self.events += len(events.all)
        return _Loop(self, turn, events, loop).made()


class _Loop:
    """The statements that a pipelined loop becomes. `loop` has the loops inside it rewritten already."""

    def __init__(self, at: _Pipeline, turn: Turn, events: _Events, loop: S.For) -> None:
        self.at, self.turn, self.events, self.loop = at, turn, events, loop
        self.span = loop.span
        self.head: list[Stmt] = []
        self.stop, self.step = self._frozen(loop.stop, "stop"), self._frozen(loop.step, "step")
        self.start = self._frozen(loop.min, "start")
        self.slots = {n: Var(f"turn_of_{n}", INT32, True) for n in sorted({at.rooms[a] for a in turn.arrays})}
        self.pointers = self._pointers()

    def _frozen(self, e: Expr, name: str) -> Expr:
        """A bound of the loop as it is where the loop begins."""
        if isinstance(e, IntImm) or (isinstance(e, Var) and e not in self.at.turns.mutable):
            return e
        var = Var(f"{self.loop.loop_var.name}_{name}", e.data_type)
        self.head.append(S.Let(var, e))
        return var

    def _pointers(self) -> dict[Var, Var]:
        """The pointer variables of the body that point into a tile and are defined outside, with the arrays."""
        inside = set(defined_vars(self.turn.loop.body))
        found: dict[Var, Var] = {}
        for var in dict.fromkeys(used_vars(self.turn.loop.body)):
            if not isinstance(var.dtype, PointerType) or (var in inside and var not in self.turn.arrays):
                continue
            roots = self.at.turns.roots(var)
            mine = [a for a in self.turn.arrays if a in roots]
            if not mine:
                continue
            if len(roots) > 1 or var.pointer_type.elem.is_void or var in mutable_vars(self.at.turns.f):
                raise refusal(
                    f"{shown(var)!r} is moved, and points into the tile {shown(mine[0])!r}",
                    self.span,
                    "use a pointer of its own in the body",
                )
            found[var] = mine[0]
        return found

    # -- the statements

    def made(self) -> list[Stmt]:
        head = [*self.head, *(S.Let(v, E.Call("alloc_event", (), INT32)) for v in self.events.all)]
        head += [S.Let(v, _const(0)) for v in self.slots.values()]
        allocs = [s for s in self.loop.body if self._moved_out(s)]
        bits: Expr | None = None
        for event in self.events.all:
            bits = bit(event) if bits is None else Binary("bitor", bits, bit(event))
        assert bits is not None
        body = (*self._work(), *self._next())
        loop = self.loop.replace(
            kind="serial", annotations=(), min=self.start, stop=self.stop, step=self.step, body=body
        )
        free = S.Evaluate(E.Call("free_events", (bits,), VOID))
        return _at([*allocs, *head, *self._first(), loop, free], self.span)

    def _first(self) -> list[Stmt]:
        """The transfers that the first turns need, which run before them."""
        made: list[Stmt] = []
        kind = self.loop.loop_var.data_type
        for k in reversed(range(self.turn.stages - 1) if self.turn.ins else ()):
            gone = E.Binary("mul", self.step, _const(k, kind)) if k > 1 else self.step
            value = self.start if not k else Binary("add", self.start, gone)
            exists = (
                Binary("lt", self.start, self.stop)
                if not k
                else Binary("lt", gone, Binary("sub", self.stop, self.start))
            )
            made = [S.IfThenElse(exists, (*self._copies(value, {n: _const(k) for n in self.slots}, k), *made), ())]
        return made

    def _waits(self) -> tuple[list[Stmt], dict[int, Stmt]]:
        """How the turn waits for its tiles: for all that certainly come at once, for others where their copies stood."""
        plain: dict[int, Stmt] = {}
        chosen: dict[int, Stmt] = {}
        for move in self.turn.ins:
            group = self.events.of[move]
            event = self.events.ahead[group][0]
            if move.far is None:
                continue  # filled at once
            if isinstance(move.stmt, S.IfThenElse):
                chosen[id(move.stmt)] = _waiting(move.stmt, event)
            else:
                plain[group] = wait(event)
        return list(plain.values()), chosen

    def _ahead(self) -> list[Stmt]:
        """The transfers of the turn that comes `stages - 1` turns later."""
        if not self.turn.ins:
            return []
        kind = self.loop.loop_var.data_type
        ahead = self.turn.stages - 1
        gone = self.step if ahead == 1 else Binary("mul", self.step, _const(ahead, kind))
        slots: dict[int, Expr] = {}
        for n, slot in self.slots.items():
            around = Binary("add", slot, _const(ahead - n))
            slots[n] = (
                Binary("sub", ONE, slot)
                if n == 2 and ahead == 1
                else E.Select(Binary("lt", slot, _const(n - ahead)), Binary("add", slot, _const(ahead)), around)
            )
        made = list(self._copies(Binary("add", self.loop.loop_var, gone), slots, 0))
        reused = [
            m for m in self.turn.outs if m.array in self.turn.filled and self.at.rooms[m.array] == self.turn.stages
        ]
        made = [*self._gone({self.events.of[m] for m in reused}), *made]
        return [S.IfThenElse(Binary("lt", gone, Binary("sub", self.stop, self.loop.loop_var)), tuple(made), ())]

    def _gone(self, groups: set[int]) -> list[Stmt]:
        """Wait for the copies outward of the turn before."""
        if not groups:
            return []
        waits = tuple(wait(self.events.behind[g]) for g in sorted(groups))
        return [S.IfThenElse(Binary("lt", self.start, self.loop.loop_var), waits, ())]

    def _copies(self, value: Expr, slots: dict[int, Expr], k: int) -> Body:
        """The transfers inward of the turn whose number is `value`."""
        moved: list[Stmt] = list(self.turn.made_ahead)
        busy: dict[Var, Move] = {}
        for move in self.turn.ins:
            event = self.events.ahead[self.events.of[move]][k]
            moved += [_waiting(busy[event].stmt, event)] if event in busy and move.far is not None else []
            moved += Started(event).body((move.stmt,))
            busy |= {event: move} if move.far is not None else {}
        mapping, lets = self._placed(slots, "ahead", set(used_vars(tuple(moved))))
        var = Var(self.loop.loop_var.name, self.loop.loop_var.dtype, self.loop.loop_var.nonneg)
        body = substitute_body(tuple(moved), {**mapping, self.loop.loop_var: var})
        return fresh_copy((S.Let(var, value), *lets, *body))

    def _placed(self, slots: dict[int, Expr], word: str, used: set[Var]) -> tuple[dict[Var, Expr], list[Stmt]]:
        """Pointers into the tiles of a turn, by those into the first one, and their definitions."""
        mapping: dict[Var, Expr] = {}
        made: list[Stmt] = []
        for var, array in self.pointers.items():
            if var not in used:
                continue
            buffer = self.at.turns.allocs[array].buffer
            elem = var.pointer_type.elem
            slot = slots[self.at.rooms[array]]
            offset = Binary("mul", slot, _const(size_of(buffer) // elem.total_bytes))
            new = Var(f"{shown(var)}_{word}", var.dtype)
            made.append(S.Let(new, E.Pointer(elem, var, offset)))
            mapping[var] = new
        return mapping, made

    def _work(self) -> Body:
        """The turn without its transfers inward, and with those outward started only."""
        ins = [id(m.stmt) for m in self.turn.ins]
        outs = {id(m.stmt): m for m in self.turn.outs}
        first = {self.events.of[m]: m for m in reversed(self.turn.outs)}
        plain, chosen = self._waits()
        last = next((i for i in reversed(ins) if i in chosen), ins[0] if ins else None)
        here, made = self._placed(dict(self.slots), "here", set(used_vars(self.loop.body)))
        for s in self.loop.body:
            move = outs.get(id(s))
            if ins and id(s) == ins[0]:
                made += plain
            if id(s) in chosen:
                made.append(chosen[id(s)])
            if id(s) == last:
                made += self._ahead()
            if move is not None:
                group = self.events.of[move]
                made += self._gone({group}) if first[group] is move else [wait(self.events.behind[group])]
                made += substitute_body(Started(self.events.behind[group]).body((s,)), here)
            elif id(s) not in ins and not self._moved_out(s):
                made += substitute_body((s,), here)
        return tuple(made)

    def _moved_out(self, s: Stmt) -> bool:
        return type(s) is S.Alloc and s.buffer.data in self.at.rooms

    def _next(self) -> list[Stmt]:
        made: list[Stmt] = []
        for n, slot in self.slots.items():
            after = (
                Binary("sub", ONE, slot)
                if n == 2
                else E.Select(Binary("lt", slot, _const(n - 1)), Binary("add", slot, ONE), _const(0))
            )
            made.append(S.Assign(slot, after))
        for group in self.events.ahead:
            if len(group) > 1:
                first = Var("event", INT32)
                made.append(S.Let(first, group[0]))
                made += [S.Assign(a, b) for a, b in zip(group, [*group[1:], first])]
        return made


def _waiting(s: Stmt, event: Expr) -> Stmt:
    """Wait for the copies of a statement, under its condition."""
    if not isinstance(s, S.IfThenElse):
        return wait(event)
    then, orelse = ((wait(event),) if body else () for body in (s.then_case, s.else_case))
    return S.IfThenElse(s.condition, then, orelse)


def _at(body: list[Stmt], span: Span | None) -> list[Stmt]:
    """Statements with the place of the loop where they have none."""
    return list(_Places(span).body(tuple(body)))


class _Places(StatementRewriter):
    def __init__(self, span: Span | None) -> None:
        super().__init__()
        self.span = span

    def stmt(self, s: Stmt) -> Rewritten:
        s = self.default_stmt(s)
        return s if s.span is not None or self.span is None else s.at(self.span)
