"""The loops that are compared: the examples, and ten kernels of growing size, with the data they work on.

A loop has three forms of the same algorithm: a kernel (`examples/NAME/kernel.py` or `kernels/NAME.py`), C with vector
types on as many threads as the kernel has TECs (`native/NAME.c`), and plain OpenCL (`opencl/NAME.cl`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from compassc.dsl import load_kernels
from compassc.language.functions import PyPrimFunc

from .core import ROOT

Array = np.ndarray[Any, np.dtype[Any]]
Arguments = list[Any]
K, M = 1024, 1024 * 1024


@dataclass(frozen=True)
class Loop:
    """A loop by name.

    `arguments`: one value per kernel parameter, outputs as arrays to be filled. `items`: the size of the grid in
    OpenCL, `group` of its work groups (None: whatever it likes). `exact`: C and kernel agree bit by bit; else, as sums in
    another order do, nearly. `table`: a further argument in C and OpenCL, which the kernel computes while compiling.
    """

    name: str
    arguments: Callable[[np.random.Generator], Arguments]
    items: tuple[int, ...]
    group: tuple[int, ...] | None = None
    exact: bool = True
    table: Callable[[], Array] | None = None

    def kernel(self) -> PyPrimFunc:
        """The kernel, not built yet."""
        example = ROOT / "examples" / self.name / "kernel.py"
        file = example if example.is_file() else ROOT / "benchmarks" / "kernels" / f"{self.name}.py"
        return load_kernels(file).entry()


def _ints(rng: np.random.Generator, dtype: str, *shape: int) -> Array:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def _floats(rng: np.random.Generator, dtype: str, *shape: int) -> Array:
    return rng.normal(0, 4, shape).astype(dtype)


def _zeros(dtype: str, *shape: int) -> Array:
    return np.zeros(shape, dtype)


def _silu_table() -> Array:
    x = np.linspace(-8.0, 8.0, 513)
    return (x / (1 + np.exp(-x))).astype("float16")


EXAMPLES = (
    Loop("vadd", lambda r: [_ints(r, "int32", 8), _zeros("int32", 8)], (8,)),
    Loop("static_add", lambda r: [*(_floats(r, "float16", 2 * K) for _ in "ab"), _zeros("float16", 2 * K)], (2 * K,)),
    Loop("bitonic_sort", lambda r: [_ints(r, "int32", 32 * K), _zeros("int32", 32 * K), 32 * K], (256,), (256,)),
    Loop(
        "matmul_int8",
        lambda r: [*(_ints(r, "int8", 256, 512) for _ in "ab"), _zeros("int32", 256, 256), 256, 256, 512],
        (256, 256),
    ),
    Loop("scalar_add", lambda r: [*(_ints(r, "int32", M) for _ in "ab"), _zeros("int32", M), M], (M,)),
    Loop("silu_lut", lambda r: [_floats(r, "float16", M), _zeros("float16", M), M], (M,), table=_silu_table),
    Loop("transpose", lambda r: [_floats(r, "float32", K, K), _zeros("float32", K, K), K, K], (K, K)),
    Loop("max_reduce_2d", lambda r: [_floats(r, "float32", 2 * K, K), _zeros("float32", 2 * K), 2 * K, K], (2 * K,)),
    Loop("max_reduce", lambda r: [_ints(r, "int32", 4 * M), _zeros("int32", 1), 4 * M], (64,), (64,)),
    Loop(
        "eltwise_int8",
        lambda r: [*(_ints(r, "int8", 4 * M) for _ in "ab"), _zeros("int8", 4 * M), 4 * M, 3, 20000, -5, 15000, 15, 1],
        (4 * M,),
    ),
    Loop(
        "dynamic_add",
        lambda r: [*(_floats(r, "float16", 4 * M) for _ in "ab"), _zeros("float16", 4 * M), 4 * M],
        (4 * M,),
    ),
    Loop("softmax", lambda r: [_floats(r, "float16", 4 * K, K), _zeros("float16", 4 * K, K), 4 * K, K], (4 * K,), (8,)),
)

GROWING = (
    Loop("add_i32", lambda r: [*(_ints(r, "int32", 2 * K) for _ in "ab"), _zeros("int32", 2 * K), 2 * K], (2 * K,)),
    Loop(
        "saxpy_fp16",
        lambda r: [*(_floats(r, "float16", 8 * K) for _ in "xy"), _zeros("float16", 8 * K), 1.5, 8 * K],
        (8 * K,),
    ),
    Loop("relu_i8", lambda r: [_ints(r, "int8", 32 * K), _zeros("int8", 32 * K), 32 * K], (32 * K,)),
    Loop(
        "lut_u8",
        lambda r: [_ints(r, "uint8", 64 * K), _ints(r, "uint8", 256), _zeros("uint8", 64 * K), 64 * K],
        (64 * K,),
    ),
    Loop(
        "requant_i8", lambda r: [_ints(r, "int32", 128 * K) >> 8, _zeros("int8", 128 * K), 128 * K, 16, 3], (128 * K,)
    ),
    Loop(
        "layer_norm",
        lambda r: [
            _floats(r, "float32", 512, 512),
            *(_floats(r, "float32", 512) for _ in "wb"),
            _zeros("float32", 512, 512),
            512,
            512,
        ],
        (512,),
        exact=False,
    ),
    Loop(
        "depthwise_3x3",
        lambda r: [
            _floats(r, "float32", 66, 66, 128),
            _floats(r, "float32", 9, 128),
            _zeros("float32", 64, 64, 128),
            64,
            64,
            128,
        ],
        (128, 64, 64),
    ),
    Loop(
        "matmul_fp32",
        lambda r: [*(_floats(r, "float32", 256, 256) for _ in "ab"), _zeros("float32", 256, 256), 256],
        (256, 256),
    ),
    Loop(
        "row_mean",
        lambda r: [_floats(r, "float16", 2 * K, K), _zeros("float32", 2 * K), 2 * K, K],
        (2 * K,),
        exact=False,
    ),
    Loop(
        "blend_fp32",
        lambda r: [*(_floats(r, "float32", 4 * M) for _ in "abt"), _zeros("float32", 4 * M), 4 * M],
        (4 * M,),
    ),
)
