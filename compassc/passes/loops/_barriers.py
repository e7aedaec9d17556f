"""Whether all threads of a block come to a barrier, or none: the second half of ThreadSync."""

from __future__ import annotations

from functools import partial

from compassc.analysis.structure import variables
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.exprs import Expr, IntImm, Var
from compassc.ir.stmts import Body, PrimFunc, Stmt
from compassc.ir.visit import walk_exprs, walk_stmts
from compassc.te.errors import LowerError
from compassc.te.machine import is_barrier, launched, launches


def checked_barriers(function: PrimFunc) -> PrimFunc:
    """The function without barriers after which nobody did anything. LowerError where threads of a block would wait for
    others that do not come."""
    return function.replace(body=launched(map(_checked, launches(function.body))))


def _checked(launch: Body) -> Body:
    """The statements of one launch."""
    if not any(map(is_barrier, walk_stmts(launch))):
        return launch
    sizes: dict[str, Expr] = {}
    for s in walk_stmts(launch):
        if isinstance(s, S.For) and s.kind.startswith("threadIdx"):
            known = sizes.get(s.kind, s.stop)
            larger = isinstance(known, IntImm) and isinstance(s.stop, IntImm) and s.stop.value > known.value
            sizes[s.kind] = s.stop if larger else known
    _check_updates(launch, set(sizes), _read(launch))
    return _level(launch, sizes, ())


def _check_updates(body: Body, missing: set[str], read: set[Var]) -> None:
    """LowerError where several threads would update one element: those of the tags `missing` all do the same there. `read`:
    the memory of the device that the launch reads."""
    for s in body:
        if isinstance(s, S.BufferStore) and missing and s.buffer.scope != "private":
            own = {e.buffer.data for root in s.exprs() for e in walk_exprs(root) if isinstance(e, E.BufferLoad)}
            if s.buffer.data in own | read:
                tag = min(missing).replace("_", ".")
                raise LowerError(
                    f"'{s.buffer.data.name}' is updated by all threads of {tag} alike",
                    "bind a loop of the stage, or compute it in local memory",
                )
        inner = missing - {s.kind} if isinstance(s, S.For) else missing
        for b in s.bodies():
            _check_updates(b, inner, read)


def _read(launch: Body) -> set[Var]:
    """The memory of the device that is read, and what variables get of shared memory."""
    found = set()
    for s in walk_stmts(launch):
        for root in s.exprs():
            for e in walk_exprs(root):
                if isinstance(e, E.BufferLoad) and (e.buffer.scope == "global" or isinstance(s, S.Let)):
                    found.add(e.buffer.data)
    return found


def _level(body: Body, sizes: dict[str, Expr], own: tuple[Var, ...]) -> Body:
    """Statements with the loops and conditions around them looked at. `own`: variables that differ between threads."""
    made: list[Stmt] = []
    for s in body:
        if is_barrier(s):
            if not made or not is_barrier(made[-1]):
                made.append(s)
            continue
        if not any(map(is_barrier, walk_stmts((s,)))):
            made.append(s)
            continue
        inner = own
        if isinstance(s, S.For) and s.kind.startswith("threadIdx"):
            whole = sizes[s.kind]
            same = isinstance(whole, IntImm) and isinstance(s.stop, IntImm) and whole.value == s.stop.value
            if not same:
                tag = s.kind.replace("_", ".")
                raise LowerError(
                    f"the threads of a block meet inside of '{s.loop_var.name}', which is not bound to all that {tag} has",
                    "give all loops of one tag the same extent, a number",
                )
            inner = (*own, s.loop_var)
        else:
            mentioned = {v for e in s.exprs() for v in variables(e)}
            found = sorted(v.name for v in mentioned & set(own))
            if found:
                raise LowerError(
                    f"the threads of a block meet where only some of them come: it depends on {', '.join(found)}",
                    "compute the stage at a loop outside, or let the loops divide",
                )
        made.append(s.map(lambda e: e, partial(_level, sizes=sizes, own=inner)))
    return tuple(made)
