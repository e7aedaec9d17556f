"""Products of matrices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compassc.operators.calls import CallOperator, References, X
from compassc.operators.declare import sample
from compassc.operators.expressions import define
from compassc.operators.packed import COLUMNS, panels_matmul
from compassc.relay import layouts
from compassc.relay.attributes import Attrs
from compassc.relay.builders import build, builder, call
from compassc.relay.expr import Expr
from compassc.relay.ops.convolution import exact, numeric
from compassc.relay.ops.declare import ANCHOR, OPAQUE, VOID, declare, record
from compassc.relay.ops.relations import axis_of, differ, merged, one_dtype, require, shaped
from compassc.relay.ops.shapes import extents
from compassc.relay.types import Dim, Open, Related, TensorType, Type
from compassc.te.tensor import Tensor

PANELS = f"NC{COLUMNS}n"
"""The layout of weights that kernels of the host read as they lie."""


def _product(a: Attrs, x: TensorType, y: Type, turn_a: bool, turn_b: bool) -> Related | None:
    """The rule of a matrix, or several in one, times a matrix."""
    require(len(x.shape) > (1 if turn_a else 0), lambda: f"the data needs more dimensions, it is {x}")
    own = list(x.shape)
    if turn_a:
        own[-2:] = own[:-3:-1]
    if a.units is not None:
        kind = y.dtype if isinstance(y, TensorType) else x.dtype
        other = [a.units, own[-1]] if turn_b else [own[-1], a.units]
        return Related(shaped(x, [*own[:-1], a.units], a.out_dtype), {1: TensorType(other, kind)})
    if not isinstance(y, TensorType):
        return None
    require(len(y.shape) == 2, lambda: f"the weight must be a matrix, it is {y}")
    units, depth = y.shape if turn_b else y.shape[::-1]
    require(
        not differ(own[-1], depth), lambda: f"extents {own[-1]} and {depth} that {x} and {y} are multiplied over differ"
    )
    return Related(shaped(x, [*own[:-1], units], a.out_dtype), {})


def _matrices(a: Attrs, t: TensorType, x: Array, y: Array, turn_a: bool = False, turn_b: bool = True) -> Array:
    x, y = exact(x), exact(y)
    return (x.swapaxes(-1, -2) if turn_a else x) @ (y.T if turn_b else y)


def _matrices_value(a: Attrs, t: TensorType, x: Tensor, y: Tensor, turn_a: bool = False, turn_b: bool = True) -> Tensor:
    shape = extents(x)
    if turn_a and len(shape) > 2:
        x = define("transpose", x, [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2])
        turn_a = False
    return _flat(x, lambda flat: define("matmul", flat, y, turn_a, turn_b, numeric(t)))


def _flat(x: Tensor, product: Callable[[Tensor], Tensor]) -> Tensor:
    """What a product makes of several matrices in one, as of one."""
    shape = extents(x)
    if len(shape) == 2:
        return product(x)
    made = product(define("reshape", x, [int(np.prod(shape[:-1], dtype="int64")), shape[-1]]))
    return define("reshape", made, [*shape[:-1], extents(made)[1]])


declare(
    "nn.dense", 'data, weight, units=None, out_dtype=""', lambda a, x, w: _product(a, x, w, False, True), ANCHOR,
    sample((4, 9), (6, 9), units=None), sample((2, 3, 5), (4, 5), units=4, out_dtype="float32"), sample((5,), (4, 5), units=None),
    record=record("DenseAttrs", units=..., out_dtype=VOID), partial="weight", reference=_matrices,
    compute=_matrices_value, level=1,
)  # fmt: skip
declare(
    "nn.matmul", 'tensor_a, tensor_b, units=None, out_dtype="", transpose_a=False, transpose_b=False',
    lambda a, x, y: _product(a, x, y, a.transpose_a, a.transpose_b), ANCHOR, sample((4, 9), (9, 6), units=None),
    sample((9, 4), (9, 6), units=None, transpose_a=True), sample((2, 9, 4), (6, 9), units=None, transpose_a=True, transpose_b=True), partial="tensor_b",
    record=record("MatmulAttrs", units=..., out_dtype=VOID, transpose_a=False, transpose_b=False), level=1, build=False,
    reference=lambda a, t, x, y: _matrices(a, t, x, y, a.transpose_a, a.transpose_b),
    compute=lambda a, t, x, y: _matrices_value(a, t, x, y, a.transpose_a, a.transpose_b), types=("float32", "int8"),
)  # fmt: skip


@builder("nn.matmul")
def matmul(
    tensor_a: Expr, tensor_b: Expr, units: int | None = None, out_dtype: str = "", transpose_a: bool = False,
    transpose_b: bool = False,
) -> Expr:  # fmt: skip
    """The product of two matrices, either of them turned round before."""
    if not transpose_a and transpose_b:
        return build("nn.dense", tensor_a, tensor_b, units, out_dtype)
    options: dict[str, object] = {"out_dtype": out_dtype, "transpose_a": transpose_a, "transpose_b": transpose_b}
    return call("nn.matmul", tensor_a, tensor_b, units=units, **options)


def _packed(a: Attrs, x: TensorType, w: TensorType) -> Type:
    require(
        layouts.convertible(a.weight_layout, "NC"), lambda: f"weight_layout {a.weight_layout} is not convertible to NC"
    )
    require(
        len(w.shape) == len(layouts.layout(a.weight_layout)), lambda: f"the weight {w} has no layout {a.weight_layout}"
    )
    units, depth = layouts.converted(w.shape, a.weight_layout, "NC")
    require(not differ(x.shape[-1], depth), lambda: f"extents {x.shape[-1]} and {depth} that {x} and {w} are multiplied over differ")  # fmt: skip
    return shaped(x, [*x.shape[:-1], units], a.out_dtype)


def _unpacked(call: CallOperator[X], a: Attrs, w: X) -> X:
    return layouts.transform(call, w, extents(w), a.weight_layout, "NC")


def _by_panels(a: Attrs, t: TensorType, x: Tensor, w: Tensor) -> Tensor:
    if a.weight_layout == PANELS and all(isinstance(d, int) for d in extents(x)):
        return _flat(x, lambda flat: panels_matmul(flat, w, numeric(t)))
    return _matrices_value(a, t, x, _unpacked(define, a, w))


declare(
    "nn.contrib_dense_pack", 'data, weight, weight_layout="NC", units=None, out_dtype=""', _packed, ANCHOR,
    sample((3, 5), (2, 5, 4), weight_layout="NC4n", units=None), sample((9, 5), (2, 5, COLUMNS), weight_layout=PANELS, units=None),
    record=record("DensePackAttrs", units=..., out_dtype=VOID, weight_layout="NC"),
    reference=lambda a, t, x, w: _matrices(a, t, x, _unpacked(References(), a, w)), level=10,
    compute=_by_panels,
)  # fmt: skip


def _batches(a: Attrs, x: TensorType, y: TensorType) -> Type:
    require(
        len(x.shape) == 3 and len(y.shape) == 3, lambda: f"batches of matrices have three dimensions, not {x} and {y}"
    )
    (m, k), (other, n) = (t.shape[1:] if not turned else t.shape[:0:-1] for t, turned in ((x, a.transpose_a), (y, a.transpose_b)))  # fmt: skip
    require(not differ(k, other), lambda: f"extents {k} and {other} that {x} and {y} are multiplied over differ")
    b, c = x.shape[0], y.shape[0]
    require(b == 1 or c == 1 or not differ(b, c), lambda: f"batch dimensions doesn't match: {b} of {x}, {c} of {y}")
    batch: Dim = c if b == 1 else b if c == 1 or not isinstance(b, Open) else c
    return shaped(x, [batch, m, n], a.out_dtype)


declare(
    "nn.batch_matmul", 'tensor_a, tensor_b, out_dtype="", transpose_a=False, transpose_b=True', _batches, ANCHOR,
    sample((3, 4, 5), (3, 6, 5), transpose_b=True), sample((2, 5, 4), (1, 5, 6), transpose_a=True),
    record=record("BatchMatmulAttrs", out_dtype=VOID, transpose_a=False, transpose_b=False), level=10,
    reference=lambda a, t, x, y: (exact(x).swapaxes(1, 2) if a.transpose_a else exact(x)) @ (exact(y).swapaxes(1, 2) if a.transpose_b else exact(y)),
    compute=lambda a, t, x, y: define("batch_matmul", x, y, bool(a.transpose_a), bool(a.transpose_b), numeric(t)),
    types=("float32", "int8"),
)  # fmt: skip


def _queue(a: Attrs, x: TensorType, buffer: TensorType) -> Type:
    one_dtype("fifo_buffer", x, buffer)
    at = axis_of(a.axis, len(buffer.shape))
    require(len(x.shape) == len(buffer.shape), lambda: f"the data {x} and the buffer {buffer} have different ranks")
    for d, (m, n) in enumerate(zip(x.shape, buffer.shape)):
        if d != at:
            merged(m, n, x, buffer)
    return buffer


def _queued(call: CallOperator[X], a: Attrs, t: TensorType, x: X, buffer: X) -> X:
    both = call("concatenate", [buffer, x], a.axis)
    at, extent = a.axis % x.ndim, extents(buffer)[a.axis]
    return call("strided_slice", both, [extents(both)[at] - extent], [extents(both)[at]], [1], [at])


declare("nn.fifo_buffer", "data, buffer, axis", _queue, OPAQUE, sample((2, 2), (2, 5), axis=1), record=record("FIFOBufferAttrs", axis=0),
        body=_queued)  # fmt: skip
