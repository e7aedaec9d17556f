"""Operators of ONNX Runtime (com.microsoft) that become layers of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compassc.importers.onnx.common.contributed import MICROSOFT, between
from compassc.importers.onnx.declare import Constant, operator
from compassc.importers.onnx.operators.quantised import Quantised, plain_levels
from compassc.importers.onnx.operators.quantised_forms import combine, product
from compassc.importers.values import Refused, Value

if TYPE_CHECKING:
    from compassc.importers.onnx.convert import Conversion


@operator("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def qlinear_arithmetic(
    b: Conversion,
    x: Value,
    x_scale: Constant,
    x_zero: Constant,
    y: Value,
    y_scale: Constant,
    y_zero: Constant,
    out_scale: Constant,
    out_zero: Constant,
) -> Value:
    pair = [Quantised(x, plain_levels(x_scale, x_zero, x.dtype)), Quantised(y, plain_levels(y_scale, y_zero, y.dtype))]
    method = b.op.removeprefix("QLinear").upper()
    found = combine(b, method, pair, plain_levels(out_scale, out_zero, out_zero.dtype))
    if found is not None:
        return found
    of_y, of_x, out = (
        (Value.of(v), Value.of(z)) for v, z in ((y_scale, y_zero), (x_scale, x_zero), (out_scale, out_zero))
    )
    real = b.onnx("DequantizeLinear", y, *of_y)
    made: Value = between(b, x, of_x, out, lambda v: b.onnx(method.capitalize(), v, real))
    return made


@operator("QGemm", domain=MICROSOFT)
def qgemm(
    b: Conversion,
    x: Value,
    x_scale: Constant,
    x_zero: Constant,
    w: Constant,
    w_scale: Constant,
    w_zero: Constant,
    c: Constant | None = None,
    y_scale: Constant | None = None,
    y_zero: Constant | None = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Value:
    if alpha != 1 or y_scale is None or y_zero is None:
        raise Refused("an alpha other than 1, and results in floats, are not supported")
    left = b.transpose(x, (1, 0)) if transA else x
    weights = w if transB else np.ascontiguousarray(w.T)
    source = Quantised(left, plain_levels(x_scale, x_zero, x.dtype))
    factors = Quantised(Value.of(weights), plain_levels(w_scale, w_zero, w.dtype, 0, 2))
    biases = np.zeros(weights.shape[0], np.int64) if c is None else np.broadcast_to(c.reshape(-1), weights.shape[0])
    return product(b, source, factors, biases.astype(np.int64), plain_levels(y_scale, y_zero, y_zero.dtype))
