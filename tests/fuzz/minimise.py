"""Makes a failing program smaller: drops statements, unwraps blocks, puts operands in the place of expressions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from .scope import short
from .tree import Expr, Program, Stmt

StillFails = Callable[[Program], bool]


class Minimiser:
    """Reduces `program` in place while `still_fails` says so; gives up looking after `seconds`."""

    def __init__(self, program: Program, still_fails: StillFails, seconds: float) -> None:
        self.program = program
        self.still_fails = still_fails
        self.deadline = time.monotonic() + seconds

    def run(self) -> None:
        while time.monotonic() < self.deadline:
            changed = self.drop_statements()
            changed = self.unwrap() or changed
            changed = self.drop_clauses() or changed
            changed = self.simplify_expressions() or changed
            if not changed:
                return

    def accepts(self) -> bool:
        return time.monotonic() < self.deadline and self.still_fails(self.program)

    # ---------------------------------------------------------------------------------------------- walking

    def bodies(self) -> Iterator[list[Stmt]]:
        todo = [self.program.entry.body, *(f.body for f in self.program.functions)]
        while todo:
            body = todo.pop(0)
            yield body
            todo += [c.body for s in body for c in s.clauses if c.body is not None]

    def expressions(self) -> Iterator[Expr]:
        for body in list(self.bodies()):
            for stmt in body:
                for clause in stmt.clauses:
                    for arg in clause.args:
                        yield from arg.walk()

    # ---------------------------------------------------------------------------------------------- steps

    def drop_statements(self) -> bool:
        changed = False
        for body in self.bodies():
            size = max(1, len(body) // 2)
            while size:
                at = len(body) - size
                while at >= 0:
                    kept = body[at : at + size]
                    del body[at : at + size]
                    if self.accepts():
                        changed = True
                    else:
                        body[at:at] = kept
                    at -= size
                size //= 2
        return changed

    def unwrap(self) -> bool:
        """The block of a compound statement in the place of the statement."""
        changed = False
        for body in self.bodies():
            for at in range(len(body) - 1, -1, -1):
                stmt = body[at]
                for clause in stmt.clauses:
                    if clause.body is None:
                        continue
                    body[at : at + 1] = clause.body
                    if self.accepts():
                        changed = True
                        break
                    body[at : at + len(clause.body)] = [stmt]
        return changed

    def drop_clauses(self) -> bool:
        changed = False
        for body in list(self.bodies()):
            for stmt in body:
                for clause in stmt.clauses[:0:-1]:
                    before = list(stmt.clauses)
                    stmt.clauses.remove(clause)
                    if self.accepts():
                        changed = True
                    else:
                        stmt.clauses[:] = before
        return changed

    def simplify_expressions(self) -> bool:
        changed = False
        for expr in list(self.expressions()):
            before = expr.template, expr.args
            for template, args in replacements(expr):
                expr.template, expr.args = template, args
                if self.accepts():
                    changed = True
                    break
                expr.template, expr.args = before
        return changed


def replacements(expr: Expr) -> Iterator[tuple[str, list[Expr]]]:
    """What could stand for an expression: a constant, then operands of the same type from the inside."""
    if not expr.args and not expr.template.startswith(("S.", "in_", "o_")):
        return
    t = expr.type
    if t.is_void:
        return
    if t.is_mask:
        constants = [f'S.const_mask("{t.lanes}T")', f'S.const_mask("{t.lanes - 1}T1F")']
    elif t.is_bool:
        constants = ["(S.i32(1) > 0)"]
    else:
        constants = [f"S.{short(t)}(1)" if not t.is_bfloat or t.lanes in (1, 16) else f'S.cast(1, "{t}")']
    if expr.template not in constants:
        for text in constants:
            yield text, []
    inner = [e for e in expr.walk() if e is not expr and e.type is t and e.width == expr.width]
    for e in reversed(inner):
        yield e.template, e.args


def minimise(program: Program, still_fails: StillFails, seconds: float = 60.0) -> None:
    """Reduce a program in place."""
    Minimiser(program, still_fails, seconds).run()
