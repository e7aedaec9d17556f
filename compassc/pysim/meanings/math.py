"""Mathematical functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from compass_core import vendor
from compass_core.arrays import Array
from compass_core.errors import CompassError
from compassc.language.dispatch import LOCAL
from compassc.ops.numeric import np_dtype

from .. import fp
from ..fast_paths import Function
from . import meaning

if TYPE_CHECKING:
    from compassc.ir.dtypes import DataType


def _of_one(name: str, compute: Callable[[Function, DataType, Array], Array], function: Function) -> None:
    """Register the meaning of a function of one operand, as `fp.in_float` or `fp.in_double` computes it."""

    def run(x: Array, dtype: DataType) -> Array:
        return compute(function, dtype, x)

    run.__name__ = name
    meaning(run)


_of_one("exp", fp.in_float, fp.exp)
_of_one("exp2", fp.in_double, np.exp2)
_of_one("log", fp.in_double, np.log)
_of_one("tanh", fp.in_double, np.tanh)
_of_one("sin", fp.in_double, np.sin)
_of_one("cos", fp.in_double, np.cos)
_of_one("erf", fp.in_double, np.vectorize(math.erf, otypes=[float]))
_of_one("sqrt", fp.in_float, np.sqrt)
_of_one("rsqrt", fp.in_float, fp.rsqrt)
_of_one("floor", fp.in_float, np.floor)
_of_one("ceil", fp.in_float, np.ceil)


@meaning
def pow(x: Array, exponent: Array, dtype: DataType) -> Array:
    return fp.in_double(_power, dtype, x, exponent)


def _power(x: Array, y: Array) -> Array:
    """C's pow. np.power takes the root for a single exponent of 0.5; a product is never a signalling NaN, of which the
    0th power would be NaN."""
    return np.float_power(x * 1.0, y * 1.0)


class ZeroDivisor(CompassError, ZeroDivisionError):
    """A division by zero in PySim, under the vendor's names."""


@meaning
def ceildiv(x: Array, y: Array, dtype: DataType) -> np.generic:
    found: np.generic
    if y == 0:
        if vendor.names_in_use and LOCAL.tec is not None:
            raise ZeroDivisor("ceildiv divides by zero", code="zero-division", help="the divisor must be positive")
        found = np_dtype(dtype).type(0)
        return found
    divisor, (low, high) = int(y), dtype.integer_range()
    span = high - low + 1
    numerator = (int(x) + divisor - 1 - low) % span + low
    quotient = abs(numerator) // abs(divisor)
    found = np_dtype(dtype).type(((quotient if (numerator < 0) == (divisor < 0) else -quotient) - low) % span + low)
    return found
