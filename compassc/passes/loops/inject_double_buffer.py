"""Give arrays two halves, so that transfers into and out of one run beside the work on the other.

Before: the entry's attribute `SCALAR_LOOPS` names such arrays; a loop whose body begins with the transfers into an array and goes on to read it, or ends with the transfers out of
it. After: there is no such attribute; the array has two halves, which the turns of the loop use alternately. Transfers in are started a turn ahead,
transfers out are waited for a turn later; there is one event per array, for transfers on one event run in order.
"""

from __future__ import annotations

from compass_core import targets
from compassc.analysis.buffers import elements
from compassc.analysis.statements import fresh_copy
from compassc.analysis.structure import variables
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.accesses import Accesses, Element
from compassc.ir.dtypes import INT32, VOID
from compassc.ir.exprs import Binary, Buffer, Expr, IntImm, Var
from compassc.ir.stmts import SCALAR_LOOPS, Body, IRModule, PrimFunc, Stmt
from compassc.ir.visit import Rewritten, StatementRewriter, all_exprs, rewrites, substitute_body, walk_stmts
from compassc.passes._events import Started, bit, wait
from compassc.passes.loops._facts import ONE, ZERO
from compassc.passes.loops._functions import on_entry
from compassc.te.errors import LowerError

NAME = "InjectDoubleBuffer"


def run(module: IRModule) -> IRModule:
    return on_entry(module, lambda f: _function(f, targets.load(module.target).events))


def _function(f: PrimFunc, most: int) -> PrimFunc:
    """The function with arrays in two halves, as far as transfers fill or empty them; `most`: events that a TEC has."""
    names = f.attr(SCALAR_LOOPS)
    if names is None:
        return f
    f = f.without_attr(SCALAR_LOOPS)
    arrays = [s.buffer.data for s in f.body if isinstance(s, S.Alloc) and s.buffer.data.name in names]
    step = _Overlap({a: _uses(f.body, a) for a in arrays})
    body = step.body(f.body)
    if not step.events:
        return f
    if len(step.events) > most:
        names = ", ".join(step.events)
        raise LowerError(f"{len(step.events)} double buffers ({names}) need an event each, a TEC has {most}")
    head: list[Stmt] = []
    for s in body:
        doubled = isinstance(s, S.Alloc) and s.buffer.data in step.halves
        head.append(S.Alloc(step.halves[s.buffer.data]) if doubled and isinstance(s, S.Alloc) else s)
    starts = [S.Let(event, E.Call("alloc_event", (), INT32)) for event in step.events.values()]
    ends = [S.Evaluate(E.Call("free_events", (bit(event),), VOID)) for event in step.events.values()]
    allocations = [s for s in head if isinstance(s, (S.Alloc, S.DeclBuffer))]
    rest = [s for s in head if not isinstance(s, (S.Alloc, S.DeclBuffer))]
    return f.replace(body=(*allocations, *starts, *rest, *ends))


class _Overlap(StatementRewriter):
    def __init__(self, uses: dict[Var, int]) -> None:
        super().__init__()
        self.arrays, self.uses = set(uses), uses
        self.buffers: dict[Var, Buffer] = {}
        self.halves: dict[Var, Buffer] = {}
        self.events: dict[str, Var] = {}

    @rewrites(S.Alloc)
    def rewrite_alloc(self, s: S.Alloc) -> Rewritten:
        self.buffers[s.buffer.data] = s.buffer
        return s

    @rewrites(S.For)
    def rewrite_for(self, s: S.For) -> Rewritten:
        s = self.default_stmt(s)
        if s.kind != "serial":
            return s
        made: list[Stmt] = [s]
        for array in sorted(self.arrays - set(self.halves), key=lambda v: v.name):
            loop = made[-1] if isinstance(made[-1], S.For) else next(x for x in made if isinstance(x, S.For))
            new = self._split(loop, array) if array in self.buffers else None
            if new is not None:
                at = made.index(loop)
                made[at : at + 1] = new
        return made if len(made) > 1 else s

    def _split(self, s: S.For, array: Var) -> list[Stmt] | None:
        """The loop with transfers of an array in the background; None where its body does not have them so."""
        roles = [_role(x, array) for x in s.body]
        if "other" not in roles or _uses((s,), array) < self.uses[array]:
            return None  # what is outside of the loop would not know which half to take
        first = next((i for i, r in enumerate(roles) if r), len(roles))
        last = max(i for i, r in enumerate(roles) if r)
        filling = [i for i, r in enumerate(roles) if r == "in"]
        emptying = [i for i, r in enumerate(roles) if r == "out"]
        if filling and not emptying and filling == list(range(first, first + len(filling))):
            return self._ahead(s, array, first, len(filling))
        if emptying and not filling and emptying == list(range(last + 1 - len(emptying), last + 1)):
            return self._behind(s, array, emptying[0], len(emptying))
        return None

    def _half(self, array: Var) -> tuple[Var, Var, list[Stmt]]:
        """An event, the number of the half of this turn, and where both begin."""
        buffer = self.buffers[array]
        self.halves[array] = Buffer(array, buffer.dtype, (IntImm(INT32, 2), *buffer.shape))
        event = self.events.setdefault(array.name, Var(f"{array.name}_done", INT32))
        half = Var(f"{array.name}_half", INT32, True)
        return event, half, [S.Let(half, ZERO)]

    def _ahead(self, s: S.For, array: Var, first: int, count: int) -> list[Stmt] | None:
        transfers = s.body[first : first + count]
        read = {v for e in all_exprs(transfers) for v in variables(e)}
        defined = {x.var for x in s.body[:first] if isinstance(x, S.Let)}
        if read & (defined | _written(s.body[:first]) | _written(s.body[first + count :])):
            return None  # what is transferred is made in the loop
        event, half, made = self._half(array)
        both = self.halves[array]
        other = Binary("sub", ONE, half)
        started = Started(event).body(transfers)
        start = _Half(both, ZERO).body(substitute_body(started, {s.loop_var: s.min}))
        made.append(S.IfThenElse(Binary("lt", s.min, s.stop), fresh_copy(start), ()))
        following = Binary("add", s.loop_var, s.step)
        ahead = _Half(both, other).body(substitute_body(started, {s.loop_var: following}))
        here = _Half(both, half)
        body: Body = (
            *here.body(s.body[:first]),
            wait(event),
            S.IfThenElse(Binary("lt", following, s.stop), fresh_copy(ahead), ()),
            *here.body(s.body[first + count :]),
            S.Assign(half, other),
        )
        return [*made, s.replace(body=body)]

    def _behind(self, s: S.For, array: Var, first: int, count: int) -> list[Stmt] | None:
        transfers, rest = s.body[first : first + count], (*s.body[:first], *s.body[first + count :])
        used = {v for e in all_exprs(rest) for v in variables(e)} | _written(rest)
        if _written(transfers) & used:
            return None  # the next turn uses what is transferred
        event, half, made = self._half(array)
        both = self.halves[array]
        here = _Half(both, half)
        body: Body = (
            *here.body(s.body[:first]),
            wait(event),
            *here.body(Started(event).body(transfers)),
            *here.body(s.body[first + count :]),
            S.Assign(half, Binary("sub", ONE, half)),
        )
        return [*made, s.replace(body=body), wait(event)]


def _role(s: Stmt, array: Var) -> str:
    """What a statement does with an array: "in" and "out" are transfers alone, "" is nothing."""
    if not any(array in variables(e) for e in all_exprs((s,))) and array not in _written((s,)):
        return ""
    roles = {_transfer(x, array) for x in walk_stmts((s,)) if not isinstance(x, (S.For, S.IfThenElse))}
    return roles.pop() if len(roles) == 1 else "other"


def _uses(body: Body, array: Var) -> int:
    """How many accesses and addresses of an array there are."""
    stores = sum(isinstance(s, S.BufferStore) and s.buffer.data is array for s in walk_stmts(body))
    return stores + sum(
        isinstance(e, E.BufferLoad) and e.buffer.data is array or isinstance(e, E.Pointer) and e.base is array
        for e in all_exprs(body)
    )


def _transfer(s: Stmt, array: Var) -> str:
    if not isinstance(s, S.Evaluate) or not isinstance(s.value, E.Call) or s.value.op not in ("dma_copy", "dma_memset"):
        return "other"
    call = s.value
    if _base(call.args[0]) is array:
        return "in"
    return "out" if call.op == "dma_copy" and _base(call.args[1]) is array else "other"


def _base(e: Expr) -> Expr | None:
    return e.base if isinstance(e, E.Pointer) else None


def _written(body: Body) -> set[Var]:
    """The arrays that statements write, and variables that they assign."""
    found: set[Var] = set()
    for s in walk_stmts(body):
        if isinstance(s, S.BufferStore):
            found.add(s.buffer.data)
        elif isinstance(s, S.Assign):
            found.add(s.var)
        elif isinstance(s, S.Evaluate) and isinstance(s.value, (E.Call, E.FuncCall)):
            transfer = isinstance(s.value, E.Call) and "dma" in s.value.op
            targets = s.value.args[:1] if transfer else s.value.args
            found |= {v for v in map(_base, targets) if isinstance(v, Var)}
    return found


class _Half(Accesses):
    """Statements on one half of an array."""

    def __init__(self, both: Buffer, half: Expr) -> None:
        super().__init__()
        self.both, self.half = both, half

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Element | None:
        return (self.both, (self.half, *indices)) if buffer.data is self.both.data else None

    @rewrites(E.Pointer)
    def rewrite_pointer(self, e: E.Pointer) -> Expr:
        e = self.default(e)
        if e.base is not self.both.data:
            return e
        offset = Binary("mul", self.half, IntImm(INT32, elements(self.both) // 2))
        return E.Pointer(e.elem, e.base, Binary("add", offset, e.offset))
