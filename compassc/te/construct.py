"""Making tensors: `placeholder`, `compute`, and the symbols they are written with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import ContextDecorator
from typing import Any

from compassc.ir.dtypes import FLOAT32, INT32
from compassc.ir.errors import ExpressionError, ExpressionTypeError, warn
from compassc.ir.exprs import Expr, IntImm, Var
from compassc.ir.iter_vars import IterKind, IterVar, Range
from compassc.ir.operators import as_expr, data_type
from compassc.ir.tensor_exprs import Reduce
from compassc.ir.visit import walk_exprs
from compassc.te.reading import check_reads
from compassc.te.tensor import ComputeOp, PlaceholderOp, Tensor
from compassc.te.tensor_calls import TensorIntrinCall


def var(name: str = "tindex", dtype: Any = INT32) -> Expr:
    """A number that is known when the kernel runs; each call gives another one."""
    return Var(name, data_type(dtype))


def size_var(name: str = "size", dtype: object = INT32) -> Expr:
    """A number that is known when the kernel runs, and not negative."""
    return Var(name, data_type(dtype), True)


def shape_of(given: object) -> tuple[Expr, ...]:
    """The dimensions that a shape is written as. ExpressionError for what is no number of elements."""
    listed = given if isinstance(given, (tuple, list)) else (given,)
    shape = tuple(as_expr(int(d) if isinstance(d, float) else d) for d in listed)
    for dim in shape:
        if not dim.dtype.is_integer or (isinstance(dim, IntImm) and dim.value < 0):
            raise ExpressionError(f"{dim} is no number of elements")
    return shape


def placeholder(shape: object, dtype: object = None, name: str = "placeholder") -> Tensor:
    """A tensor that is given to the kernel; `dtype` is float32 unless it is said."""
    return PlaceholderOp(name, shape_of(shape), FLOAT32 if dtype is None else data_type(dtype)).output(0)


def compute(
    shape: object,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Any:
    """The tensor whose element at `i, j, ...` is `fcompute(i, j, ...)`; a tuple of tensors when that gives several.

    `fcompute` is called once, with one variable per axis; its parameters name the axes. ExpressionError when its
    parameters do not go with `shape`, and for reductions inside of other arithmetic.
    """
    extents = shape_of(shape)
    names = _axis_names(fcompute, len(extents), varargs_names)
    axes = tuple(
        IterVar(Range(e), n, IterKind.DATA_PARALLEL) for n, e in zip(names, extents[: len(names)], strict=True)
    )
    given = fcompute(*[axis.var for axis in axes])
    if isinstance(given, TensorIntrinCall):
        made = given.computed(name, axes, extents, TagScope.tag_of(tag), attrs)
        return tuple(made.outputs) if made.num_outputs > 1 else made.output(0)
    if len(axes) != len(extents):
        raise ExpressionError(f"the function takes {len(axes)} axes, the shape has {len(extents)}")
    several = isinstance(given, (tuple, list))
    body = tuple(as_expr(e) for e in (given if several else (given,)))
    _check_reductions(name, body)
    check_reads(name, axes, body)
    op = ComputeOp(name, axes, body, TagScope.tag_of(tag), attrs)
    return tuple(op.outputs) if several and len(body) > 1 else op.output(0)


def _axis_names(function: Callable[..., object], count: int, varargs_names: Sequence[str] | None) -> list[str]:
    """The names of the axes, by the parameters of `fcompute`."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise ExpressionTypeError(f"expected a function of the axes, got {type(function).__name__}") from None
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if any(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) or p.default is not p.empty for p in parameters):
        raise ExpressionError("the function of the axes takes them by position, without defaults")
    if not named and not rest:
        if count:
            raise ExpressionError(f"the function takes no axes, the shape has {count}", "write `lambda *i: ...`")
        return []
    if not rest:
        if len(named) > count:
            raise ExpressionError(f"the function takes {len(named)} axes, the shape has {count}")
        return named
    if len(named) > count:
        raise ExpressionError(f"the function takes at least {len(named)} axes, the shape has {count}")
    left = count - len(named)
    if varargs_names is not None and len(varargs_names) != left:
        raise ExpressionError(f"{len(varargs_names)} names are given for {left} axes")
    return [*named, *(varargs_names or [f"i{i}" for i in range(left)])]


def _check_reductions(name: str, body: tuple[Expr, ...]) -> None:
    reductions = [e for e in body if isinstance(e, Reduce)]
    for e in body:
        inner = [x for root in (e.source if isinstance(e, Reduce) else (e,)) for x in walk_exprs(root)]
        if any(isinstance(x, Reduce) for x in inner):
            raise ExpressionError(
                f"'{name}': a reduction must be the whole body, not a part of other arithmetic",
                "make the reduction a tensor of its own and compute with its elements",
            )
    if reductions and len(reductions) != len(body):
        raise ExpressionError(f"'{name}': either all outputs are reductions or none")
    first = reductions[0] if reductions else None
    for i, e in enumerate(reductions):
        assert first is not None
        if e.combiner is not first.combiner or e.axis != first.axis or e.value_index != i:
            raise ExpressionError(f"'{name}': the outputs must be the values of one reduction, in order")


class TagScope(ContextDecorator):
    """Gives the operations made inside of it a tag."""

    _active: TagScope | None = None

    def __init__(self, tag: str) -> None:
        self.tag, self.used = tag, False

    def __enter__(self) -> TagScope:  # noqa: PYI034 - typing.Self is younger than Python 3.10
        if TagScope._active is not None:
            raise ExpressionError("tag scopes do not nest")
        TagScope._active, self.used = self, False
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        TagScope._active = None
        if not self.used and failed is None:
            warn(f"no operation was made inside of the tag scope '{self.tag}'")

    @classmethod
    def tag_of(cls, tag: str) -> str:
        if cls._active is None:
            return tag
        if tag:
            raise ExpressionError(f"the tag '{tag}' is given inside of the scope of '{cls._active.tag}'")
        cls._active.used = True
        return cls._active.tag


def tag_scope(tag: str) -> TagScope:
    """A context or decorator that gives the operations made inside of it a tag."""
    return TagScope(tag)
