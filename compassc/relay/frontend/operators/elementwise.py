"""Operators on each element, with broadcasting."""

from __future__ import annotations

import numpy as np

from compassc.importers.onnx.protobuf import numpy_type
from compassc.importers.values import Refused
from compassc.relay.frontend.terms import Expressions, Term, operator


@operator("Mod")
def modulo(b: Expressions, x: Term, y: Term, *, fmod: int = 0) -> Term:
    return b.call("mod" if fmod else "floor_mod", x, y)


@operator("BitShift")
def shift(b: Expressions, x: Term, y: Term, *, direction: str) -> Term:
    return b.call("left_shift" if direction == "LEFT" else "right_shift", x, y)


@operator("IsInf")
def infinite(b: Expressions, x: Term, *, detect_negative: int = 1, detect_positive: int = 1) -> Term:
    wide = b.cast(x, "float32") if x.kind not in ("float32", "float64") else x
    found = b.call("isinf", wide)
    if not detect_negative:
        found = b.call("logical_and", found, b.call("greater", wide, 0))
    if not detect_positive:
        found = b.call("logical_and", found, b.call("less", wide, 0))
    return found


@operator("Where")
def where(b: Expressions, condition: Term, x: Term, y: Term) -> Term:
    return b.call("where", condition, x, y)


@operator("Clip")
def clip(b: Expressions, x: Term, low: Term | None = None, high: Term | None = None) -> Term:
    known = [None if v is None else v.array for v in (low, high)]
    if x.kind == "float32" and all(k is not None for k in known):
        low_number, high_number = (float(np.asarray(k).reshape(())) for k in known)
        if low_number <= high_number:
            return b.call("clip", x, a_min=low_number, a_max=high_number)
    if low is not None:
        x = b.call("maximum", x, low)
    return b.call("minimum", x, high) if high is not None else x


@operator("Cast", since=6)
def cast(b: Expressions, x: Term, *, to: int, saturate: int = 1, round_mode: str = "up") -> Term:
    dtype = numpy_type(to)
    if dtype.kind == "O":
        raise Refused("text is not supported")
    return b.cast(x, dtype)


@operator("BitCast")
def bit_cast(b: Expressions, x: Term, *, to: int) -> Term:
    return b.call("reinterpret", x, dtype=numpy_type(to).name)


@operator("Dropout")
def dropout(
    b: Expressions, x: Term, ratio: Term | None = None, training: Term | None = None, *, seed: int = 0
) -> list[Term]:
    """As it infers: what comes in, and a mask of ones."""
    if training is not None and (training.array is None or training.array.reshape(-1)[0]):
        chance = ratio.array if ratio is not None else np.float32(0.5)
        if training.array is None or chance is None or np.asarray(chance).reshape(-1)[0]:
            raise Refused("it is random")
    mask = [b.full(b.known(np.asarray(True)), b.sizes(x))] if b.uses(1) else []
    return [x, *mask]


@operator("PRelu", since=9)
def prelu(b: Expressions, x: Term, slope: Term) -> Term:
    return b.call("where", b.call("less", x, 0), b.call("multiply", x, slope), x)


@operator("Trilu")
def triangle(b: Expressions, x: Term, diagonal: Term | None = None, *, upper: int = 1) -> Term:
    k = diagonal if diagonal is not None else b.known(np.asarray(0, np.int64))
    return b.call("trilu", x, k=b.call("reshape", k, newshape=[]) if k.rank else k, upper=bool(upper))


@operator("CumSum", "CumProd")
def cumulated(b: Expressions, x: Term, axis: Term, *, exclusive: int = 0, reverse: int = 0) -> Term:
    (at,) = b.numbers(axis, "axis")
    name = "cumsum" if b.op == "CumSum" else "cumprod"
    given = b.call("reverse", x, axis=at) if reverse else x
    made = b.call(name, given, axis=at, dtype=x.kind, exclusive=bool(exclusive))
    return b.call("reverse", made, axis=at) if reverse else made
