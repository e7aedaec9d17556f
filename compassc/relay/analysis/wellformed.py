"""Whether programs obey the rules of the language."""

from __future__ import annotations

from collections.abc import Iterator

from compassc.relay.expr import Call, Clause, Constant, Expr, Function, Let, Match, Tuple, Var
from compassc.relay.operators import Op
from compassc.relay.variables import defined
from compassc.relay.visit import children

ON_DEVICE = "on_device"


def well_formed(e: Expr) -> bool:
    """Whether every variable is defined once, and used only where it is defined or nowhere defined at all."""
    seen: set[int] = set()
    bound: set[Var] = set()
    free: set[Var] = set()
    inside: set[Var] = set()
    stack: list[tuple[list[Var], Iterator[Expr | Clause]]] = [([], iter([e]))]
    while stack:
        scope, rest = stack[-1]
        part = next(rest, None)
        if part is None:
            stack.pop()
            inside.difference_update(scope)
            continue
        if isinstance(part, Var):
            if part not in inside:
                if part in bound:
                    return False
                free.add(part)
            continue
        if id(part) in seen:
            continue
        seen.add(id(part))
        new = defined(part)
        if len(set(new)) != len(new) or any(v in bound or v in free for v in new):
            return False
        bound.update(new)
        inside.update(new)
        stack.append((new, iter(_parts(part))))
    return True


def _parts(e: Expr | Clause) -> tuple[Expr | Clause, ...]:
    """What stands within what is defined."""
    if isinstance(e, Clause):
        return (e.rhs,)
    if isinstance(e, Match):
        return (e.data, *e.clauses)
    if isinstance(e, Function):
        return (e.body,)
    return (e.value, e.body) if isinstance(e, Let) else children(e)


def check_constant(e: Expr) -> bool:
    """Whether an expression is a constant or a tuple of constants, on whatever device."""
    todo = [e]
    while todo:
        part = todo.pop()
        if isinstance(part, Call) and isinstance(part.op, Op) and part.op.name == ON_DEVICE:
            todo.append(part.args[0])
        elif isinstance(part, Tuple):
            todo.extend(part.fields)
        elif not isinstance(part, Constant):
            return False
    return True
