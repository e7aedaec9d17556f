"""Operators that make tensors: of one value, of counted places, of grids and diagonals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.exprs import Expr as Element
from compassc.operators.declare import Sample, Whole, sample, sizes
from compassc.operators.elementwise import mapped
from compassc.relay.attributes import RECORDS, Attrs
from compassc.relay.builders import builder, call
from compassc.relay.expr import Constant, Expr, Tuple, TupleWrapper, const
from compassc.relay.ops.declare import ANCHOR, ELEMENTWISE, INJECTIVE, OPAQUE, VOID, declare, expression, record
from compassc.relay.ops.elementwise import NUMBERS
from compassc.relay.ops.relations import axis_of, differ, fail, one_dtype, require, shaped, tensors
from compassc.relay.ops.shapes import extents, listed, several
from compassc.relay.types import Dim, Open, TensorType, TupleType, Type
from compassc.te.tensor import Tensor

_init = RECORDS["relay.attrs.InitOpAttrs"]


def scalar(t: TensorType, what: str) -> TensorType:
    """The type, of a tensor without axes."""
    require(not t.shape, lambda: f"{what} must be a scalar, it is {t}")
    return t


# ---------------------------------------------------------------------------------------------------------------- one value


def _full(a: Attrs, value: TensorType) -> Type:
    scalar(value, "fill_value")
    return TensorType(a.shape, a.dtype or value.dtype)


def _full_value(a: Attrs, t: TensorType, value: Tensor) -> Tensor:
    made: Tensor = te.compute(
        list(t.concrete_shape), lambda *i: te.cast(value[()], t.dtype), name="T_full", tag="elemwise"
    )
    return made


declare(
    "full", 'fill_value, shape=(), dtype=""', _full, ELEMENTWISE, sample((), shape=[2, 3], dtype="int32"), record=_init,
    reference=lambda a, t, value: np.full(a.shape, value.astype(t.dtype)), compute=_full_value, level=3, build=False,
)  # fmt: skip
declare(
    "full_like", "data, fill_value", lambda a, x, value: scalar(value, "fill_value") and x, ELEMENTWISE, sample((2, 3), ()),
    reference=lambda a, t, x, value: np.full(x.shape, value.astype(t.dtype)), level=4,
    compute=lambda a, t, x, value: mapped(x, lambda v: te.cast(value[()], t.dtype), "T_full_like"),
)  # fmt: skip


@builder("full")
def full(fill_value: Expr, shape: object = (), dtype: str = "") -> Expr:
    """A tensor of one value."""
    wanted = several(shape)
    if isinstance(wanted, Expr):
        return call("dyn.full", fill_value, wanted, shape=None, dtype=dtype)
    return call("full", fill_value, shape=wanted, dtype=dtype)


def _of_one(name: str, value: int) -> Callable[[object, str], Expr]:
    def build(shape: object, dtype: str) -> Expr:
        wanted = several(shape)
        if isinstance(wanted, Expr):
            return call(f"dyn.{name}", wanted, shape=None, dtype=dtype)
        return call(name, shape=wanted, dtype=dtype)

    build.__name__ = name
    declare(
        name, "shape, dtype", lambda a: TensorType(a.shape, a.dtype), ELEMENTWISE, sample(shape=[2, 3], dtype="int32"),
        record=_init, body=lambda call, a, t: call("full", list(a.shape), a.dtype, value), level=3, build=False,
    )  # fmt: skip
    return builder(name)(build)


zeros, ones = _of_one("zeros", 0), _of_one("ones", 1)


# ----------------------------------------------------------------------------------------------------------- counted places


def count_of(start: float, stop: float, step: float) -> int:
    """How many numbers there are from `start` to before `stop` by `step`."""
    require(step != 0, "the step must not be 0")
    return max(math.ceil((stop - start) / step), 0)


def _counted(a: Attrs, *ends: TensorType) -> Type:
    for name, t in zip(("start", "stop", "step"), ends):
        scalar(t, name)
        require(t.dtype == a.dtype, lambda: f"{name} must be of {a.dtype}, it is {t}")  # noqa: B023
    values = [e.array.item() for e in (a.start, a.stop, a.step) if isinstance(e, Constant)]
    if len(values) < 3:
        return TensorType((Open(),), a.dtype)
    length = count_of(*values)
    require(length > 0, lambda: f"there are no numbers from {values[0]} to {values[1]} by {values[2]}")
    return TensorType((length,), a.dtype)


def _counting(a: Attrs, t: TensorType, start: Array, stop: Array, step: Array) -> Array:
    length = count_of(start.item(), stop.item(), step.item())
    made: Array = start + np.arange(length).astype(t.dtype) * step
    return made


def _counting_value(a: Attrs, t: TensorType, start: Tensor, stop: Tensor, step: Tensor) -> Tensor:
    made: Tensor = te.compute(
        list(t.concrete_shape), lambda i: start[()] + te.cast(i, t.dtype) * step[()], name="T_arange", tag="injective"
    )
    return made


def _three(*values: float, dtype: str = "float32") -> Sample:
    given = [const(v, dtype) for v in values]
    return sample(*[g.array for g in given], start=given[0], stop=given[1], step=given[2], dtype=dtype)


declare(
    "arange", "first, last, by, start, stop, step, dtype", _counted, OPAQUE, _three(1, 9.5, 2), _three(9, 0, -3, dtype="int32"),
    record=record("ArangeAttrs", start=..., stop=..., step=..., dtype=...), reference=_counting, compute=_counting_value,
    build=False, level=3,
)  # fmt: skip


@builder("arange")
def arange(start: object, stop: object = None, step: object = None, dtype: str = "float32") -> Expr:
    """The numbers from `start` (0) to before `stop` by `step` (1)."""
    first, last = (0, start) if stop is None else (start, stop)
    ends = [e if isinstance(e, Expr) else const(e, dtype) for e in (first, last, 1 if step is None else step)]
    return call("arange", *ends, start=ends[0], stop=ends[1], step=ends[2], dtype=dtype)


def _grids(a: Attrs, given: TupleType) -> Type:
    fields = tensors(given, "meshgrid")
    require(a.indexing in ("ij", "xy"), lambda: f"indexing is 'ij' or 'xy', not '{a.indexing}'")
    one_dtype("meshgrid", *fields)
    for f in fields:
        require(len(f.shape) < 2, lambda: f"meshgrid takes tensors of one dimension at most, not {f}")  # noqa: B023
    shape: list[Dim] = [f.shape[0] if f.shape else 1 for f in fields]
    if a.indexing == "xy" and len(shape) > 1:
        shape[:2] = shape[1::-1]
    return TupleType([shaped(f, shape) for f in fields])


def _grid_value(a: Attrs, t: TupleType, x: Sequence[Tensor]) -> Sequence[Tensor]:
    def one(n: int, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        at = 1 - n if a.indexing == "xy" and n < 2 and len(x) > 1 else n
        made: Tensor = te.compute(
            list(shape), lambda *i: tensor[(i[at],) if sizes(tensor) else ()], name="T_meshgrid", tag="injective"
        )
        return made

    return [
        one(n, tensor, f.concrete_shape) for n, (tensor, f) in enumerate(zip(x, t.fields)) if isinstance(f, TensorType)
    ]


declare(
    "meshgrid", 'data, indexing="ij"', _grids, INJECTIVE, sample([(3,), (4,), (2,)]), sample([(3,), (4,)], indexing="xy"),
    record=record("MeshgridAttrs", indexing="ij"), tuples="data", build=False, level=3,
    reference=lambda a, t, x: np.meshgrid(*x, indexing=a.indexing), compute=_grid_value,
)  # fmt: skip


@builder("meshgrid")
def meshgrid(data: object, indexing: str = "ij") -> TupleWrapper:
    """Tensors whose elements are those of one axis of a grid each."""
    given = expression(data)
    known = given.fields if isinstance(given, Tuple) else getattr(given, "type_annotation", None)
    if isinstance(known, TupleType):
        known = known.fields
    if known is None:
        raise fail("how many grids there are is not known", "give a tuple, or a list of tensors")
    size = len(known)
    return TupleWrapper(call("meshgrid", given, indexing=indexing), size)


# ------------------------------------------------------------------------------------------------------- places as numbers


def _hot(a: Attrs, indices: TensorType, on: TensorType, off: TensorType) -> Type:
    scalar(on, "on_value")
    scalar(off, "off_value")
    require(isinstance(a.depth, int) and a.depth > 0, lambda: f"depth must be above 0, it is {a.depth}")
    at = axis_of(a.axis, len(indices.shape) + 1)
    return shaped(indices, [*indices.shape[:at], a.depth, *indices.shape[at:]], a.dtype)


def hot(indices: Array, on: Array, off: Array, depth: int, axis: int, dtype: str) -> Array:
    """`on` at the places that are said on a new axis, `off` elsewhere."""
    at = axis % (indices.ndim + 1)
    places = np.arange(depth).reshape([-1 if d == at else 1 for d in range(indices.ndim + 1)])
    return np.where(np.expand_dims(indices, at) == places, on.astype(dtype), off.astype(dtype))


def _hot_value(a: Attrs, t: TensorType, indices: Tensor, on: Tensor, off: Tensor) -> Tensor:
    at = a.axis % len(t.shape)

    def element(*i: Element) -> Element:
        own = indices[(*i[:at], *i[at + 1 :])]
        return te.Select(own == te.cast(i[at], own.dtype), te.cast(on[()], t.dtype), te.cast(off[()], t.dtype))

    made: Tensor = te.compute(list(t.concrete_shape), element, name="T_one_hot", tag="injective")
    return made


declare(
    "one_hot", "indices, on_value, off_value, depth, axis, dtype", _hot, ANCHOR,
    sample(Whole((3, 2), -1, 5), (), np.array(0, "float32"), depth=4, axis=-1, dtype="float32"),
    sample(Whole((3,), 0, 4), (), np.array(0, "float32"), depth=4, axis=0, dtype="int32"),
    record=record("OneHotAttrs", depth=1, axis=-1, dtype=VOID), compute=_hot_value, level=10, build=False,
    reference=lambda a, t, i, on, off: hot(i, on, off, a.depth, a.axis, a.dtype),
)  # fmt: skip


@builder("one_hot")
def one_hot(indices: Expr, on_value: Expr, off_value: Expr, depth: object, axis: int, dtype: str) -> Expr:
    """A new axis of `depth` places: `on_value` at the place that is said, else `off_value`."""
    places = listed(depth)
    if isinstance(places, Expr):
        return call("dyn.one_hot", indices, on_value, off_value, places, axis=axis, dtype=dtype)
    return call("one_hot", indices, on_value, off_value, depth=places, axis=axis, dtype=dtype)


# ----------------------------------------------------------------------------------------------------------------- diagonals


def _triangle(a: object, x: TensorType, k: TensorType) -> Type:
    require(len(x.shape) >= 2, lambda: f"the data needs two dimensions, it is {x}")
    scalar(k, "k")
    return x


def _triangle_value(a: Attrs, t: TensorType, x: Tensor, k: Tensor) -> Tensor:
    def element(*i: Element) -> Element:
        place = te.cast(i[-1] - i[-2], "int32") - te.cast(k[()], "int32")
        return te.Select(place >= 0 if a.upper else place <= 0, x[i], te.const(0, t.dtype))

    made: Tensor = te.compute(extents(x), element, name="T_trilu", tag="injective")
    return made


declare(
    "trilu", "data, k, upper=True", _triangle, ELEMENTWISE, sample((2, 4, 5), np.array(1, "int32")),
    sample((4, 3), np.array(-1, "int32"), upper=False), record=record("TriluAttrs", upper=True), level=3, build=False,
    reference=lambda a, t, x, k: (np.triu if a.upper else np.tril)(x, int(k)), compute=_triangle_value, types=NUMBERS,
)  # fmt: skip


@builder("trilu")
def trilu(data: Expr, k: object, upper: bool = True) -> Expr:
    """The upper or the lower triangle of matrices, 0 elsewhere; `k`: how far above its diagonal lies."""
    return call("trilu", data, k if isinstance(k, Expr) else const(k, "int32"), upper=upper)


def _diagonals(a: Attrs, x: TensorType, diagonal: TensorType) -> Type:
    rank = len(x.shape)
    require(rank >= 2, lambda: f"the input needs two dimensions, it is {x}")
    require(
        x.dtype == diagonal.dtype, lambda: f"the input is {x}, the diagonal {diagonal}: their data types must be one"
    )
    require(a.k1 <= a.k2, lambda: f"k1 {a.k1} must not be above k2 {a.k2}")
    own = rank - 1 if a.k1 == a.k2 else rank
    require(len(diagonal.shape) == own, lambda: f"the diagonal must have {own} dimensions, it is {diagonal}")
    if own == rank:
        require(not differ(diagonal.shape[-2], a.k2 - a.k1 + 1), lambda: f"there are {a.k2 - a.k1 + 1} diagonals, the diagonal is {diagonal}")  # fmt: skip
    for m, n in zip(x.shape[:-2], diagonal.shape):
        require(not differ(m, n), lambda: f"the input {x} and the diagonal {diagonal} have different batches")
    return x


def _set_diagonals(a: Attrs, t: TensorType, x: Array, diagonal: Array) -> Array:
    made = x.copy()
    rows, columns = x.shape[-2:]
    longest = diagonal.shape[-1]
    for k in range(a.k1, a.k2 + 1):
        values = diagonal if a.k1 == a.k2 else diagonal[..., a.k2 - k, :]
        length = min(rows + min(k, 0), columns - max(k, 0))
        right = a.super_diag_right_align if k >= 0 else a.sub_diag_right_align
        skipped = longest - length if right else 0
        for n in range(length):
            made[..., n - min(k, 0), n + max(k, 0)] = values[..., n + skipped]
    return made


declare(
    "matrix_set_diag", "input, diagonal, k1, k2, super_diag_right_align, sub_diag_right_align", _diagonals, INJECTIVE,
    sample((2, 3, 4), (2, 3), k1=0, k2=0), sample((3, 4), (3, 3), k1=-1, k2=1),
    record=record("MatrixSetDiagAttrs", k1=0, k2=0, super_diag_right_align=True, sub_diag_right_align=False),
    reference=_set_diagonals, level=10, build=False,
)  # fmt: skip


@builder("matrix_set_diag")
def matrix_set_diag(data: Expr, diagonal: Expr, k: object = 0, align: str = "RIGHT_LEFT") -> Expr:
    """Matrices with other diagonals. `k`: one, or the lowest and the highest; `align`: the ends of shorter ones, above the
    main one and below it."""
    low, high = k if isinstance(k, (list, tuple)) else (k, k)
    above, below = align.split("_")
    return call(
        "matrix_set_diag", data, diagonal, k1=low, k2=high, super_diag_right_align=above == "RIGHT",
        sub_diag_right_align=below == "RIGHT",
    )  # fmt: skip
