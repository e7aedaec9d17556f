"""Assignment in PySim as compiled code does it.

Python's `x = e` binds a name to an object; a kernel's defines a typed variable: `n = 5` is an int32, `y = x` copies a
vector, an array becomes a constant table. A kernel is therefore recompiled with the right sides of its assignments
passed through `bound`. Lines and columns stay those of the source, so that tracebacks and debuggers work as usual.
"""

from __future__ import annotations

import ast
import copy
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from compass_core.errors import CompassError
from compassc.ir.dtypes import FLOAT32, INT32
from compassc.ops.typing import fits

from ..source import definition
from .memory import PyBuffer, Storage
from .values import PyVar, of_numpy

_BOUND = "__bound"
_FACTORY = "__factory"
_KERNEL = "__kernel"


def bound(value: Any) -> Any:
    """What a variable holds after `x = value`."""
    kind = type(value)
    if kind is PyVar:
        if value.dtype.is_scalar:
            return PyVar(value.value[()], value.dtype) if hasattr(value, "pinned") else value
        return PyVar(value.value.copy() if hasattr(value, "pinned") else value.value, value.dtype)
    if kind is int:
        if not fits(value, INT32):
            raise CompassError(f"{value} does not fit int32", code="literal", help=f"give it a type: S.u32({value})")
        return PyVar(np.int32(value), INT32)
    if kind is float:
        return PyVar(np.float32(value), FLOAT32)
    if kind is np.ndarray:
        raw = np.ascontiguousarray(value)
        data = raw.reshape(-1).view(np.uint8).copy()
        return PyBuffer(Storage(data, "a constant table"), 0, of_numpy(raw.reshape(-1)[0]).dtype, "constant", raw.shape)
    return value


class _Rewrite(ast.NodeTransformer):
    """Wraps the right sides of assignments to names."""

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        target = node.targets[0]
        if isinstance(target, ast.Name):
            node.value = _wrapped(node.value)
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            node.value.elts = [_wrapped(e) for e in node.value.elts]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node  # only the kernel's own statements

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node


def _wrapped(e: ast.expr) -> ast.expr:
    """`__bound(e)`, except for S.meta_var, whose value stays a Python value."""
    if isinstance(e, ast.Starred):
        return e
    if isinstance(e, ast.Call):
        called = e.func.attr if isinstance(e.func, ast.Attribute) else getattr(e.func, "id", "")
        if called == "meta_var":
            return e
    return ast.copy_location(ast.Call(ast.copy_location(ast.Name(_BOUND, ast.Load()), e), [e], []), e)


_DONE: weakref.WeakKeyDictionary[Callable[..., Any], Callable[..., Any]] = weakref.WeakKeyDictionary()


def with_kernel_assignments(func: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel function whose assignments behave as compiled. The function itself when its source is not available."""
    found = _DONE.get(func)
    if found is None:
        try:
            found = _rebuilt(func, copy.deepcopy(definition(func)))
        except CompassError:
            found = func
        _DONE[func] = found
    return found


def _rebuilt(func: Any, node: ast.FunctionDef) -> Callable[..., Any]:
    """The function compiled from its rewritten definition, with the globals, closure and defaults it had."""
    node.body = [_Rewrite().visit(statement) for statement in node.body]
    node.decorator_list, node.returns = [], None
    node.args.defaults, node.args.kw_defaults = [], []
    for arg in node.args.args:
        arg.annotation = None
    name, node.name = node.name, _KERNEL
    free = func.__code__.co_freevars
    source = ast.parse(f"def {_FACTORY}({', '.join([_BOUND, *free])}):\n pass\n return {_KERNEL}")
    factory: Any = source.body[0]
    factory.body[0] = node
    outer = compile(source, func.__code__.co_filename, "exec").co_consts[0]
    inner = next(c for c in outer.co_consts if isinstance(c, types.CodeType) and c.co_name == _KERNEL)
    cells = dict(zip(free, func.__closure__ or ()))
    cells[_BOUND] = types.CellType(bound)
    closure = tuple(cells[n] for n in inner.co_freevars)
    return types.FunctionType(inner.replace(co_name=name), func.__globals__, name, func.__defaults__, closure)
