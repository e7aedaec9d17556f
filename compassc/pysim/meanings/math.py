"""Mathematical functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compass_core import vendor
from compass_core.errors import CompassError
from compassc.language.dispatch import LOCAL
from compassc.ops.numeric import np_dtype

from .. import fp
from . import meaning


@meaning
def exp(x: Any, dtype: Any) -> Any:
    return fp.in_float(fp.exp, dtype, x)


@meaning
def exp2(x: Any, dtype: Any) -> Any:
    return fp.in_double(np.exp2, dtype, x)


@meaning
def log(x: Any, dtype: Any) -> Any:
    return fp.in_double(np.log, dtype, x)


@meaning
def tanh(x: Any, dtype: Any) -> Any:
    return fp.in_double(np.tanh, dtype, x)


@meaning
def sin(x: Any, dtype: Any) -> Any:
    return fp.in_double(np.sin, dtype, x)


@meaning
def cos(x: Any, dtype: Any) -> Any:
    return fp.in_double(np.cos, dtype, x)


@meaning
def erf(x: Any, dtype: Any) -> Any:
    return fp.in_double(np.vectorize(math.erf, otypes=[float]), dtype, x)


@meaning
def sqrt(x: Any, dtype: Any) -> Any:
    return fp.in_float(np.sqrt, dtype, x)


@meaning
def rsqrt(x: Any, dtype: Any) -> Any:
    return fp.in_float(fp.rsqrt, dtype, x)


@meaning
def floor(x: Any, dtype: Any) -> Any:
    return fp.in_float(np.floor, dtype, x)


@meaning
def ceil(x: Any, dtype: Any) -> Any:
    return fp.in_float(np.ceil, dtype, x)


@meaning
def pow(x: Any, exponent: Any, dtype: Any) -> Any:
    return fp.in_double(_power, dtype, x, exponent)


def _power(x: Any, y: Any) -> Any:
    """C's pow. np.power takes the root for a single exponent of 0.5; a product is never a signalling NaN, of which the
    0th power would be NaN."""
    return np.float_power(x * 1.0, y * 1.0)


class ZeroDivisor(CompassError, ZeroDivisionError):
    """A division by zero in PySim, under the vendor's names."""


@meaning
def ceildiv(x: Any, y: Any, dtype: Any) -> Any:
    if y == 0:
        if vendor.names_in_use and LOCAL.tec is not None:
            raise ZeroDivisor("ceildiv divides by zero", code="zero-division", help="the divisor must be positive")
        return np_dtype(dtype).type(0)
    total = int((np.int64(x) + np.int64(y)).astype(np_dtype(dtype)))
    numerator, divisor = int(np.int64(total - 1).astype(np_dtype(dtype))), int(y)
    quotient = abs(numerator) // abs(divisor)
    return np.int64(quotient if (numerator < 0) == (divisor < 0) else -quotient).astype(np_dtype(dtype))
