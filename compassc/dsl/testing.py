"""Helpers of kernel tests: random arrays with corner values, and comparison."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from compass_core.arrays import Array, NumpyDType
from compass_core.errors import UsageError
from compass_runtime.program import numpy_dtype

from ..language.info import resolve_dtype_alias
from ..settings.options import control_options


class RandError(UsageError, AssertionError):
    """Random values that cannot be made."""


P = ParamSpec("P")
R = TypeVar("R")
DTYPES = "int8 uint8 int16 uint16 int32 uint32 float16 float32 bfloat16 bool".split()
_FLOAT_STEP = 1e-5
_NEIGHBOURS = 2
"""Floats so many representable values apart count as equal."""
_source: list[np.random.Generator] = []


def _random() -> np.random.Generator:
    """The process's random numbers, seeded once: by the option random_seed, else by chance; a log line says how."""
    if not _source:
        import logging

        seed = control_options().random_seed
        seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
        logging.getLogger("Compass").info("random seed %d; CPS_DSL=random_seed=%d repeats it", seed, seed)
        _source.append(np.random.default_rng(seed))
    return _source[0]


def _numpy_dtype(dtype: object) -> NumpyDType:
    name = str(resolve_dtype_alias(dtype))
    if name not in DTYPES:
        raise RandError(f"rand makes no {name}", code="dtype", help="one of " + ", ".join(DTYPES))
    return numpy_dtype(name)


def _limits(dtype: NumpyDType) -> tuple[float, float]:
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    import ml_dtypes

    found = ml_dtypes.finfo(dtype)
    return float(found.min), float(found.max)


def rand(
    shape: int | Sequence[int],
    dtype: object,
    low: float | None = None,
    high: float | None = None,
    enable_corner_values: bool = True,
    return_python_type: bool = False,
) -> Any:
    """Random values of [low, high), by default of the whole range of the type; `shape` 1 gives one value, not an array.

    Floats are normally distributed around the middle. Smallest, largest and zero are among the values where there is
    room. `return_python_type` gives lists and numbers.
    """
    kind = _numpy_dtype(dtype)
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    if kind == np.bool_:
        array = _random().integers(0, 2, dims).astype(kind)
    else:
        least, most = _range(kind, low, high)
        array = _values(kind, dims, least, most)
        if enable_corner_values and least != most:
            _put_corners(array, [least, *([0] if least < 0 < most else []), most])
    result = array.reshape(-1)[0] if shape == 1 else array
    return result.tolist() if return_python_type else result


def _range(kind: NumpyDType, low: float | None, high: float | None) -> tuple[float, float]:
    """The least and the greatest value, both included."""
    least, most = _limits(kind)
    least = least if low is None else low
    if high is not None:
        most = high - (_FLOAT_STEP if kind.kind == "f" else 1)
    if least > most:
        raise RandError(f"rand: the range [{low}, {high}) of {kind.name} is empty", code="range")
    return least, most


def _values(kind: np.dtype[np.generic], dims: tuple[int, ...], least: float, most: float) -> Array:
    if kind.kind in "iu":
        return _random().integers(int(least), int(most), dims, dtype=kind, endpoint=True)
    if least == most:
        return np.full(dims, least).astype(kind)
    spread = min((most / 6 - least / 6), 700 if kind.name == "float16" else 1e6)
    return np.clip(_random().normal(least / 2 + most / 2, spread, dims), least, most).astype(kind)


def _put_corners(array: Array, corners: list[float]) -> None:
    if array.size > len(corners):
        places = _random().choice(array.size, len(corners), replace=False)
        array.reshape(-1)[places] = np.array(corners).astype(array.dtype)


def assert_allclose(actual: object, desired: object, rtol: float | None = None, atol: float | None = None) -> None:
    """AssertionError, with the elements that differ, unless both arrays have the same dtype and close values.

    Without tolerances integers must be equal, floats may differ by 1e-6. Floats at most two representable values apart
    are equal unless both tolerances are 0; NaN equals NaN.
    """
    actual, desired = np.asarray(actual), np.asarray(desired)
    assert actual.dtype == desired.dtype, f"dtypes differ: {actual.dtype.name} and {desired.dtype.name}"
    exact = actual.dtype.kind in "iub"
    rtol = 0.0 if rtol is None else rtol
    atol = (0.0 if exact else 1e-6) if atol is None else atol
    near = np.zeros(actual.shape, bool)
    if not exact and (rtol or atol) and actual.shape == desired.shape:
        near = _neighbours(actual, desired)
    if actual.dtype.name == "bfloat16":
        actual, desired = actual.astype(np.float32), desired.astype(np.float32)
    compared = np.where(near, desired, actual) if near.any() else actual
    try:
        np.testing.assert_allclose(compared, desired, rtol, atol, equal_nan=True)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{_differences(compared, desired, rtol, atol)}") from None


def _neighbours(actual: Array, desired: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    bits = {2: np.int16, 4: np.int32}.get(actual.dtype.itemsize)
    if bits is None:
        return np.zeros(actual.shape, bool)
    distance = np.ascontiguousarray(actual).view(bits).astype(np.int64) - np.ascontiguousarray(desired).view(bits)
    finite = np.isfinite(actual.astype(np.float64)) & np.isfinite(desired.astype(np.float64))
    return np.asarray(finite & (np.abs(distance) <= _NEIGHBOURS))


def _differences(actual: Array, desired: Array, rtol: float, atol: float) -> str:
    if actual.shape != desired.shape:
        return ""
    wrong = ~np.isclose(actual, desired, rtol, atol, equal_nan=True)
    return f"mismatching elements of actual: {actual[wrong]}\nmismatching elements of desired: {desired[wrong]}"


def clear_traceback(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: an exception that leaves the function keeps no local variables alive through its traceback."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)
            raise

    return wrapper
