"""The tensors of a model as expressions, and what functions of operators make of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.reading.budget import Budget
from compass_runtime.ndarray import NDArray
from compassc.importers.declare import Table
from compassc.importers.onnx.maker import COMMON
from compassc.importers.onnx.reading import GROUPS
from compassc.importers.onnx.walk import Item, Walk
from compassc.importers.values import ModelTensor, NotConstant, Refused, Reported, spans, stop_of
from compassc.relay.builders import results
from compassc.relay.expr import Call, Constant, Expr, Tuple, TupleGetItem, TupleWrapper, Var, as_expr
from compassc.relay.infer import infer_local
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.passes.infer_type import ModuleDefinitions
from compassc.relay.types import TensorType, TupleType
from compassc.relay.visit import children

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto

TABLE = Table("compassc.relay.frontend.operators", COMMON, GROUPS)
"""Operators of ONNX as expressions, as `compassc.importers.declare` explains it."""
operator = TABLE.operator
FARTHEST = 2**31 - 1
"""A place beyond the end of any axis."""
INDEX = "int64"
"""The type of shapes and places."""


@dataclass(frozen=True, eq=False)
class Term(ModelTensor):
    """A tensor of a model that is an expression."""

    expr: Expr = field(kw_only=True)

    @property
    def name(self) -> str:
        return self.expr.name_hint if isinstance(self.expr, Var) else ""

    @property
    def kind(self) -> str:
        """The name of the type of its elements."""
        return self.dtype.name

    @property
    def is_float(self) -> bool:
        """Whether it is of real numbers."""
        return self.dtype.kind == "f" or "float" in self.dtype.name


Made = Callable[..., "Term | list[Term]"]
MEANINGS: dict[str, Made] = {}
"""What makes the expression of an operator of the registry (`compassc.operators`), by its name, with its own parameters."""
Size = int | Term
"""An extent: a number, or a scalar that is computed."""
Operand = Term | Expr | bool | int | float | Array | Sequence["Operand"]


class Expressions(Walk):
    """A program in the making from a model: what functions of operators get as `b`. `frozen`: whether what the model has the
    content of is constant; else it is a parameter, whose content counts where something has to be known."""

    table = TABLE

    def __init__(
        self,
        name: str,
        opsets: Mapping[str, int],
        functions: Mapping[tuple[str, str], FunctionProto],
        budget: Budget,
        frozen: bool = True,
    ) -> None:
        super().__init__(name, opsets, functions, budget)
        self.frozen = frozen
        self.params: dict[str, tuple[Var, Array]] = {}
        self._definitions = ModuleDefinitions(IRModule())

    # -- tensors

    def known(self, array: Array) -> Term:
        """A constant. Refused where programs have no such type."""
        try:
            made = self.term(Constant(NDArray(np.asarray(array, order="C"))))
        except (CompassError, KeyError, TypeError) as error:
            raise Refused(f"programs have no tensors of {array.dtype}: {error}") from None
        return Term(made.shape, made.dtype, array, expr=made.expr)

    def initial(self, name: str, array: Array) -> Term:
        if self.frozen:
            return self.known(array)
        made = self.term(Var(name, TensorType(array.shape, array.dtype.name)))
        assert isinstance(made.expr, Var)
        self.params[name] = made.expr, array
        return Term(made.shape, made.dtype, array, expr=made.expr)

    def content(self, x: ModelTensor) -> Array | None:
        """Parameters stay parameters, but for whole numbers, which may be shapes."""
        parameter = isinstance(x, Term) and isinstance(x.expr, Var) and x.dtype.kind not in "iub"
        return None if parameter else x.array

    def term(self, made: Expr) -> Term:
        """An expression as a tensor, with its type. Refused where types do not fit."""
        found = self.typed(made).checked_type
        if not isinstance(found, TensorType):
            raise Refused(f"its result is {found}, no tensor")
        return Term(tuple(found.shape), np.dtype(found.dtype), expr=made)

    def terms(self, made: Expr) -> list[Term]:
        """The fields of a tuple."""
        found = self.typed(made).checked_type
        if not isinstance(found, TupleType):
            raise Refused(f"its result is {found}, no tuple")
        return [self.term(TupleGetItem(made, i)) for i in range(len(found.fields))]

    def typed(self, root: Expr) -> Expr:
        """The expression, whose new parts get their types from those that have them."""
        stack = [root]
        while stack:
            e = stack[-1]
            if e.checked_type_ is not None:
                stack.pop()
                continue
            new = [c for c in _parts(e) if c.checked_type_ is None]
            if new:
                stack += new
                continue
            stack.pop()
            try:
                infer_local(e, self._definitions)
            except CompassError as error:
                raise Refused(error.message) from None
        return root

    def of(self, value: Operand, like: Term | None = None) -> Term:
        """A number, an array or an expression as a tensor; numbers have the type of `like`."""
        if isinstance(value, Term):
            return value
        if isinstance(value, Expr):
            return self.term(value)
        dtype = like.dtype if like is not None and not isinstance(value, np.ndarray) else None
        return self.known(np.asarray(value, dtype))

    # -- calls

    def call(self, name: str, *args: Operand, **attributes: object) -> Term:
        """What an operator of Relay gives: its only, or its first result. Lists of tensors are tuples, numbers are of the type of
        the first argument, attributes may be tensors."""
        made = self._results(name, args, attributes)
        return self.term(made[0] if isinstance(made, TupleWrapper) else made)

    def calls(self, name: str, *args: Operand, **attributes: object) -> list[Term]:
        """All results of an operator of Relay."""
        return self.terms(as_expr(self._results(name, args, attributes)))

    def _results(self, name: str, args: Sequence[Operand], attributes: Mapping[str, object]) -> Expr | TupleWrapper:
        first = next((a for a in args if isinstance(a, Term)), None)
        given = [
            Tuple([self.of(v).expr for v in a]) if isinstance(a, (list, tuple)) else self.of(a, first).expr
            for a in args
        ]
        try:
            return results(name, *given, **{k: _plain(v) for k, v in attributes.items()})
        except CompassError as error:
            raise Refused(error.message) from None

    def several(self, name: str, *xs: Operand, **attributes: object) -> Term | list[Term]:
        """What an operator of the registry makes, all results of those that have several. Refused where no expression does."""
        TABLE.operators()  # which loads the modules that say them
        if name not in MEANINGS:
            raise Refused(f"the operator {name} has no expression")
        return MEANINGS[name](self, *xs, **attributes)

    def made(self, name: str, *xs: Operand, **attributes: object) -> Term:
        """What an operator of the registry makes."""
        found = self.several(name, *xs, **attributes)
        assert isinstance(found, Term), f"{name} has several results"
        return found

    def cast(self, x: Term, dtype: DTypeLike) -> Term:
        """A tensor of another type of elements."""
        name = np.dtype(dtype).name
        if name == x.kind:
            return x
        if x.array is not None and x.array.size <= 1:
            return self.known(x.array.astype(name))
        return self.call("cast", x, dtype=name)

    # -- shapes

    def size(self, x: Term, axis: int) -> Size:
        """An extent of a tensor."""
        extent = x.shape[x.axis(axis)]
        return extent if isinstance(extent, int) else self.scalar(self.call("shape_of", x, dtype=INDEX), x.axis(axis))

    def sizes(self, x: Term) -> list[Size]:
        """The shape of a tensor."""
        return [self.size(x, axis) for axis in range(x.rank)]

    def scalar(self, vector: Term, place: int) -> Term:
        """One number of a vector."""
        return self.call("take", vector, np.asarray(place, INDEX), axis=0)

    def vector(self, sizes: Sequence[Size]) -> Term:
        """Extents as a tensor."""
        if all(isinstance(s, int) for s in sizes):
            return self.known(np.asarray(sizes, INDEX))
        parts = [
            self.known(np.asarray([s], INDEX)) if isinstance(s, int) else self.call("reshape", s, newshape=[1])
            for s in sizes
        ]
        return self.call("concatenate", parts, axis=0) if len(parts) > 1 else parts[0]

    def numbers(self, x: Term, what: str) -> list[int]:
        """Whole numbers that must be known. Refused where they are not."""
        found = self.listed(x)
        if not all(isinstance(n, int) for n in found):
            raise NotConstant(f"its {what} is only known at run time", [x.name])
        return [n for n in found if isinstance(n, int)]

    def listed(self, x: Term) -> list[Size]:
        """The numbers of a vector (or the one of a scalar), those that are not known as scalars."""
        if x.array is not None:
            return [int(n) for n in x.array.reshape(-1)]
        return self._numbers(x.expr)

    def _numbers(self, e: Expr) -> list[Size]:
        x = self.term(e)
        if x.rank > 1 or not all(isinstance(d, int) for d in x.shape):
            raise Refused("how many numbers it has is only known at run time")
        if isinstance(e, Constant):
            return [int(n) for n in e.array.reshape(-1)]
        name = e.op.name if isinstance(e, Call) and isinstance(e.op, Op) else ""
        if isinstance(e, Call) and name in _LISTED:
            found = _LISTED[name](self, e)
            if found is not None:
                return found
        return [self.cast(x, INDEX)] if not x.rank else [self.cast(self.scalar(x, i), INDEX) for i in range(x.shape[0])]

    def reshape(self, x: Term, sizes: Sequence[Size]) -> Term:
        """The elements of a tensor in a shape of which all extents are known but one, or which is computed."""
        if tuple(sizes) == x.shape:
            return x
        computed = [i for i, s in enumerate(sizes) if not isinstance(s, int)]
        if len(computed) > 1 or computed and 0 in sizes:
            return self.call("reshape", x, newshape=self.vector(sizes), allowzero=True)
        plain = [s if isinstance(s, int) else -1 for s in sizes]
        return self.call("reshape", x, newshape=plain, allowzero=True)

    def shaped_as(self, x: Term, like: Term) -> Term:
        """The elements of a tensor in the shape of another one."""
        return self.reshape(x, self.sizes(like))

    def broadcast(self, x: Term, sizes: Sequence[Size]) -> Term:
        """A tensor stretched to a shape."""
        if tuple(sizes) == x.shape:
            return x
        known = all(isinstance(s, int) for s in sizes)
        return self.call("broadcast_to", x, shape=list(sizes) if known else self.vector(sizes))

    def full(self, value: Term, sizes: Sequence[Size]) -> Term:
        """A scalar everywhere in a shape."""
        known = all(isinstance(s, int) for s in sizes)
        return self.call("full", value, shape=list(sizes) if known else self.vector(sizes), dtype=value.kind)

    def transpose(self, x: Term, order: Sequence[int]) -> Term:
        """The axes in another order."""
        return x if list(order) == list(range(x.rank)) else self.call("transpose", x, axes=list(order))

    def slice(self, x: Term, axis: int, begin: int, end: int, step: int = 1) -> Term:
        """Part of an axis."""
        return self.call("strided_slice", x, begin=[begin], end=[end], strides=[step], axes=[axis])

    def squeeze(self, x: Term, axes: Sequence[int]) -> Term:
        """A tensor without axes of one element."""
        return self.call("squeeze", x, axis=[x.axis(a) for a in axes]) if len(axes) else x

    def unsqueeze(self, x: Term, axes: Sequence[int]) -> Term:
        """A tensor with further axes of one element, at places of the result."""
        rank = x.rank + len(axes)
        for axis in sorted(a + rank if a < 0 else a for a in axes):
            x = self.call("expand_dims", x, axis=axis)
        return x

    def concat(self, *xs: Term, axis: int) -> Term:
        """Tensors behind each other along an axis."""
        return self.call("concatenate", list(xs), axis=axis) if len(xs) > 1 else xs[0]

    def split(self, x: Term, axis: int, sizes: Sequence[int]) -> list[Term]:
        """Parts of an axis, one behind the other."""
        at, ends = x.axis(axis), np.cumsum([0, *sizes]).tolist()
        if len(sizes) == 1:
            return [x]
        if 0 in sizes:
            return [self.slice(x, at, first, last) for first, last in itertools.pairwise(ends)]
        return self.calls("split", x, indices_or_sections=tuple(ends[1:-1]), axis=at)

    def sliced(
        self, x: Term, begin: Sequence[int], end: Sequence[int], step: Sequence[int], axes: Sequence[int]
    ) -> Term:
        """Part of some axes (`spans`); of open ones by the operator's rules, which refuses to leave nothing of an axis."""
        listed = dict(zip((x.axis(a) for a in axes), zip(begin, end, step, strict=True), strict=True))
        for a, (first, last, by) in listed.items():
            if isinstance(x.shape[a], int):
                span = spans(x, [first], [last], [by], [a])[a]
                listed[a] = (span.start, stop_of(span, x.shape[a]), span.step)
                continue
            near = max(-FARTHEST, min(last, FARTHEST))
            if by < 0 and (near < 0 and last > -FARTHEST or first < -1):
                raise Refused("the places of its slice, counted from the end, are only known at run time")
            listed[a] = max(-FARTHEST, min(first, FARTHEST)), near, by
        if not listed:
            return x
        starts, ends, by_axis = (list(v) for v in zip(*listed.values(), strict=True))
        return self.call("strided_slice", x, begin=starts, end=ends, strides=by_axis, axes=list(listed))

    def ranked(self, x: Term, rank: int) -> Term:
        """A tensor with further axes of one element in front."""
        return self.call("expand_dims", x, axis=0, num_newaxis=rank - x.rank) if rank > x.rank else x

    # -- bodies

    def body(self, graph: GraphProto, given: Mapping[str, Item], what: str) -> list[Term]:
        """The tensors that a body makes. Refused where it makes others; Reported where its nodes are refused."""
        before = len(self.refusals)
        made = self.run(graph, given)
        if len(self.refusals) > before:
            raise Reported(f"nodes of its {what} are refused")
        if not all(isinstance(m, Term) for m in made):
            raise Refused(f"its {what} gives a sequence of tensors")
        return [m for m in made if isinstance(m, Term)]


def _parts(e: Expr) -> list[Expr]:
    """What an expression is typed by, without operators, which have no type of their own."""
    if isinstance(e, (Call, Tuple, TupleGetItem)):
        return [c for c in children(e) if not isinstance(c, Op)]
    return []


def _plain(value: object) -> object:
    if isinstance(value, Term):
        return value.expr
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def _whole(b: Expressions, e: Call) -> list[Size] | None:
    return b._numbers(e.args[0])


def _joined(b: Expressions, e: Call) -> list[Size] | None:
    parts = e.args[0]
    return [n for f in parts.fields for n in b._numbers(f)] if isinstance(parts, Tuple) else None


def _shape(b: Expressions, e: Call) -> list[Size] | None:
    shape = b.term(e.args[0]).shape
    return [d if isinstance(d, int) else b.scalar(b.term(e), i) for i, d in enumerate(shape)]


def _taken(b: Expressions, e: Call) -> list[Size] | None:
    places = e.args[1]
    if not isinstance(places, Constant):
        return None
    all_of = b._numbers(e.args[0])
    return [all_of[int(p)] for p in places.array.reshape(-1)] if _shape_of(e.args[0]) or places.array.size > 1 else None


def _shape_of(e: Expr) -> bool:
    """Whether an expression is the shape of another one, some of which may be known."""
    return isinstance(e, Call) and isinstance(e.op, Op) and e.op.name in ("shape_of", "concatenate", "cast")


def _cut(b: Expressions, e: Call) -> list[Size] | None:
    a = e.attrs
    assert a is not None
    (begin,), (end,), (step,) = a.begin, a.end, a.strides or (1,)
    return b._numbers(e.args[0])[slice(begin, end, step)]


_LISTED: dict[str, Callable[[Expressions, Call], list[Size] | None]] = {
    "concatenate": _joined, "cast": _whole, "reshape": _whole, "expand_dims": _whole, "squeeze": _whole, "shape_of": _shape,
    "take": _taken, "strided_slice": _cut,
}  # fmt: skip
"""What is known of the numbers that an operator gives; None where nothing is."""
