"""The loop nest of a lowered module as numbers: for each statement how often it runs, on how many TECs, and what it does.

What is followed is the first TEC: it has the most turns of shared loops. Instructions are counted per register, in the
classes of profiles (`compass_core/configurations/cost/classes.yaml`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from functools import cache

from compass_core import targets
from compass_core.dataclass import dataclass
from compass_runtime.profile.costs import CostModel, cost_model, op_classes
from compass_runtime.profile.regions import Op, Region
from compassc.analysis.statements import is_const
from compassc.analysis.structure import Interner, is_pure, variables
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.exprs import Expr, Var
from compassc.ir.stmts import Body, IRModule, PrimFunc, Stmt
from compassc.ir.visit import walk_exprs
from compassc.ops.core import load
from compassc.tuning.cost.values import Values

Results = tuple[int, ...]
"""Operations of a piece by number, and variables from before it: -1 - i for variable i of its region."""
_NOWHERE = ("", 0)
UNKNOWN_TURNS = 16.0
"""What is taken for a loop whose number of turns nothing tells."""
_DMA = {"dma_copy": (0, 1, False), "async_dma_copy": (0, 1, True)}
"""Operands of destination and source, and whether the TEC goes on."""


@dataclass
class Transfer:
    """A transfer by DMA: bytes, rows and bytes between them, from where to where."""

    bytes: float
    rows: float
    width: float
    inwards: bool
    background: bool


@dataclass
class Access:
    """A load or store: instructions, bytes, memory, and how often the same bytes are used again."""

    scope: str
    store: bool
    instructions: int
    bytes: float
    useful: float
    reuse: float
    gather: bool


@dataclass
class Statement:
    """A statement: how often it runs (on the first TEC), on how many TECs, inside of which loops, and what a run does."""

    kind: str
    runs: float
    tecs: float
    turns: dict[str, float]
    """Turns of the loops around it, by kind, multiplied."""
    piece: int
    """Statements of one piece run together."""
    classes: Counter[str] = field(default_factory=Counter)
    lanes: list[tuple[int, int]] = field(default_factory=list)
    """Bytes of each vector operation, and of the registers it takes."""
    accesses: list[Access] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)


@dataclass
class Piece:
    """Statements that always run together; `region`: their operations, as profiles have them."""

    runs: float
    tecs: float
    region: Region
    statements: list[Statement] = field(default_factory=list)


@dataclass(eq=False)
class Nest:
    """What a program does: pieces, the loops, and the memory it takes."""

    target: targets.Target
    pieces: list[Piece] = field(default_factory=list)
    branches: float = 0.0
    unknown_loops: int = 0
    memory: Counter[str] = field(default_factory=Counter)
    """Bytes by scope."""
    doubled: float = 0.0
    """Bytes of arrays of two halves."""
    lines: int = 0

    @property
    def statements(self) -> Iterator[Statement]:
        for piece in self.pieces:
            yield from piece.statements


def loop_nest(module: IRModule, sizes: Mapping[str, float] | None = None) -> Nest:
    """The nest of a lowered module: of its entry, with the functions that this calls in their places.

    `sizes`: values of scalar parameters, where loops depend on them.
    """
    walk = _Walk(module, sizes or {})
    walk.function(module.entry_func)
    return walk.nest


@cache
def _classes() -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Classes of operations by name (of vectors, of scalars), and of operators on vectors."""
    declared = load()
    named = {name: (op.cost.kind, op.cost.scalar) for name, op in declared.items() if op.cost is not None}
    return named, {op.operator: op.cost.kind for op in declared.values() if op.operator and op.cost is not None}


_SCALAR = {"mul": "scalar_mul", "div": "scalar_div", "mod": "scalar_div", "floordiv": "scalar", "floormod": "scalar"}


class _Walk:
    def __init__(self, module: IRModule, sizes: Mapping[str, float]) -> None:
        self.module, self.target = module, targets.load(module.target or "X2_1204")
        self.model = cost_model(self.target.name)
        given = {p: sizes[p.name] for p in module.entry_func.params if p.name in sizes}
        self.values = Values(self.target.tecs, given)
        self.nest = Nest(self.target)
        self.runs, self.tecs = 1.0, float(self.target.tecs)
        self.turns: dict[str, float] = {}
        self.around: list[tuple[Var, float]] = []
        self.within: dict[Var, int] = {}
        """By a variable the number of loops that were open when it was defined."""
        self.depth = 0
        self._region(False)

    def function(self, f: PrimFunc) -> None:
        self._body(f.body, False)

    # Statements

    def _body(self, body: Body, loop: bool) -> None:
        whole = loop and not any(s.bodies() for s in body)
        piece: Piece | None = None
        for s in body:
            if s.bodies():
                piece = None
                self._nested(s)
                continue
            if isinstance(s, (S.Alloc, S.DeclBuffer, S.AllocConst)):
                self._allocated(s)
                continue
            if piece is None:
                piece = Piece(self.runs, self.tecs, self._region(whole))
                self.nest.pieces.append(piece)
            piece.statements.append(self._statement(s))
            if any(e.flags & E.F_FUNC for e in s.exprs()):
                piece = None
                self._called(s)

    def _nested(self, s: Stmt) -> None:
        if isinstance(s, S.For):
            self._loop(s)
        elif isinstance(s, S.IfThenElse):
            likely = min(max(self.values.mean(s.condition, 0.5), 0.0), 1.0)
            alone = (
                isinstance(s.condition, E.Binary) and s.condition.op == "eq" and _mentions(s.condition, "get_local_id")
            )
            with self._where(likely, 1.0 if alone else self.tecs):
                self._body(s.then_case, False)
            with self._where(1.0 - likely, self.tecs):
                self._body(s.else_case or (), False)
            self.nest.branches += self.runs
        elif isinstance(s, S.While):
            self.nest.unknown_loops += 1
            with self._where(UNKNOWN_TURNS, self.tecs):
                self.nest.branches += self.runs
                self._body(s.body, True)
        else:
            for body in s.bodies():
                self._body(body, False)

    def _loop(self, s: S.For) -> None:
        turns = self.values.turns(s.min, s.stop, s.step)
        count = UNKNOWN_TURNS if turns is None else float(turns.mean())
        self.nest.unknown_loops += turns is None
        kind, tecs = s.kind, self.tecs
        if s.kind == "tec":
            count, tecs = min(count, 1.0), min(count, tecs)
        elif isinstance(s.min, E.Call) and s.min.op == "get_local_id":
            kind, tecs = "tec", min(self.values.mean(s.stop, tecs), tecs)
        if turns is not None:
            self.values.enter(s.loop_var, s.min, s.step, turns)
        before = dict(self.turns)
        self.turns[kind] = self.turns.get(kind, 1.0) * max(count, 1e-3)
        self.around.append((s.loop_var, max(count, 1e-3)))
        with self._where(count, tecs):
            if s.kind not in ("unrolled", "tec"):
                self.nest.branches += self.runs
            self._body(s.body, True)
        self.around.pop()
        self.turns = before

    @contextmanager
    def _where(self, times: float, tecs: float) -> Iterator[None]:
        runs, own = self.runs, self.tecs
        self.runs, self.tecs = runs * times, tecs
        yield
        self.runs, self.tecs = runs, own

    def _allocated(self, s: Stmt) -> None:
        if isinstance(s, S.Alloc):
            extents = [self.values.mean(e, 1.0) for e in s.buffer.shape]
            size = float(s.buffer.dtype.total_bytes)
            for extent in extents:
                size *= extent
            self.nest.memory[s.buffer.scope] += int(size)
            if len(extents) > 1 and extents[0] == 2 and s.buffer.scope in ("lsram", "shared"):
                self.nest.doubled += size

    def _called(self, s: Stmt) -> None:
        """Functions that a statement calls, as if their text stood here."""
        if self.depth > 8:
            return
        for e in s.exprs():
            for x in walk_exprs(e):
                if isinstance(x, E.FuncCall):
                    f = self.module[x.func]
                    for p, a in zip(f.params, x.args):
                        found = self.values.of(a) if a.dtype.lanes == 1 else None
                        if found is not None:
                            self.values.known[p] = found
                    self.depth += 1
                    self._body(f.body, False)
                    self.depth -= 1

    def _region(self, loop: bool) -> Region:
        """Begins a piece of straight text."""
        self.region = Region(len(self.nest.pieces), whole_loop=loop)
        self.results: dict[Var, Results] = {}
        self.same: dict[object, Results] = {}
        self.interner = Interner()
        return self.region

    def _statement(self, s: Stmt) -> Statement:
        made = Statement(type(s).__name__, self.runs, self.tecs, dict(self.turns), len(self.nest.pieces) - 1)
        self.nest.lines += 1
        found: Results = tuple(x for e in s.exprs() for x in self._expr(e, made))
        if isinstance(s, S.BufferStore):
            self._access(s.buffer, s.indices, s.mask, made, True, found)
        elif isinstance(s, (S.Let, S.Assign)):
            if s.var in self.results:
                self.same = {}  # what was computed of its old value is another value now
            self.results[s.var] = found
            self.region.written[_name(s.var)] = found
            self.within[s.var] = len(self.around)
            if s.value.dtype.lanes == 1:
                self._bind(s)
        return made

    def _bind(self, s: S.Let | S.Assign) -> None:
        found = self.values.of(s.value)
        if isinstance(s, S.Assign) or found is None:
            self.values.known.pop(s.var, None)
        else:
            self.values.known[s.var] = found

    # Expressions: the operations that they are, and those that give their values

    def _expr(self, e: Expr, into: Statement) -> Results:
        if isinstance(e, Var):
            return self._variable(e)
        plain = not e.flags & (E.F_LOAD | E.F_FUNC) and e.children() and is_pure(e)
        key = self.interner.key(e) if plain else None
        if key in self.same:
            return self.same[key]
        found = self._computed(e, into)
        if key is not None:
            self.same[key] = found
        return found

    def _variable(self, v: Var) -> Results:
        if v in self.results:
            return self.results[v]
        name = _name(v)
        if name not in self.region.variables:
            self.region.variables.append(name)
        return (-1 - self.region.variables.index(name),)

    def _computed(self, e: Expr, into: Statement) -> Results:
        below: Results = tuple(x for c in e.children() for x in self._expr(c, into))
        if isinstance(e, E.BufferLoad):
            return self._access(e.buffer, e.indices, e.mask, into, False, below)
        kind = self._class(e)
        if isinstance(e, E.Call) and (e.op in _DMA or e.op == "dma_memset"):
            into.transfers.append(self._transfer(e))
        return below if kind is None else self._add(kind, self._registers(e, kind, into), below, into)

    def _add(self, kind: str, times: int, operands: Results, into: Statement, external: bool = False) -> Results:
        """So many operations of a class."""
        into.classes[kind] += times
        first = len(self.region.ops)
        self.region.ops += [Op(kind, _NOWHERE, tuple(dict.fromkeys(operands)), external=external)] * times
        return tuple(range(first, first + times))

    def _class(self, e: Expr) -> str | None:
        """The class of the instruction that a node is; None where it is none."""
        named, operators = _classes()
        wide = _vector(e)
        if isinstance(e, E.Binary):
            return operators.get(e.op, "mask") if wide else _SCALAR.get(e.op, "scalar")
        if isinstance(e, E.Call):
            found = named.get(e.op)
            if found is None or found[0] == "free":
                return None
            return found[0] if wide or found[0] in ("dma", "event", "wait", "barrier", "section") else found[1]
        if isinstance(e, E.Select):
            return "alu" if wide else "scalar"
        if isinstance(e, E.Broadcast):
            return None if isinstance(e.value, (E.IntImm, E.FloatImm)) else "permute"
        if isinstance(e, (E.TailMask, E.GetElement)):
            return "mask" if isinstance(e, E.TailMask) else "scalar"
        if isinstance(e, (E.Unary, E.Cast)):
            return "alu" if wide else "scalar"
        return None

    def _registers(self, e: Expr, kind: str, into: Statement) -> int:
        if not _vector(e):
            return 1
        sizes = [x.data_type.total_bytes for x in (e, *e.children()) if x.dtype.lanes > 1 and not x.data_type.is_mask]
        size = max(sizes, default=self.target.vector_bytes)
        count = max(-(-size // self.target.vector_bytes), 1)
        if kind != "mask":
            into.lanes.append((size, count * self.target.vector_bytes))
        return count

    # Memory

    def _access(
        self,
        buffer: E.Buffer,
        indices: tuple[Expr, ...],
        mask: Expr | None,
        into: Statement,
        store: bool,
        operands: Results,
    ) -> Results:
        last = indices[-1]
        scope = buffer.scope.split(".")[0]
        lanes = last.dtype.lanes * buffer.dtype.lanes
        size = buffer.dtype.bytes * lanes
        strided = last.dtype.lanes > 1 and not (isinstance(last, E.Ramp) and is_const(last.stride, 1))
        kind = ("scatter" if store else "gather") if strided else ("store" if store else "load")
        if lanes == 1:
            kind = "scalar_" + kind
        count = max(-(-size // self.target.vector_bytes), 1)
        if lanes > 1:
            into.lanes.append((size, count * self.target.vector_bytes))
        mentioned: set[Var] = set().union(*(variables(i) for i in indices))
        if mentioned:
            operands = (*operands, *self._address(buffer, indices, into))
        reuse = 1.0
        for i, (var, turns) in enumerate(self.around):
            inside = any(self.within.get(v, 0) > i for v in mentioned)
            reuse *= 1.0 if var in mentioned or inside else max(turns, 1.0)
        useful = size if mask is None else size * 0.5
        into.accesses.append(Access(scope, store, count, float(size), float(useful), reuse, strided))
        return self._add(kind, count, operands, into, scope == "global")

    def _address(self, buffer: E.Buffer, indices: tuple[Expr, ...], into: Statement) -> Results:
        """The operations that make an address of several indices, each once in a piece."""
        found: Results = ()
        for place, index in enumerate(indices):
            if isinstance(index, E.IntImm):
                continue
            base = index.base if isinstance(index, E.Ramp) else index
            key = (len(indices) - place, buffer.data if place == len(indices) - 1 else None, self.interner.key(base))
            if key not in self.same:
                self.same[key] = self._add("scalar", 1, self._expr(base, into), into)
            found = (*found, *self.same[key])
        return found

    def _transfer(self, e: E.Call) -> Transfer:
        if e.op == "dma_memset":
            size = self.values.mean(e.args[1], 1024.0) * int(e.attr("itemsize", 1))
            return Transfer(size, 1.0, size, True, False)
        to, source, background = _DMA[e.op]
        width, total = (max(self.values.mean(e.args[i], 1024.0), 1.0) for i in (2, 4))
        scopes = [str(e.args[i].pointer_type.scope).split(".")[0] for i in (to, source)]
        return Transfer(total, max(total / width, 1.0), width, scopes[1] == "global", background)


def _name(v: Var) -> tuple[str, str]:
    return v.name, str(id(v))


def _vector(e: Expr) -> bool:
    """Whether an operation is one of vectors."""
    return e.dtype.lanes > 1 or any(c.dtype.lanes > 1 for c in e.children())


def _mentions(e: Expr, op: str) -> bool:
    return any(isinstance(x, E.Call) and x.op == op for x in walk_exprs(e))


def class_names() -> list[str]:
    """The classes of instructions that are counted, in order."""
    return [name for name in op_classes() if name not in ("free", "print", "section")]


def units(target: str) -> CostModel:
    """The cost model of a target: what features of cycles are made of."""
    return cost_model(target)
