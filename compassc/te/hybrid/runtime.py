"""What the names of hybrid scripts mean when the function runs as Python, on arrays and numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compass_core.errors import UsageError

Value = Any
"""What a name of a script stands for: an array or a number when it runs; an expression, a number or text, a view, or a tuple of such
while it is parsed."""
DTYPES = (
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bool",
)
LOOPS = {"range": "serial", "serial": "serial", "parallel": "parallel", "vectorize": "vectorized", "unroll": "unrolled"}
"""What makes loops, and the kinds of these. `const_range` is written out, `bind` is a loop over threads."""


def _zeros(shape: Value, dtype: Value = "float32", scope: str = "global") -> Value:
    return np.zeros(shape, dtype)


def _bind(tag: str, extent: int) -> range:
    return range(extent)


def _popcount(x: Value) -> int:
    return int(x).bit_count()


def _sigmoid(x: Value) -> Value:
    return 1 / (1 + np.exp(-x))


def _max_num_threads(allow_none: bool = True) -> int:
    raise UsageError(
        "max_num_threads is a question about a target",
        code="input",
        help="call the function with tensors, under `with tvm.target.Target(...)`",
    )


def _likely(condition: Value) -> Value:
    return condition


HYBRID_GLOBALS: dict[str, Callable[..., Value]] = {
    "allocate": _zeros,
    "bind": _bind,
    "ceil_div": lambda a, b: (a + b - 1) // b,
    "const_range": range,
    "exp": np.exp,
    "likely": _likely,
    "log": np.log,
    "max_num_threads": _max_num_threads,
    "output_tensor": _zeros,
    "parallel": range,
    "popcount": _popcount,
    "power": np.power,
    "round": np.round,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "serial": range,
    "sigmoid": _sigmoid,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "truncdiv": lambda a, b: (a - np.fmod(a, b)) // b,
    "truncmod": np.fmod,
    "unroll": range,
    "vectorize": range,
    **{name: np.dtype(name).type for name in DTYPES if name != "bool"},
}
"""The names, for functions that run as Python."""
