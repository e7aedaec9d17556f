"""Packed functions that come with the runtime: products of matrices, sorting and random numbers, by NumPy.

Kernels call them by name (`te.call_packed`); they are registered when one of their names is looked up.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_runtime.errors import FailedAssertion
from compass_runtime.ndarray import NDArray
from compass_runtime.packed import register_func

_random = np.random.default_rng(0)


def _assertion(said: str) -> None:
    """Raises what a kernel says when something that it asserts does not hold."""
    raise FailedAssertion(said, code="kernel-assertion")


def _product(a: NDArray, b: NDArray, out: NDArray, transa: bool = False, transb: bool = False) -> None:
    """The product of two matrices, or of stacks of them, each transposed where it is said."""
    sides = [np.swapaxes(x.numpy(), -1, -2) if t else x.numpy() for x, t in ((a, transa), (b, transb))]
    out.copyfrom(np.matmul(*sides).astype(out.dtype, copy=False))


def _seed(seed: int) -> None:
    """Random numbers from now on follow from this one."""
    global _random
    _random = np.random.default_rng(seed)


def _randint(low: int, high: int, out: NDArray) -> None:
    out.copyfrom(_random.integers(low, high, out.shape).astype(out.dtype))


def _uniform(low: float, high: float, out: NDArray) -> None:
    out.copyfrom(_random.uniform(low, high, out.shape).astype(out.dtype))


def _normal(loc: float, scale: float, out: NDArray) -> None:
    out.copyfrom(_random.normal(loc, scale, out.shape).astype(out.dtype))


def random_fill(out: NDArray) -> None:
    """Fills an array for a measurement: real numbers from 0 to 10 that are not 0, whole ones from 0 to 7, truths."""
    kind = np.dtype(str(out.dtype)) if str(out.dtype) != "bfloat16" else None
    if kind is not None and kind.kind in "iu":
        _randint(0, 8, out)
    elif kind is not None and kind.kind == "b":
        _randint(0, 2, out)
    else:
        _uniform(0.001, 10.0, out)


FUNCTIONS: dict[str, Callable[..., None]] = {
    "cblas.matmul": _product,
    "cblas.batch_matmul": _product,
    "cblas.batch_matmul_iterative": _product,
    "random.seed": _seed,
    "random.randint": _randint,
    "random.uniform": _uniform,
    "random.normal": _normal,
    "random.random_fill": random_fill,
    "random.random_fill_for_measure": random_fill,
}
for _name, _function in FUNCTIONS.items():
    register_func(f"tvm.contrib.{_name}", _function, override=True)
register_func("runtime.assertion", _assertion, override=True)
