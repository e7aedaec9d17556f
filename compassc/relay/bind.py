"""Expressions in place of variables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compass_runtime.ndarray import NDArray
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.relay.expr import Expr, Function, Var, as_expr, const
from compassc.relay.variables import free_vars
from compassc.relay.visit import rewrite


def bind(expr: Expr, binds: Mapping[Var, object]) -> Expr:
    """The expression with other expressions in place of variables. Of a function, parameters in `binds` vanish, and free
    variables of what is put in their place are parameters after the others."""
    given = {id(v): as_expr(value) for v, value in binds.items()}

    def replaced(_: Expr, e: Expr) -> Expr:
        return given.get(id(e), e)

    if not isinstance(expr, Function):
        return rewrite(expr, replaced)
    body = rewrite(expr.body, replaced)
    params = [p for p in expr.params if id(p) not in given]
    if body is expr.body and len(params) == len(expr.params):
        return expr
    known = set(free_vars(expr))
    new = [v for value in given.values() for v in free_vars(value)]
    used = set(free_vars(body))
    params += [v for v in dict.fromkeys(new) if v in used and v not in params and v not in known]
    return expr.replace(params=tuple(params), body=body)


def _constant(name: str, value: object) -> Expr:
    if isinstance(value, Expr):
        return value
    if not isinstance(value, (NDArray, np.ndarray, np.generic)):
        raise ExpressionTypeError(f"the parameter '{name}' is a {type(value).__name__}, and no array", "give an array")
    return const(value, str(value.dtype))


def bind_params_by_name(func: Function, params: Mapping[str, object]) -> Function:
    """The function with constants in place of the parameters of these names. Names that no parameter has do not matter; one that
    several have is an error."""
    binds: dict[Var, object] = {}
    for name, value in params.items():
        found = [p for p in func.params if p.name_hint == name]
        if len(found) > 1:
            raise ExpressionError(f"{len(found)} parameters are named '{name}'", "bind them by relay.bind")
        if found:
            binds[found[0]] = _constant(name, value)
    made = bind(func, binds)
    assert isinstance(made, Function)
    return made
