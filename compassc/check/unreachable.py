"""Statements that no path leads to, and loops that never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from compass_core.errors import CompassError, Finding, Note

from ..ir import stmts as S
from ..ir.exprs import IntImm
from ..ir.stmts import Body, Stmt
from ..ir.visit import walk_stmts
from ..language.source import node_span
from . import Subject

CODE = "unreachable"


def run(subject: Subject) -> Iterator[CompassError]:
    """A warning for the first statement after one that always leaves, and for loops whose bounds are the wrong way."""
    for function in subject.functions():
        yield from _after_leaving(function.body)
        for s in walk_stmts(function.body):
            for body in s.bodies():
                yield from _after_leaving(body)
            if type(s) is S.For and type(s.min) is type(s.stop) is IntImm and s.min.value > s.stop.value:
                yield Finding(
                    f"this loop never runs: {s.min.value} is larger than {s.stop.value}",
                    s.span,
                    code=CODE,
                    help="count upwards and compute the descending index",
                )
    for node, file in subject.sources:
        yield from _else_of_loops(node, file)


def _else_of_loops(function: ast.FunctionDef, file: str) -> Iterator[CompassError]:
    for node in ast.walk(function):
        if isinstance(node, (ast.For, ast.While)) and node.orelse:
            help = "put it behind the loop, or under an if"
            yield Finding("the else of a loop is ignored", node_span(node.orelse[0], file), code=CODE, help=help)


def _after_leaving(body: Body) -> Iterator[CompassError]:
    for s, following in pairwise(body):
        if leaves(s):
            word = type(s).__name__.lower()
            note = Note("every path leaves here" if type(s) is S.IfThenElse else f"this {word} always leaves", s.span)
            yield Finding("this is never reached", following.span, code=CODE, notes=(note,), help="remove it")
            return


def _breaks(body: Body) -> bool:
    """Whether a break in a loop's body leaves that loop."""
    for s in body:
        if type(s) is S.Break:
            return True
        if not isinstance(s, (S.For, S.While)) and any(_breaks(inner) for inner in s.bodies()):
            return True
    return False


def endless(s: Stmt) -> bool:
    """Whether a loop ends by a return alone."""
    return type(s) is S.While and type(s.condition) is IntImm and s.condition.value != 0 and not _breaks(s.body)


def leaves(s: Stmt) -> bool:
    """Whether nothing after the statement runs."""
    if isinstance(s, (S.Return, S.Break, S.Continue)):
        return True
    if endless(s):
        return True
    return type(s) is S.IfThenElse and all(body and leaves(body[-1]) for body in s.bodies())
