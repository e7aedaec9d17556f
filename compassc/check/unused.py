"""Values that are computed for nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compass_core.errors import CompassError, Finding, Span

from ..analysis.structure import effect_of
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import PointerType
from ..ir.exprs import Var
from ..ir.stmts import PrimFunc
from ..ir.visit import walk_exprs, walk_stmts
from ..language.source import node_span
from . import Subject

RESULT, VARIABLE = "unused-result", "unused-variable"


def run(subject: Subject) -> Iterator[CompassError]:
    """A warning per dropped result of a pure operation and per variable that nothing reads."""
    written = {node.name: _read_names(node) for node, _ in subject.sources}
    if subject.sources:  # a build may have renamed the entry, which comes first
        written[subject.module.entry] = _read_names(subject.sources[0][0])
    for function in subject.functions():
        yield from _results(function)
        for finding, name in _variables(function):
            if name not in written.get(function.name, ()):  # else a branch that this build leaves out may read it
                yield finding
    for node, file in subject.sources:
        yield from _statements(node, file)


def _read_names(function: ast.FunctionDef) -> set[str]:
    return {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _statements(function: ast.FunctionDef, file: str) -> Iterator[CompassError]:
    """Expressions alone on a line that compute something and do nothing, such as `a[0] == n` for `a[0] = n`."""
    for node in ast.walk(function):
        if isinstance(node, ast.Expr) and isinstance(node.value, _VALUES):
            hint = (
                "to assign, write `=`"
                if isinstance(node.value, ast.Compare)
                else "assign it to a name, or remove the line"
            )
            yield Finding("the value of this line is not used", node_span(node, file), code=RESULT, help=hint)


_VALUES = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Subscript, ast.IfExp)


def _results(function: PrimFunc) -> Iterator[CompassError]:
    for s in walk_stmts(function.body):
        if type(s) is S.Evaluate and type(s.value) is E.Call and effect_of(s.value) == "pure":
            yield Finding(
                f"the result of S.{s.value.op} is not used",
                s.span,
                code=RESULT,
                notes=("the operation does nothing else",),
                help="assign it to a name, or remove the line",
            )


def _variables(function: PrimFunc) -> Iterator[tuple[CompassError, str]]:
    defined: dict[Var, Span | None] = {}
    made: dict[Var, Span | None] = {}
    read: set[Var] = set()
    for s in walk_stmts(function.body):
        if type(s) is S.Let and not _is_event(s.value):  # that one is not freed is said elsewhere
            defined.setdefault(s.var, s.span)
        elif isinstance(s, (S.Alloc, S.AllocConst)):
            made[s.buffer.data] = s.span
        if type(s) is S.BufferStore:
            read.add(s.buffer.data)
        for root in s.exprs():
            read.update(_mentioned(root))
    names = {var: span for var, span in {**defined, **made}.items() if var not in read}
    for var, span in names.items():
        if not var.name.startswith("_") and not var.name.startswith("tmp_"):
            what = "storage" if var in made or isinstance(var.dtype, PointerType) else "variable"
            help = "remove it, or begin its name with _"
            yield Finding(f"the {what} {var.name!r} is never used", span, code=VARIABLE, help=help), var.name


def _is_event(e: E.Expr) -> bool:
    return type(e) is E.Call and e.op == "alloc_event"


def _mentioned(root: E.Expr) -> Iterator[Var]:
    for e in walk_exprs(root):
        if type(e) is Var:
            yield e
        elif type(e) is E.BufferLoad:
            yield e.buffer.data
