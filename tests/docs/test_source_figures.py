"""Figures of the sources that may only fall. Each is held at the number in `BUDGET`: a commit that lowers one writes the new
number here, and one that raises one says why in its message."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tests import sources
from tests.choosing import some
from tests.sources import FOLDERS, ROOT


class Figures(NamedTuple):
    local_imports: int
    """Imports of our own modules in functions."""
    any_types: int
    """Uses of `Any`."""
    largest_file: int
    """Lines of the largest file."""
    largest_function: int
    """Lines of the largest function."""
    kernel_texts: int
    """Files of packages that make kernels, which are IR, with statements of kernels as text."""


BUDGET = Figures(local_imports=350, any_types=1252, largest_file=610, largest_function=70, kernel_texts=0)
SLACK = 0.05
"""The part of a number by which a figure may be smaller before the number has to follow."""
KERNELS = ("layers", "te", "tir", "topi", "operators", "passes", "codegen")
STATEMENT = re.compile(r"\bS\.(?!ptr\b|prim_func\b)[a-z]\w*\(")
TEXT = re.compile(rf"""["'][^"'\n]*{STATEMENT.pattern}|\w *[=(] *f?(?:\"{{3}}|'{{3}})""")
"""What files have that may have statements in texts."""


def statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All statements, without the expressions in them."""
    for node in body:
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, name, ()))


def is_ours(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether a statement imports a module of ours."""
    if isinstance(node, ast.ImportFrom):
        return node.level > 0 or (node.module or "").split(".")[0] in FOLDERS
    return any(alias.name.split(".")[0] in FOLDERS for alias in node.names)


def has_kernel_text(tree: ast.Module) -> bool:
    """Whether a text of a file, other than its documentation, has a statement of a kernel."""
    nodes = list(ast.walk(tree))
    documentation = {id(n.value) for n in nodes if isinstance(n, ast.Expr)}
    texts = (
        n for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in documentation
    )
    return any(STATEMENT.search(str(n.value)) for n in texts)


def figures(tree: ast.Module, text: str, makes_kernels: bool) -> Figures:
    """Those of a file."""
    every = list(statements(tree.body))
    functions = [n for n in every if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    spans = [(n.lineno, n.end_lineno or n.lineno) for n in functions]
    imports = [n.lineno for n in every if isinstance(n, (ast.Import, ast.ImportFrom)) and is_ours(n)]
    return Figures(
        sum(any(first <= line <= last for first, last in spans) for line in imports),
        len(re.findall(r"\bAny\b", text)),
        len(text.splitlines()),
        max((last - first + 1 for first, last in spans), default=0),
        int(makes_kernels and TEXT.search(text) is not None and has_kernel_text(tree)),
    )


def test_figures_only_fall():
    every = []
    for path in some(sources.paths()):
        package = path.relative_to(ROOT).parts[1]
        every.append(figures(sources.parsed(path), path.read_text(encoding="utf-8"), package in KERNELS))
    columns = zip(Figures._fields, zip(*every, strict=True), strict=True)
    found = Figures(*(max(column) if name.startswith("largest") else sum(column) for name, column in columns))
    pairs = dict(zip(Figures._fields, zip(found, BUDGET, strict=True), strict=True))
    above = {name: pair for name, pair in pairs.items() if pair[0] > pair[1]}
    assert above == {}, "what the sources have, and may have at most"
    far_below = {name: pair for name, pair in pairs.items() if pair[0] < pair[1] * (1 - SLACK)}
    assert far_below == {}, "what the sources have, which becomes the number in BUDGET"


def test_each_figure_sees_what_it_counts():
    text = '''\
from compassc import ir

def outer(x: Any):
    """S.vload(x)"""
    import numpy
    def inner():
        from . import graph
        return "y = S.vload(x)"
'''
    assert figures(ast.parse(text), text, True) == Figures(1, 1, 8, 6, 1)
    without = text.replace('return "y = ', '"')
    assert figures(ast.parse(without), without, True).kernel_texts == 0, "what stands alone is documentation"
    assert figures(ast.parse(text), text, False).kernel_texts == 0
    quoted = "TEXT = '''\nx = S.vload(y)\n'''\n"
    assert figures(ast.parse(quoted), quoted, True).kernel_texts == 1
