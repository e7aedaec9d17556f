"""Operators of ONNX Runtime (com.microsoft) of integers, as sums that are requantised."""

from __future__ import annotations

from compassc.importers.onnx.common.contributed import MICROSOFT, between
from compassc.relay.frontend.operators.linear import matmul_of_integers
from compassc.relay.frontend.operators.quantised import dequantize, requantised
from compassc.relay.frontend.terms import Expressions, Term, operator


@operator("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def qlinear_arithmetic(
    b: Expressions, x: Term, x_scale: Term, x_zero: Term | None, y: Term, y_scale: Term, y_zero: Term | None, scale: Term,
    zero: Term | None = None,
) -> Term:  # fmt: skip
    name = {"QLinearAdd": "add", "QLinearMul": "multiply"}[b.op]
    real = dequantize(b, y, y_scale, y_zero)
    made: Term = between(b, x, (x_scale, x_zero), (scale, zero), lambda v: b.call(name, v, real))
    return made


@operator("QGemm", domain=MICROSOFT)
def qgemm(
    b: Expressions, x: Term, x_scale: Term, x_zero: Term, w: Term, w_scale: Term, w_zero: Term, c: Term | None = None,
    scale: Term | None = None, zero: Term | None = None, *, alpha: float = 1.0, transA: int = 0, transB: int = 0,
) -> Term:  # fmt: skip
    """`c`: in whole numbers, by the product of the scales. Without a scale the result is of real numbers."""
    left, right = b.transpose(x, [1, 0]) if transA else x, b.transpose(w, [1, 0]) if transB else w
    sums = matmul_of_integers(b, left, right, x_zero, w_zero)
    sums = sums if c is None else b.call("add", sums, c)
    own = x_scale if alpha == 1 else b.call("multiply", x_scale, alpha)
    if scale is not None and zero is not None:
        return requantised(b, sums, own, w_scale, scale, zero, 1)
    return b.call("multiply", b.cast(sums, "float32"), b.call("multiply", own, w_scale))
