"""The exact arithmetic of quantised operators: fixed-point factors, quantisation and back. Scales are float32, zero points
int32: scalars, or one for each place of an axis."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import replace

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc.ir.dtypes import dtype as data_type
from compassc.ir.errors import ExpressionError
from compassc.layers import arithmetic
from compassc.relay.ops.elementwise import fixed_point

"""An array of NumPy."""


TWICE = (arithmetic.TWICE_UPWARD, arithmetic.TWICE_TONEAREST)
"""Roundings of runtimes that keep the high word of the product, rounded (halves up), and then shift it, which rounds again."""


@dataclass(frozen=True)
class Requantization:
    """How `requantize` rounds, and in which type it computes."""

    rounding: str = "UPWARD"
    compute_dtype: str = "int64"

    def __post_init__(self) -> None:
        for given, known in (
            (self.rounding, ("UPWARD", "TONEAREST", *TWICE)),
            (self.compute_dtype, ("int64", "float32", "float64")),
        ):
            if given not in known:
                raise ExpressionError(f"requantize does not know '{given}'", f"give one of {', '.join(known)}")
        if self.rounding in TWICE and self.compute_dtype != "int64":
            raise ExpressionError(f"requantize rounds {self.rounding} in int64 only", "give compute_dtype='int64'")


_STANDARD = Requantization()
_CURRENT: ContextVar[Requantization] = ContextVar("requantization", default=_STANDARD)


@contextlib.contextmanager
def requantize_config(rounding: str = "UPWARD", compute_dtype: str = "int64") -> Iterator[Requantization]:
    """How requantizations inside are done that do not say it themselves."""
    token = _CURRENT.set(Requantization(rounding, compute_dtype))
    try:
        yield _CURRENT.get()
    finally:
        _CURRENT.reset(token)


def requantization(rounding: str = "None", compute_dtype: str = "None") -> Requantization:
    """What holds for a requantization with these attributes."""
    said = {"rounding": rounding, "compute_dtype": compute_dtype}
    return replace(_CURRENT.get(), **{k: v for k, v in said.items() if v != "None"})


def fixed_point_multiplier(value: float) -> tuple[int, int]:
    """A positive number as q * 2^(e - 31), with q of 32 bits: (q, e)."""
    if value == 0:
        return 0, 0
    part, exponent = math.frexp(value)
    q = math.floor(part * 2**31 + 0.5)
    return (2**30, exponent + 1) if q == 2**31 else (q, exponent)


def on_axis(values: object, axis: int, rank: int) -> Array:
    """A scalar as it is; one number for each place of an axis so that it lies there."""
    array = np.asarray(values)
    if array.ndim == 0 or array.size == 1:
        return array.reshape(())
    return array.reshape([-1 if d == axis % rank else 1 for d in range(rank)])


def _to_nearest(x: Array, q: Array, e: Array) -> Array:
    """x times q * 2^(e - 31), halves away from zero, in int64."""
    product = (x.astype("int64") << np.maximum(e, 0)) * q
    shift = 31 + np.maximum(-e, 0)
    half = np.int64(1) << (shift - 1)
    made: Array = ((product + np.where(product >= 0, half, half - 1)) >> shift).astype("int32")
    return made


def second_shift(e: Array) -> tuple[Array, Array]:
    """What a high word is shifted right by, and half of what is lost, for exponents of `fixed_point_multiplier`."""
    right = np.maximum(-e, 0)
    return right, (np.int64(1) << right) >> 1


def parts(factor: Array | float) -> tuple[Array, Array]:
    """Factors as q and e of `fixed_point_multiplier`, in int64. Below 2^-32 they take any number of 32 bits to 0.
    ExpressionError for those that no shift of 64 bits multiplies by."""
    pairs = np.vectorize(fixed_point_multiplier, otypes=["int64", "int64"])(factor)
    q, e = (np.asarray(p, "int64") for p in pairs)
    if np.any(e > 31):
        raise ExpressionError(
            f"requantize cannot multiply by {np.max(factor):g}",
            "the scale of the output is too small for that of the input",
        )
    tiny = e < -32
    return np.where(tiny, 0, q), np.where(tiny, 0, e)


def ratio(scale: Array, new_scale: Array) -> Array | None:
    """What numbers of one scale are multiplied by to be those of another; None where the scales are the same.
    ExpressionError for a scale of 0."""
    if np.any(new_scale == 0):
        raise ExpressionError("requantize: the scale of the output is 0", "give a scale above 0")
    if scale.shape == new_scale.shape and bool(np.all(scale == new_scale)):
        return None
    factor: Array = scale.astype("float64") / new_scale.astype("float64")
    return factor


def scaled(x: Array, factor: Array | float, how: Requantization) -> Array:
    """int32 numbers times a factor (or one for each place of an axis), by fixed-point arithmetic."""
    q, e = parts(factor)
    if how.rounding == "TONEAREST":
        return _to_nearest(x, q, e)
    if how.rounding in TWICE:
        return arithmetic.fixed_point(x, q, 31 - e, how.rounding).astype("int32")
    return np.asarray(fixed_point(x, q, np.maximum(e, 0), np.maximum(-e, 0)))


def limited(x: Array, dtype: str) -> Array:
    """Whole numbers in a type: the nearest ones that it has."""
    low, high = data_type(dtype).range()
    return np.clip(x, low, high).astype(dtype)


def requantized(
    x: Array, source: Sequence[object], target: Sequence[object], axis: int, dtype: str, how: Requantization
) -> Array:
    """Numbers of one scale and zero point as those of another. `source`, `target`: scale and zero point."""
    (scale, zero), (new_scale, new_zero) = ([on_axis(v, axis, max(x.ndim, 1)) for v in p] for p in (source, target))
    factor, kind = ratio(scale, new_scale), how.compute_dtype
    if kind != "int64":
        t = x.astype(kind) - zero.astype(kind)
        t = (t if factor is None else t * factor.astype(kind)) + new_zero.astype(kind)
        return limited(rounded(np.floor(t + np.asarray(0.5, kind)) if how.rounding == "UPWARD" else t), dtype)
    t = x.astype("int32") - zero.astype("int32")
    t = t if factor is None else scaled(t, factor, how)
    made = t + new_zero.astype("int32")
    return made if dtype == "int32" else limited(made, dtype)


def rounded(x: Array) -> Array:
    """Whole numbers, halves away from zero, within 32 bits; 0 for what is no number."""
    whole = np.trunc(x)
    away = whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0)
    made: Array = np.clip(np.nan_to_num(away.astype("float64")), -(2.0**31), 2.0**31 - 1).astype("int64")
    return made


TIES_TO_EVEN = "TIES_TO_EVEN"
"""The rounding of `quantize` in ONNX; else halves go away from zero."""


def quantized(
    x: Array, scale: Array | np.generic, zero: Array | np.generic, axis: int, dtype: str, rounding: str = "None"
) -> Array:
    """Reals as numbers of a scale and a zero point."""
    scale, zero = (on_axis(v, axis, max(x.ndim, 1)) for v in (scale, zero))
    exact = x / scale.astype("float32")
    return limited(rounded(np.rint(exact) if rounding == TIES_TO_EVEN else exact) + zero.astype("int64"), dtype)


def dequantized(x: Array, scale: Array, zero: Array, axis: int, dtype: str = "float32") -> Array:
    """The reals that numbers of a scale and a zero point mean."""
    scale, zero = (on_axis(v, axis, max(x.ndim, 1)) for v in (scale, zero))
    made: Array = (x.astype("int32") - zero.astype("int32")).astype("float32") * scale.astype("float32")
    if dtype == "float16":
        made = np.clip(made, -65504.0, 65504.0).astype("float16")
    return made
