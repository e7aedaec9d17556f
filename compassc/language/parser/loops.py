"""`for` loops: range, S.grid, S.vectorized, S.tec_range, S.pipelined and unrolled loops."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ...ir import exprs as E
from ...ir import stmts as S
from ...ir.dtypes import DataType, make_dtype
from ...ops.core import convert
from ..specs import LOOPS, LoopSpec
from . import unrolled
from .constants import items_of
from .context import FunctionContext
from .errors import language_error
from .tiles import parse_shared_loop
from .values import Value, index_expr, is_runtime, kind_name

KINDS = {
    "range": "serial",
    "grid": "serial",
    "vectorized": "vectorized",
    "unroll": "unrolled",
    "tec_range": "tec",
    "pipelined": "pipelined",
}
_WITH_STEP = ("range", "unroll", "pipelined")


def parse_for(fp: FunctionContext, node: ast.For) -> None:
    """A `for` statement."""
    spec = fp.eval(node.iter)
    if not isinstance(spec, LoopSpec):
        if is_runtime(spec) or not hasattr(spec, "__iter__"):
            raise language_error(
                "loop-iterator",
                f"a loop runs over {', '.join(LOOPS)} or a constant sequence, not over {kind_name(spec)}",
                "use range(...) and subscript",
            )
        unrolled.parse_items(fp, node, items_of(spec, "the loop"))
    elif spec.kind == "parallel_tiles":
        _shared(fp, spec, _target_names(node.target, len(spec.args)), node.body)
    elif spec.kind == "unroll":
        _unroll(fp, node, spec)
    else:
        _run_time_loop(fp, node, spec)


def _unroll(fp: FunctionContext, node: ast.For, spec: LoopSpec) -> None:
    """S.unroll: one loop as long as that can be parsed, else a copy of the body per turn."""
    bounds = _range_bounds(spec)
    known = [_known(x) for x in bounds]
    (name,) = _target_names(node.target, 1)
    if None in known:
        _run_time_loop(fp, node, spec)
        return
    _check_name(fp, name)
    start, stop, step = (int(x) for x in known if x is not None)
    if step == 0:
        raise language_error("loop-step", "the step of S.unroll is 0", "give a positive or a negative number")
    one = step > 0 and not unrolled.begins_with_part(fp, name, node.body)
    if one and unrolled.attempt(fp, lambda: _run_time_loop(fp, node, spec)):
        return
    kind = bound_types(bounds[0], bounds[1])[0]
    unrolled.parse_constant(fp, node, name, range(start, stop, step), kind)


def _known(x: object) -> int | None:
    """A bound that is known, else None; a bound that is left out is 0."""
    if x is None:
        return 0
    if isinstance(x, Value) and isinstance(x.expr, E.IntImm):
        return x.expr.value
    return x if type(x) is int else None


def _run_time_loop(fp: FunctionContext, node: ast.For, spec: LoopSpec) -> None:
    """A loop of the IR."""
    if spec.kind == "grid":
        bounds: list[tuple[object, object, object]] = [(0, extent, 1) for extent in spec.args]
        names = _target_names(node.target, len(bounds))
    else:
        bounds = [_range_bounds(spec)]
        names = _target_names(node.target, 1)
    with fp.scope.loop():
        fp.scope.push()
        try:
            _nest(fp, KINDS[spec.kind], names, bounds, node.body, spec.options)
        finally:
            fp.scope.pop()


def _shared(fp: FunctionContext, spec: LoopSpec, names: list[str], body: list[ast.stmt]) -> None:
    """A loop of S.parallel_tiles."""
    for name in names:
        _check_name(fp, name)
    with fp.scope.loop():
        fp.scope.push()
        try:
            parse_shared_loop(fp, spec, names, lambda: fp.block(body))
        finally:
            fp.scope.pop()


def _range_bounds(spec: LoopSpec) -> tuple[object, object, object]:
    limit = 3 if spec.kind in _WITH_STEP else 2
    if not 1 <= len(spec.args) <= limit:
        raise language_error(
            "loop-arguments",
            f"{spec.kind} takes 1 to {limit} arguments, got {len(spec.args)}",
            "give stop, or start and stop" + (", or start, stop and step" if limit == 3 else ""),
        )
    if len(spec.args) == 1:
        return None, spec.args[0], 1
    return spec.args[0], spec.args[1], spec.args[2] if len(spec.args) == 3 else 1


def _target_names(target: ast.expr, count: int) -> list[str]:
    items = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    if len(items) != count or not all(isinstance(t, ast.Name) for t in items):
        raise language_error(
            "loop-targets",
            f"this loop needs {count} loop variable{'s' if count > 1 else ''}",
            "write one name per extent: for i, j in S.grid(h, w)",
        )
    return [t.id for t in items if isinstance(t, ast.Name)]


def bound_types(start: object, stop: object) -> tuple[DataType, E.Expr, E.Expr]:
    """The loop variable's type: the bound's own, or the start's sign and the wider width of both."""
    stop_expr = _bound(stop, start)
    if start is None:
        return stop_expr.data_type, convert(0, stop_expr.data_type), stop_expr
    start_expr = _bound(start, stop)
    a, b = start_expr.data_type, stop_expr.data_type
    if a is not b and (a.is_int != b.is_int):
        raise language_error(
            "loop-bounds", f"the loop bounds are {a} and {b}", "give both the same type, e.g. range(S.u32(0), n)"
        )
    kind = make_dtype(a.type_code, max(a.bits, b.bits))
    return kind, convert(start_expr, kind), convert(stop_expr, kind)


def _bound(x: object, other: object) -> E.Expr:
    """A bound as an expression; a literal takes the type of the other one if it fits."""
    is_typed = isinstance(other, Value) and other.dtype.is_integer and other.dtype.is_scalar
    if type(x) is int and isinstance(other, Value) and is_typed and _fits_type(x, other.dtype):
        return convert(x, other.dtype)
    return index_expr(x, "loop bound")


def _fits_type(value: int, kind: DataType) -> bool:
    low, high = kind.range()
    return low <= value <= high


def _nest(
    fp: FunctionContext,
    kind: str,
    names: list[str],
    bounds: Sequence[tuple[object, object, object]],
    body: list[ast.stmt],
    options: S.Notes = (),
) -> None:
    """The loops of a nest, outermost first; the body is parsed inside the innermost."""
    name, (start, stop, step) = names[0], bounds[0]
    _check_name(fp, name)
    dtype, low, high = bound_types(start, stop)
    if type(step) is int and step <= 0:
        raise language_error(
            "loop-step", f"the loop step must be positive, got {step}", "count upwards and compute the descending index"
        )
    var = E.Var(name, dtype)
    fp.define(name, Value(var))
    fp.ranges[var] = low, high
    fp.scope.loop_names.add(name)
    if len(names) == 1:
        inner = fp.nested(body)
    else:
        outer, fp.out = fp.out, []
        try:
            _nest(fp, kind, names[1:], bounds[1:], body)
            inner = tuple(fp.out)
        finally:
            fp.out = outer
    fp.emit(S.For, var, kind, low, high, convert(index_expr(step, "loop step"), dtype), inner, options)


def _check_name(fp: FunctionContext, name: str) -> None:
    if fp.scope.local(name) is not None:
        raise language_error(
            "loop-name",
            f"the loop variable {name!r} is already in use here",
            "choose another name",
            *fp.scope.defined_here(name),
        )
