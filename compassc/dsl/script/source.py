"""From a Python function to the syntax tree of its definition, with positions in its file."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from compass_core.errors import CompassError, Span


@lru_cache(maxsize=64)
def _definitions(text: str) -> dict[int, ast.FunctionDef]:
    """Function definitions of a file by the line where they, decorators included, begin."""
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found[first] = node
    return found


def definition(func: Callable[..., Any]) -> ast.FunctionDef:
    """The `def` of a function. CompassError when its source file cannot be read."""
    code = inspect.unwrap(func).__code__
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename))
    if text:
        node = _definitions(text).get(code.co_firstlineno)
        if node is not None:
            return node
    raise CompassError(
        f"the source of {func.__name__} is not available ({code.co_filename})",
        code="source",
        help="define kernels in a file; code from exec() or a prompt cannot be compiled",
    )


def file_of(func: Callable[..., Any]) -> str:
    return inspect.unwrap(func).__code__.co_filename


def function_span(func: Callable[..., Any]) -> Span:
    """Where a function begins."""
    code = inspect.unwrap(func).__code__
    return Span(code.co_filename, code.co_firstlineno)


def node_span(node: ast.AST, file: str) -> Span:
    """The range of a syntax node, columns counted from 1 in characters."""
    line, col = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    end_line, end_col = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", col + 1)
    return Span(file, line, _characters(file, line, col) + 1, end_line, _characters(file, end_line, end_col) + 1)


def _characters(file: str, line: int, offset: int) -> int:
    """A byte offset in a line, which is what syntax trees have, as a number of characters."""
    text = linecache.getline(file, line)
    return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))


def user_line(error: BaseException, own: str) -> Span | None:
    """The innermost place of an exception's traceback outside the package folder `own`; None when there is none."""
    found, tb = None, error.__traceback__
    while tb is not None:
        file = tb.tb_frame.f_code.co_filename
        if not file.startswith((own, "<")):
            found = Span(file, tb.tb_lineno)
        tb = tb.tb_next
    return found
