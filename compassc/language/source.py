"""From a Python function to the syntax tree of its definition, with positions in its file."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import linecache
import os
import sysconfig
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import CodeType

import compass_core
from compass_core.errors import CompassError, Span
from compass_core.reading import pyast

SET_TRACE = ("set_trace", "pdb.set_trace")
"""Calls that start the debugger, as they are written in a kernel."""


@lru_cache(maxsize=64)
def _definitions(text: str) -> dict[int, ast.FunctionDef]:
    """Function definitions of a file by the line where they, decorators included, begin."""
    found = {}
    for node in pyast.walk([pyast.parse(text)]):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found[first] = node
    return found


def definition(func: Callable[..., object]) -> ast.FunctionDef:
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


def file_of(func: Callable[..., object]) -> str:
    made: str = inspect.unwrap(func).__code__.co_filename
    return made


def function_span(func: Callable[..., object]) -> Span:
    """Where a function begins."""
    code = inspect.unwrap(func).__code__
    return Span(code.co_filename, code.co_firstlineno)


def node_span(node: ast.AST, file: str) -> Span:
    """The range of a syntax node, columns counted from 1 in characters."""
    line, col = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    end_line, end_col = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", col + 1)
    lines = linecache.getlines(file)
    return Span(file, line, _characters(lines, line, col) + 1, end_line, _characters(lines, end_line, end_col) + 1)


def _characters(lines: list[str], line: int, offset: int) -> int:
    """A byte offset in a line, which is what syntax trees have, as a number of characters."""
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))


def header_span(node: ast.AST, file: str) -> Span:
    """The range of a syntax node; of a compound statement its first line only, up to the colon."""
    parts = [getattr(node, name, None) for name in _HEADERS.get(type(node), ())]
    whole = node_span(node, file)
    if type(node) not in _HEADERS:
        return whole
    ends = [node_span(p, file) for p in parts if isinstance(p, ast.AST)]
    if not ends:
        return Span(file, whole.line, whole.col, whole.line, len(linecache.getline(file, whole.line).rstrip()) + 1)
    return Span(file, whole.line, whole.col, ends[-1].end_line, ends[-1].end_col)


_HEADERS: dict[type, tuple[str, ...]] = {
    ast.If: ("test",),
    ast.While: ("test",),
    ast.For: ("iter",),
    ast.With: (),
    ast.Try: (),
    ast.FunctionDef: (),
    ast.ClassDef: (),
    ast.AsyncFor: ("iter",),
    ast.AsyncWith: (),
    ast.Match: ("subject",),
}


def code_span(code: CodeType, instruction: int, line: int) -> Span:
    """The source range of an instruction of a code object; its line where Python does not keep ranges."""
    positions = getattr(code, "co_positions", None)
    if positions is None:
        return Span(code.co_filename, line)
    file = code.co_filename
    first, last, col, end_col = list(positions())[instruction // 2]
    if first is None or last is None or col is None:
        return Span(file, line)
    lines = linecache.getlines(file)
    return Span(file, first, _characters(lines, first, col) + 1, last, _characters(lines, last, end_col or 0) + 1)


def user_line(error: BaseException, file: str = "") -> Span | None:
    """The innermost place of an exception's traceback in the user's own code, or in `file`; None when there is none."""
    found, tb = None, error.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if code.co_filename == file if file else is_user_file(code.co_filename):
            found = code_span(code, tb.tb_lasti, tb.tb_lineno)
        tb = tb.tb_next
    return found


@lru_cache
def is_user_file(file: str) -> bool:
    """Whether a file is neither part of the toolchain nor of Python or its packages."""
    return not file.startswith(_not_the_users())


@lru_cache(maxsize=1)
def _not_the_users() -> tuple[str, ...]:
    """Beginnings of the file names of installed code and of this toolchain."""
    paths = sysconfig.get_paths()
    installed = {paths[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")} | {os.path.dirname(os.__file__)}
    others = (importlib.util.find_spec(name) for name in ("compass_runtime", "compass_sim"))
    ours = {str(Path(__file__).parents[1]), os.path.dirname(compass_core.__file__)}
    ours |= {os.path.dirname(spec.origin) for spec in others if spec is not None and spec.origin}
    return ("<", *(folder + os.sep for folder in installed | ours))
