"""What passes share: running on each function, looking at calls, evaluating operators of constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from compass_runtime.ndarray import NDArray
from compassc.relay.expr import Constant, Expr, Function, GlobalVar, Tuple
from compassc.relay.module import BaseFunc, IRModule
from compassc.relay.operators import Arrays
from compassc.relay.types import Dim, TensorType, TupleType, Type
from compassc.relay.visit import is_primitive, rewrite

_LEFT_ALONE = ("Compiler", "Extern", "SkipOptimization")
OnFunction = Callable[[Function, IRModule], Function]


def changed(module: IRModule, functions: Mapping[GlobalVar, BaseFunc]) -> IRModule:
    """The module with other functions."""
    made = IRModule(functions, module.type_definitions, module.attrs)
    made.imported = set(module.imported)
    return made


def on_functions(module: IRModule, fn: OnFunction) -> IRModule:
    """The typed module after `fn` on each of its functions, but those that other compilers take."""
    from compassc.relay.passes import infer_type

    made: dict[GlobalVar, BaseFunc] = {}
    for v, f in module.functions.items():
        made[v] = fn(f, module) if isinstance(f, Function) and not any(map(f.attrs.get, _LEFT_ALONE)) else f
    if all(made[v] is f for v, f in module.functions.items()):
        return module
    return infer_type.run(changed(module, made))


def rewritten(f: Function, fn: Callable[[Expr, Expr], Expr]) -> Function:
    """A function rebuilt from its leaves (`visit.rewrite`), kernels within it as they are."""
    made = rewrite(f, fn, is_primitive)
    assert isinstance(made, Function), "a function stays one"
    return made


def rewrite_functions(module: IRModule, fn: Callable[[Expr, Expr], Expr]) -> IRModule:
    """The typed module after `rewritten` of each of its functions."""
    return on_functions(module, lambda f, _: rewritten(f, fn))


def tensor(e: Expr) -> TensorType:
    """The type of a typed expression that is a tensor."""
    t = e.checked_type
    assert isinstance(t, TensorType), f"{t} is no tensor type"
    return t


def shape(e: Expr) -> tuple[Dim, ...]:
    """The extents of a typed expression that is a tensor."""
    return tuple(tensor(e).shape)


def constant(array: object) -> Constant:
    """A typed constant."""
    made = Constant(NDArray(np.asarray(array, order="C")))
    made.typed(made.tensor_type)
    return made


def scalar(value: float, dtype: str) -> Constant:
    """A typed constant without axes."""
    return constant(np.asarray(value, dtype))


def values(args: Sequence[Expr]) -> list[Arrays] | None:
    """The arrays of constants, and tuples of them; None where one of `args` is neither."""
    found: list[Arrays] = []
    for a in args:
        if isinstance(a, Constant):
            found.append(a.array)
        elif isinstance(a, Tuple) and (fields := values(a.fields)) is not None:
            found.append(tuple(fields))
        else:
            return None
    return found


def type_of_constant(e: Expr) -> Type:
    """The type of a constant, or a tuple of constants."""
    if isinstance(e, Tuple):
        return TupleType([type_of_constant(f) for f in e.fields])
    assert isinstance(e, Constant)
    return e.tensor_type


def expression(value: Arrays) -> Expr:
    """The constant of an array, the tuple of a tuple of arrays."""
    if isinstance(value, (tuple, list)):
        fields = [expression(v) for v in value]
        return Tuple(fields).typed(TupleType([f.checked_type for f in fields]))
    return constant(value)
