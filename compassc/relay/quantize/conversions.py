"""A quantised program as three: what makes integers of its inputs, what computes with them, what makes reals of its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compassc.ir.errors import ExpressionError
from compassc.relay.bind import bind
from compassc.relay.expr import Call, Constant, Expr, Function, GlobalVar, Tuple, TupleGetItem, Var
from compassc.relay.module import MAIN, BaseFunc, IRModule
from compassc.relay.operators import Op, op_name
from compassc.relay.passes import infer_type
from compassc.relay.passes._functions import changed
from compassc.relay.types import TensorType
from compassc.relay.visit import children, is_primitive, post_order, rewrite

PARTS = ("quantize_inputs", "quantized_main", "dequantize_outputs")


def partition_conversions(module: IRModule, dtypes: frozenset[str], integral: bool) -> IRModule:
    """The typed module whose `main` calls `quantize_inputs`, `quantized_main` and `dequantize_outputs`, which pass tuples on.

    `dtypes`: the types of quantised numbers. ExpressionError with `integral` where `quantized_main` has other ones.
    """
    module = infer_type.run(module)
    main = module[MAIN]
    assert isinstance(main, Function)
    ends, begins = _last(main, dtypes), _first(main, dtypes)
    head, main_params, inner = _cut(main.params, ends, begins)
    tail_params = [Var(f"result{i}", e.checked_type) for i, e in enumerate(ends)]
    tail = Function(tail_params, _replaced(main.body, dict(zip(map(id, ends), tail_params))))
    middle = Function(main_params, Tuple(inner))
    if integral:
        _all_whole(infer_type.run(IRModule({MAIN: middle}))[MAIN], dtypes)
    parts = dict(zip(map(GlobalVar, PARTS), (Function(main.params, Tuple(head)), middle, tail)))
    value: Expr | None = None
    for v, f in parts.items():
        given = main.params if value is None else [TupleGetItem(value, i) for i in range(len(f.params))]
        value = Call(v, list(given))
    assert value is not None
    functions: dict[GlobalVar, BaseFunc] = {**module.functions, **parts}
    functions[module.get_global_var(MAIN)] = Function(main.params, value)
    return infer_type.run(changed(module, functions))


def _is_whole(e: Expr, dtypes: frozenset[str]) -> bool:
    t = e.checked_type_
    return isinstance(t, TensorType) and t.dtype in dtypes


def _within(e: Expr) -> Iterator[Expr]:
    """What a value is computed from, itself last."""
    return (n for n in post_order(e, is_primitive) if not isinstance(n, Op))


def _first(main: Function, dtypes: frozenset[str]) -> list[Expr]:
    """Casts to quantised numbers of what no quantised number leads to."""
    tainted: set[int] = set()
    found = []
    for e in _within(main.body):
        below = any(id(c) in tainted for c in children(e))
        if below or _is_whole(e, dtypes) and not isinstance(e, Constant):
            tainted.add(id(e))
        if not below and id(e) in tainted and op_name(e) == "cast":
            found.append(e)
    return found


def _last(main: Function, dtypes: frozenset[str]) -> list[Expr]:
    """The quantised numbers, or parameters, that the result is made of without others between."""
    found: dict[int, Expr] = {}
    stack, seen = [main.body], set()
    while stack:
        e = stack.pop()
        if id(e) in seen or isinstance(e, (Constant, Op)):
            continue
        seen.add(id(e))
        if _is_whole(e, dtypes) or isinstance(e, Var):
            found[id(e)] = e
        else:
            stack += children(e)
    return list(found.values())


def _replaced(e: Expr, by: dict[int, Var]) -> Expr:
    return rewrite(e, lambda before, after: by.get(id(before), after), is_primitive)


def _cut(
    params: Sequence[Var], ends: Sequence[Expr], begins: Sequence[Expr]
) -> tuple[list[Expr], list[Var], list[Expr]]:
    """What the first part gives, the parameters of the second one, and what that gives."""
    given = [Var(f"number{i}", e.checked_type) for i, e in enumerate(begins)]
    inner = [_replaced(e, dict(zip(map(id, begins), given))) for e in ends]
    left = [p for p in params if any(n is p for e in inner for n in post_order(e))]
    passed = [Var(p.name_hint, p.checked_type) for p in left]
    return [*begins, *left], [*given, *passed], [bind(e, dict(zip(left, passed))) for e in inner]


def _all_whole(f: BaseFunc, dtypes: frozenset[str]) -> None:
    assert isinstance(f, Function)
    allowed = dtypes | {"int64", "bool"}
    for e in _within(f.body):
        if isinstance(e.checked_type_, TensorType) and not _is_whole(e, allowed):
            raise ExpressionError(
                f"quantized_main has {op_name(e) or 'a parameter'} of {e.checked_type}",
                "quantise it (skip_conv_layers, skip_dense_layer), or give partition_conversions='enabled'",
            )
