"""How operators are declared: signature, attributes, type rule, pattern, and what they compute."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TypedDict, TypeVar

import ml_dtypes  # noqa: F401  # by it NumPy knows bfloat16
import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compassc import te
from compassc.ir.errors import ExpressionError
from compassc.operators.calls import References
from compassc.operators.declare import Sample, sizes
from compassc.operators.expressions import define
from compassc.operators.patterns import PatternKind
from compassc.relay.attributes import Attrs, Record, record
from compassc.relay.builders import BUILDERS, Builder, call
from compassc.relay.expr import Expr, Tuple, TupleWrapper, as_expr
from compassc.relay.operators import ANY_NUMBER, FIRST_LEVEL, OPERATORS, PATTERNS, Argument, Compute, Op, Reference
from compassc.relay.ops.relations import differ
from compassc.relay.types import (
    IncompleteType,
    Related,
    Relation,
    RelationError,
    TensorType,
    TupleType,
    Type,
    is_dynamic,
)
from compassc.te.tensor import Tensor

T = TypeVar("T")
Rule = Callable[..., "Type | Related | None"]
"""A type rule as it is declared: of the attributes, then of the type of each argument."""
Body = Callable[..., object]
"""What an operator computes in calls of tensor operators, which are references and expressions at once: of a function
`call(name, *operands, **attributes)`, the attributes, the type of the result, then of each argument."""

Evaluate = Callable[..., "Array | Sequence[Array]"]
"""What an operator computes of arrays, where that is no body: of the attributes, the type of the result, then of each argument."""
Express = Callable[..., "Tensor | Sequence[Tensor]"]
"""What an operator is of tensors, where that is no body: of the same."""
Prepare = Callable[[dict[str, object]], None]
"""What changes the values by name before a call is made of them."""


class Meanings(TypedDict, total=False):
    """What is computed, as `declare` takes it."""

    reference: Evaluate
    compute: Express


ELEMENTWISE, BROADCAST, INJECTIVE = PatternKind.ELEMENTWISE, PatternKind.BROADCAST, PatternKind.INJECTIVE
REDUCTION, ANCHOR, OPAQUE = PatternKind.REDUCTION, PatternKind.ANCHOR, PatternKind.OPAQUE
VOID = ""
"""An unset type of elements."""
__all__ = ["ANCHOR", "BROADCAST", "ELEMENTWISE", "INJECTIVE", "OPAQUE", "REDUCTION", "VOID", "declare", "record"]


class NoExpression(ExpressionError):
    """A call of an operator that has none, though others have: kernels of hosts call its reference."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message} has no tensor expression", "the reference computes it: build for a host")


def declare(
    name: str,
    signature: str,
    rule: Rule,
    pattern: PatternKind = OPAQUE,
    *samples: Sample,
    record: Record | None = None,
    body: Body | str | None = None,
    reference: Evaluate | None = None,
    compute: Express | None = None,
    level: int = FIRST_LEVEL,
    types: Sequence[str] = ("float32",),
    tuples: str = "",
    results: int = 0,
    partial: str = "",
    stateful: bool = False,
    anything: bool = False,
    prepare: Prepare | None = None,
    build: bool = True,
    **registered: object,
) -> Op:
    """Declare an operator and the function that makes calls of it.

    `signature`: the parameters of that function, with defaults. Those that `record` has are attributes, the others
    arguments; `tuples` names arguments that are tuples. `prepare` changes the values by name before a call is made of
    them; `results`: how many results can be unpacked; without `build` it is written by hand.
    `body` (or the name of a tensor operator) says what is computed, or `reference` (attributes, type, arrays) and
    `compute` (attributes, type, tensors). `partial` names arguments
    that may be holes for the rule; `anything`: arguments may be of any type. `samples` are tried with `types`.
    """
    names, defaults = _parameters(signature)
    arguments = [n for n in names if not (record and n in record.fields)]
    assert name not in OPERATORS, f"{name} is declared twice"
    op = OPERATORS[name] = Op(
        name,
        [Argument(n, "Tuple of Tensors" if n in tuples.split() else "Tensor") for n in arguments],
        len(arguments),
        level,
        record,
        _checked(name, arguments, rule, tuples.split(), partial.split(), anything),
        samples=samples,
        types=tuple(types),
    )
    if isinstance(body, str):
        body = _operator_of(body)
    if body is not None or reference is not None:
        op.reference = _reference(name, body, reference)
    for key, value in {
        "TOpPattern": int(PATTERNS[pattern]),
        "FTVMCompute": _compute(body, compute, bool(tuples)),
        "TOpIsStateful": stateful or None,
        **registered,
    }.items():
        if value is not None:
            op.set_attr(key, value)
    if build:
        BUILDERS[name] = _builder(name, names, defaults, arguments, prepare, results)
    return op


def variadic(op: Op) -> Op:
    """Declare that an operator takes any number of arguments."""
    op.num_inputs = ANY_NUMBER
    return op


@cache
def _parameters(signature: str) -> tuple[tuple[str, ...], Mapping[str, object]]:
    """Names of parameters, and the values of those with defaults."""
    function = ast.parse(f"def f({signature}): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    names = tuple(a.arg for a in function.args.args)
    values = [ast.literal_eval(d) for d in function.args.defaults]
    return names, dict(zip(names[len(names) - len(values) :], values))


def expression(given: object) -> Expr:
    """The expression of an argument; a list or tuple of expressions is their tuple."""
    return Tuple([as_expr(g) for g in given]) if isinstance(given, (list, tuple)) else as_expr(given)


def _builder(
    name: str,
    names: tuple[str, ...],
    defaults: Mapping[str, object],
    arguments: Sequence[str],
    prepare: Prepare | None,
    results: int,
) -> Builder:
    kind, absent = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    signature = inspect.Signature([inspect.Parameter(n, kind, default=defaults.get(n, absent)) for n in names])

    def build(*args: object, **named: object) -> Expr | TupleWrapper:
        bound = signature.bind(*args, **named)
        bound.apply_defaults()
        values = bound.arguments
        if prepare:
            prepare(values)
        made = call(name, *[expression(values.pop(n)) for n in arguments], **values)
        return TupleWrapper(made, results) if results else made

    build.__name__ = build.__qualname__ = name.rpartition(".")[2]
    build.__signature__ = signature  # type: ignore[attr-defined]  # what inspect shows
    return build


def _holes(t: Type) -> bool:
    return isinstance(t, IncompleteType) or isinstance(t, TupleType) and any(map(_holes, t.fields))


def _checked(
    name: str,
    arguments: Sequence[str],
    rule: Rule,
    tuples: Sequence[str],
    partial: Sequence[str],
    anything: bool,
) -> Relation:
    """A rule that waits for types that are not known, and takes only tensors, and tuples of them."""

    def relation(types: Sequence[Type], attrs: Attrs | None) -> Type | Related | None:
        if any(_holes(t) for argument, t in zip(arguments, types) if argument not in partial):
            return None
        for argument, t in zip(arguments, types):
            wanted = TupleType if argument in tuples else TensorType
            if not (anything or isinstance(t, (wanted, IncompleteType))):
                kind = "a tuple" if wanted is TupleType else "a tensor"
                raise RelationError(f"{name}: argument '{argument}' must be {kind}, not {t}")
        try:
            found = rule(attrs, *types)
        except RelationError as error:
            raise RelationError(f"{name}: {error.message}", error.help or "") from None
        except CompassError:
            raise
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:  # it asks for nothing else
            words = f"{name}: its attributes do not go with {', '.join(map(str, types))}: {error}"
            raise RelationError(words, f"they are {attrs}") from error
        made = found.result if isinstance(found, Related) else found
        if made is not None and _has_negative(made):
            raise RelationError(f"{name}: its result would be {made}", f"its attributes are {attrs}")
        if isinstance(found, Related):
            for place, must in found.inputs.items():
                if not _fits(types[place], must):
                    raise RelationError(f"{name}: argument '{arguments[place]}' must be {must}, not {types[place]}")
        return found

    return relation


def _has_negative(t: Type) -> bool:
    """Whether an extent is below 0."""
    if isinstance(t, TupleType):
        return any(map(_has_negative, t.fields))
    return isinstance(t, TensorType) and any(isinstance(d, int) and d < 0 for d in t.shape)


def _fits(given: Type, must: Type) -> bool:
    """Whether a type may be another one; what is open may be anything."""
    if not isinstance(given, TensorType) or not isinstance(must, TensorType):
        return True
    return (
        given.dtype == must.dtype
        and len(given.shape) == len(must.shape)
        and not any(map(differ, given.shape, must.shape))
    )


def _operator_of(name: str) -> Body:
    return lambda call, a, t, *x: call(name, *x)


def _each(found: object, t: Type, finished: Callable[[object, TensorType], T]) -> list[T]:
    given = list(found) if isinstance(found, (tuple, list)) else [found]
    kinds = t.fields if isinstance(t, TupleType) else (t,)
    assert len(given) == len(kinds), f"{len(given)} results of {len(kinds)}"
    return [finished(f, k) for f, k in zip(given, kinds) if isinstance(k, TensorType)]


def _as_typed(found: object, t: TensorType) -> Array:
    array = np.asarray(found)
    if not is_dynamic(t) and array.shape != t.shape:
        assert array.size == 1, f"a result of shape {array.shape}, typed {t.shape}"
        array = array.reshape(t.concrete_shape)
    return np.ascontiguousarray(array.astype(t.dtype, copy=False)).reshape(array.shape)


def _reference(name: str, body: Body | None, reference: Evaluate | None) -> Reference:
    def evaluate(attrs: Attrs | None, arrays: Sequence[object], t: Type) -> Array | tuple[Array, ...]:
        with np.errstate(all="ignore"):
            found: object
            try:
                if reference is not None:
                    found = reference(attrs, t, *arrays)
                else:
                    assert body is not None
                    found = body(References(), attrs, t, *arrays)
            except CompassError:
                raise
            except (ValueError, IndexError, TypeError, ArithmeticError) as error:
                raise ExpressionError(f"{name} cannot be computed of these values: {error}") from error
            made = _each(found, t, _as_typed)
        return tuple(made) if isinstance(t, TupleType) else made[0]

    evaluate.__name__ = name
    return evaluate


def _tensor_as_typed(found: object, t: TensorType) -> Tensor:
    assert isinstance(found, Tensor)
    made: Tensor = found
    if not t.shape and sizes(found):
        ones = [0] * len(sizes(found))
        made = te.compute((), lambda *i: found[tuple(ones)], name="T_scalar", tag="injective")
    return made if str(made.dtype) == t.dtype else define("cast", made, t.dtype)


def _compute(body: Body | None, compute: Express | None, tuples: bool) -> Compute | None:
    if body is None and compute is None:
        return None

    def express(attrs: Attrs | None, tensors: Sequence[Tensor], t: Type) -> Sequence[Tensor]:
        given: Sequence[object] = [list(tensors)] if tuples else tensors
        found: object
        if compute is not None:
            found = compute(attrs, t, *given)
        else:
            assert body is not None
            found = body(define, attrs, t, *given)
        return _each(found, t, _tensor_as_typed)

    return express
