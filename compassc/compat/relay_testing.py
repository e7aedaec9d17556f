"""What the framework's own tests of Relay call: types of expressions, single passes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from compassc.relay.expr import Expr, Function, as_expr
from compassc.relay.interpreter import Interpreter
from compassc.relay.module import MAIN, IRModule
from compassc.relay.passes import infer_type
from compassc.relay.std import Prelude


def _of(module: IRModule, given: Expr) -> Expr:
    found: Function = module[MAIN]
    return found if isinstance(given, Function) else found.body


def run_infer_type(expr: object) -> Expr:
    """An expression, or a function, with types."""
    given = as_expr(expr)
    return _of(infer_type.run(IRModule.from_expr(given)), given)


def run_opt_pass(expr: object, opt_pass: Callable[[IRModule], IRModule], import_prelude: bool = False) -> Expr:
    """An expression, or a function, with types and after a pass."""
    given = as_expr(expr)
    module = IRModule.from_expr(given)
    if import_prelude:
        Prelude(module)
    return _of(opt_pass(infer_type.run(module)), given)


def to_python(expr: object, mod: IRModule | None = None, target: object = None) -> ast.Module:
    """A program of Python that computes an expression: it reads the text of the module and asks the interpreter. Its variable
    `value` is the result."""
    module = IRModule(dict(mod.functions.items()), mod.type_definitions) if mod is not None else IRModule()
    module[_VALUE] = Function([], as_expr(expr))
    text = infer_type.run(module).astext()
    lines = (
        "from compassc import relay",
        f"module = relay.parse({text!r})",
        f"value = relay.Interpreter(module).evaluate(module[{_VALUE!r}].body)",
    )
    return ast.parse("\n".join(lines))


_VALUE = "value_of_program"


def run_as_python(expr: object, mod: IRModule | None = None, target: object = None) -> Any:
    """The value of an expression, with the functions of a module: tensors, tuples, values of data types."""
    module = mod if mod is not None else IRModule()
    return Interpreter(infer_type.run(module)).evaluate(as_expr(expr))
