"""Make loads and costly numbers that would give the same again once.

Before: any module. After, in the entry: in a statement, and in a run of them, equal loads become a variable (with the conversion of what they give, where all uses
convert it, or as a vector where all lanes have it), and so does a quotient or function of scalars that all lanes
of a vector have, for wide vectors are cut into registers; what no turn of a loop changes is made before the loop. What may
write the memory in between ends it: a store into the same array (into any array in device memory, for parameters may be
the same memory), and transfers, events and barriers for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from compass_core.operators import DIVISIONS
from compassc.analysis.statements import defined_vars
from compassc.analysis.structure import Interner, effect_of, is_pure, variables
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.exprs import Expr, IntImm, Var
from compassc.ir.stmts import Body, IRModule, Stmt
from compassc.ir.visit import Rewriter, StatementRewriter, rewrites, walk_exprs, walk_stmts
from compassc.passes.loops._functions import on_entry

NAME = "ReuseLoads"
_MOST = 16
"""Loads that are made before one loop: more would not stay in registers."""
_PLAIN = (S.Let, S.Assign, S.BufferStore)
Read = E.BufferLoad | E.Cast | E.Call | E.Broadcast
"""A load, the conversion of one, or either of them in all lanes of a vector."""


def run(module: IRModule) -> IRModule:
    return on_entry(module, lambda f: _Reuse().function(f))


class _Reuse(StatementRewriter):
    def body(self, body: Body) -> Body:
        made: list[Stmt] = []
        for s in body:
            before, s = self._entered(s)
            made += [*before, s]
        if all(a is b for a, b in zip(made, body)) and len(made) == len(body):
            made = list(body)
        made = [x for s in made for x in _apart(s)]
        shared = [s for run in _runs(made) for s in _shared(run)]
        same = len(shared) == len(body) and all(a is b for a, b in zip(shared, body))
        return body if same else tuple(shared)

    def _entered(self, s: Stmt) -> tuple[list[Stmt], Stmt]:
        """Loads to be made before a statement, and the statement with its blocks rewritten."""
        if isinstance(s, S.For):
            inside = self.body(s.body)
            before, inside = _before(s, inside)
            return before, s if inside is s.body else s.replace(body=inside)
        new = s.map(self.expr, self.body) if s.bodies() else s
        return [], new


def _runs(body: Iterable[Stmt]) -> Iterator[list[Stmt]]:
    """Plain statements that follow each other, and the others one by one."""
    run: list[Stmt] = []
    for s in body:
        if isinstance(s, _PLAIN):
            run.append(s)
            continue
        if run:
            yield run
            run = []
        yield [s]
    if run:
        yield run


def _shared(run: list[Stmt]) -> list[Stmt]:
    """A run of plain statements in which equal loads are made once."""
    if not isinstance(run[0], _PLAIN):
        return run
    reads = [_reads(s) for s in run]
    if sum(map(len, reads)) < 2:
        return run
    interner = Interner()
    names: dict[int, int] = {}
    """By the structure of a load that is still valid, its number."""
    numbers: list[_Source] = []
    uses: Counter[int] = Counter()
    at: list[dict[int, int]] = []
    plain = {interner.key(read) for here in reads for read in here if isinstance(read, E.BufferLoad)}
    loads = [[inner if interner.key(inner := _load_of(x)) in plain else x for x in here] for here in reads]
    for s, here in zip(run, loads, strict=True):
        for load in here:
            key = interner.key(load)
            if key not in names:
                names[key] = len(numbers)
                numbers.append(_Source(load))
            uses[names[key]] += 1
        at.append(dict(names))
        effect = _Effect(s)
        names = {k: n for k, n in names.items() if not effect.changes(numbers[n])}
    kept = {n: _variable(numbers[n].read) for n, count in uses.items() if count > 1}
    if not kept:
        return run
    made: list[Stmt] = []
    defined: set[int] = set()
    for s, here, valid in zip(run, loads, at, strict=True):
        for load in here:
            n = valid[interner.key(load)]
            if n in kept and n not in defined:
                defined.add(n)
                made.append(S.Let(kept[n], load, span=s.span))
        made.append(_Put({k: kept[n] for k, n in valid.items() if n in kept}, interner).whole(s))
    return made


def _apart(s: Stmt) -> list[Stmt]:
    """A statement, after the costly scalars that all lanes of its vectors have."""
    if not isinstance(s, _PLAIN) or not s.flags & E.F_VECTOR or not all(is_pure(e) for e in s.exprs()):
        return [s]
    interner = Interner()
    found: dict[int, tuple[Expr, Var]] = {}
    for e in s.exprs():
        for x in _certain(e, E.F_VECTOR):
            if isinstance(x, E.Broadcast) and _is_costly(x.value):
                found.setdefault(interner.key(x.value), (x.value, Var("number", x.value.dtype)))
    if not found:
        return [s]
    lets: list[Stmt] = [S.Let(v, e, span=s.span) for e, v in found.values()]
    return [*lets, _Spread({k: v for k, (_, v) in found.items()}, interner).whole(s)]


def _is_costly(e: Expr) -> bool:
    return any(isinstance(x, E.Call) or (isinstance(x, E.Binary) and x.op in DIVISIONS) for x in walk_exprs(e))


def _before(loop: S.For, body: Body) -> tuple[list[Stmt], Body]:
    """Loads that no turn of a loop changes, as statements before it, and the body without them."""
    if not (isinstance(loop.min, IntImm) and isinstance(loop.stop, IntImm) and loop.min.value < loop.stop.value):
        return [], body
    inside = list(walk_stmts(body))
    if not all(isinstance(s, (*_PLAIN, S.For)) for s in inside):
        return [], body
    effects = [_Effect(s) for s in inside]
    own = {loop.loop_var, *defined_vars(body), *(s.var for s in inside if isinstance(s, S.Assign))}
    interner = Interner()
    found: dict[int, tuple[Read, Var]] = {}
    for s in body:
        for load in _reads(s) if isinstance(s, _PLAIN) else ():
            if len(found) == _MOST:
                break
            source = _Source(load)
            if not source.variables & own and not any(x.changes(source) for x in effects):
                found.setdefault(interner.key(load), (load, _variable(load)))
    put = _Put({k: v for k, (_, v) in found.items()}, interner)
    lets: list[Stmt] = [S.Let(v, load, span=loop.span) for load, v in found.values()]
    left: list[Stmt] = []
    assigned = {s.var for s in inside if isinstance(s, S.Assign)}
    for s in body:
        new = put.whole(s) if found and isinstance(s, _PLAIN) else s
        if isinstance(new, S.Let) and new.var not in assigned and _is_fixed(new.value, own):
            own.discard(new.var)
            lets.append(new)
        else:
            left.append(new)
    return (lets, tuple(left)) if lets else ([], body)


def _is_fixed(e: Expr, own: set[Var]) -> bool:
    """Whether an expression that reads no memory gives the same in all turns of a loop, whose variables are given."""
    return not variables(e) & own and not e.flags & E.F_LOAD and is_pure(e)


def _reads(s: Stmt) -> list[Read]:
    """The loads that a plain statement makes for sure, those that are converted with their conversions."""
    if not s.flags & E.F_LOAD:
        return []
    parts = [x for e in s.exprs() for x in _certain(e, E.F_LOAD | E.F_CALL)]
    if any(type(x) is E.Call and effect_of(x) != "pure" for x in parts):
        return []
    outer: list[Read] = []
    for x in parts:
        if _converts(x):
            outer[-1] = x  # type: ignore[call-overload]
        elif isinstance(x, E.BufferLoad) and x.buffer.scope != "private":
            outer.append(x)
    return outer


def _converts(e: Expr) -> bool:
    """Whether an expression is a load that is converted, or in all lanes of a vector, and nothing else."""
    given = _given(e)
    while given is not None and not isinstance(given, E.BufferLoad):
        given = _given(given)
    return given is not None and given.buffer.scope != "private"


def _given(e: Expr) -> Expr | None:
    """What a conversion or a vector of equal lanes is made of."""
    if isinstance(e, E.Call):
        return e.args[0] if e.op == "cast" and len(e.args) == 1 and e.mask is None and e.r is None else None
    return e.value if isinstance(e, (E.Cast, E.Broadcast)) else None


def _load_of(read: Expr) -> E.BufferLoad:
    found: Expr | None = read
    while not isinstance(found, E.BufferLoad):
        assert found is not None
        found = _given(found)
    return found


def _variable(read: Read) -> Var:
    return Var(f"{_load_of(read).buffer.data.name}_part", read.dtype)


def _certain(e: Expr, flags: int) -> list[Expr]:
    """The parts of an expression that are evaluated whenever it is and have one of these flags, the outer ones last."""
    found: list[Expr] = []
    _add_certain(e, flags, found)
    return found


def _add_certain(e: Expr, flags: int, found: list[Expr]) -> None:
    if not e.flags & flags:
        return
    if type(e) is E.Select and e.condition.dtype.lanes == 1:
        _add_certain(e.condition, flags, found)
    elif type(e) is E.Binary and e.op in E.LOGICAL and e.dtype.lanes == 1:
        _add_certain(e.a, flags, found)
    else:
        for child in e.children():
            _add_certain(child, flags, found)
    found.append(e)


class _Source:
    """What the value of a load depends on: variables, and arrays."""

    def __init__(self, read: Read) -> None:
        self.read, load = read, _load_of(read)
        self.scope = load.buffer.scope
        self.variables = variables(load)
        self.arrays = {x.buffer.data for x in walk_exprs(load, E.F_LOAD) if type(x) is E.BufferLoad}


class _Effect:
    """What a statement may change: everything, a variable, or elements of a buffer."""

    def __init__(self, s: Stmt) -> None:
        self.everything = any(e.flags & E.F_FUNC for e in s.exprs())
        self.var, self.buffer = None, None
        if isinstance(s, (S.Let, S.Assign)):
            self.var = s.var
            calls = (x for e in s.exprs() if e.flags & E.F_CALL for x in walk_exprs(e) if isinstance(x, E.Call))
            self.everything |= any(effect_of(x) not in ("pure", "read") for x in calls)
        elif isinstance(s, S.BufferStore):
            self.buffer = s.buffer
        else:
            self.everything |= not isinstance(s, S.For)

    def changes(self, source: _Source) -> bool:
        """Whether the statement may change what a load gives."""
        if self.everything:
            return True
        if self.var is not None:
            return self.var in source.variables
        if self.buffer is None:
            return False
        if self.buffer.scope == source.scope and self.buffer.scope.startswith("global"):
            return True
        return self.buffer.data in source.arrays


class _Put(Rewriter):
    """Statements with variables for loads."""

    interest = E.F_LOAD

    def __init__(self, found: dict[int, Var], interner: Interner) -> None:
        super().__init__()
        self.found, self.interner = found, interner

    def whole(self, s: Stmt) -> Stmt:
        made = s.map(self.expr, self.body) if self.found else s
        return made

    def _put(self, e: Expr) -> Expr:
        var = self.found.get(self.interner.key(e))
        return self.default(e) if var is None else var

    @rewrites(E.BufferLoad)
    def rewrite_load(self, e: E.BufferLoad) -> Expr:
        return self._put(e)

    @rewrites(E.Cast)
    def rewrite_cast(self, e: E.Cast) -> Expr:
        return self._put(e)

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> Expr:
        return self._put(e)

    @rewrites(E.Broadcast)
    def rewrite_broadcast(self, e: E.Broadcast) -> Expr:
        return self._put(e)


class _Spread(_Put):
    """Statements with variables for what all lanes have."""

    interest = E.F_VECTOR

    @rewrites(E.Broadcast)
    def rewrite_broadcast(self, e: E.Broadcast) -> Expr:
        var = self.found.get(self.interner.key(e.value))
        return self.default(e) if var is None else E.Broadcast(var, e.lanes)
