"""Eltwise and the binary layers Add, Sub, Mul, Div, SquaredDifference, with broadcasting of one operand."""

from collections.abc import Callable
from functools import cache
from typing import Any

from compassc.dsl import script as S
from compassc.gbuilder.plugin_api import Tensor
from compassc.oplib.activations import TABLE, fused
from compassc.oplib.layer import (
    FLOATS,
    QUANTISED,
    Choice,
    Layer,
    Unsupported,
    count,
    input_scale,
    operator,
    output_scale,
)
from compassc.oplib.vector import LANES, SHORT, dequantised, narrow, quantised, share, wide

METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "ADD": lambda a, b: a + b,
    "SUB": lambda a, b: a - b,
    "RSUB": lambda a, b: b - a,
    "MUL": lambda a, b: a * b,
    "DIV": lambda a, b: a / b,
    "RDIV": lambda a, b: b / a,
    "MAX": lambda a, b: S.max(a, b),
    "MIN": lambda a, b: S.min(a, b),
    "SQDIFF": lambda a, b: (a - b) * (a - b),
}
SWAPPED = {"SUB": "RSUB", "DIV": "RDIV"}
ALONE = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL", "Div": "DIV", "SquaredDifference": "SQDIFF"}
ELTWISE = ("ADD", "SUB", "MUL", "MAX", "MIN")


@cache
def _flat(method: str, act: str, dtype: str):
    """Operands of one shape."""
    function, activation, lanes = METHODS[method], TABLE[act].apply, LANES[dtype]

    @S.prim_func
    def eltwise(
        a: S.ptr(dtype, "global"), b: S.ptr(dtype, "global"), y: S.ptr(dtype, "global"), n: S.i32, p: S.fp32, q: S.fp32
    ):
        part = share(n, lanes)
        first = S.get_local_id() * part
        for at in range(first, S.min(first + part, n), lanes):
            mask = S.tail_mask(S.min(n - at, lanes), lanes)
            left = wide(S.vload(a + at, mask), dtype)
            right = wide(S.vload(b + at, mask), dtype)
            S.vstore(narrow(activation(function(left, right), p, q), dtype), y + at, mask)

    return eltwise


@cache
def _rows(method: str, act: str, dtype: str):
    """y is rows x cols; row r meets row r % period of b, which has as many columns."""
    function, activation, lanes = METHODS[method], TABLE[act].apply, LANES[dtype]

    @S.prim_func
    def eltwise(
        a: S.ptr(dtype, "global"), b: S.ptr(dtype, "global"), y: S.ptr(dtype, "global"),
        rows: S.i32, cols: S.i32, period: S.i32, p: S.fp32, q: S.fp32,
    ):  # fmt: skip
        for r in range(S.get_local_id(), rows, S.get_local_size()):
            other = b + r % period * cols
            for at in range(0, cols, lanes):
                mask = S.tail_mask(S.min(cols - at, lanes), lanes)
                left = wide(S.vload(a + (r * cols + at), mask), dtype)
                right = wide(S.vload(other + at, mask), dtype)
                S.vstore(narrow(activation(function(left, right), p, q), dtype), y + (r * cols + at), mask)

    return eltwise


@cache
def _scalars(method: str, act: str, dtype: str):
    """y is rows x cols; row r meets the one element r % period of b."""
    function, activation, lanes = METHODS[method], TABLE[act].apply, LANES[dtype]

    @S.prim_func
    def eltwise(
        a: S.ptr(dtype, "global"), b: S.ptr(dtype, "global"), y: S.ptr(dtype, "global"),
        rows: S.i32, cols: S.i32, period: S.i32, p: S.fp32, q: S.fp32,
    ):  # fmt: skip
        for r in range(S.get_local_id(), rows, S.get_local_size()):
            right = S.fp32(b[r % period])
            for at in range(0, cols, lanes):
                mask = S.tail_mask(S.min(cols - at, lanes), lanes)
                left = wide(S.vload(a + (r * cols + at), mask), dtype)
                S.vstore(narrow(activation(function(left, right), p, q), dtype), y + (r * cols + at), mask)

    return eltwise


@cache
def _quantised(method: str, act: str, dtype: str):
    """Quantised operands of one shape: what they stand for is computed with, and the result is quantised."""
    function, activation, lanes = METHODS[method], TABLE[act].apply, LANES[dtype]

    @S.prim_func
    def eltwise(
        a: S.ptr(dtype, "global"), b: S.ptr(dtype, "global"), y: S.ptr(dtype, "global"), n: S.i32, p: S.fp32, q: S.fp32,
        step_a: S.fp32, zero_a: S.fp32, step_b: S.fp32, zero_b: S.fp32, scale: S.fp32, zero: S.fp32,
    ):  # fmt: skip
        part = share(n, lanes)
        first = S.get_local_id() * part
        for at in range(first, S.min(first + part, n), lanes):
            mask = S.tail_mask(S.min(n - at, lanes), lanes)
            left = dequantised(S.vload(a + at, mask), dtype, step_a, zero_a)
            right = dequantised(S.vload(b + at, mask), dtype, step_b, zero_b)
            S.vstore(quantised(activation(function(left, right), p, q), dtype, scale, zero), y + at, mask)

    return eltwise


def _broadcast(full: list[int], part: list[int]) -> tuple[Callable[[str, str, str], Any], str, list[int]]:
    """Kernel, its name, and rows, cols and period for an operand of shape `part` that is broadcast to `full`."""
    part = [1] * (len(full) - len(part)) + part
    own = [i for i, d in enumerate(part) if d > 1]
    if any(part[i] != full[i] for i in own):
        raise Unsupported(f"the shape {part} does not broadcast to {full}")
    low, high = (own[0], own[-1] + 1) if own else (0, 0)
    if any(full[i] > 1 and part[i] == 1 for i in range(low, high)):
        raise Unsupported(f"broadcasting {part} to {full} repeats a dimension in the middle")
    outer, middle, inner = count(full[:low]), count(full[low:high]), count(full[high:])
    if inner == 1 and own:
        return _rows, "rows", [outer, middle, 1]
    return _scalars, "scalars", [outer * middle, inner, middle]


@operator("Eltwise", *ALONE)
def select(layer: Layer) -> Choice:
    method = ALONE.get(layer.type) or layer.word("method", "", ELTWISE)
    dtype = layer.dtype(*FLOATS, *QUANTISED)
    act, p, q = fused(layer)
    a, b, y = layer.input(0), layer.input(1), layer.output
    name = f"eltwise_{method}_{act}_{SHORT[dtype]}".lower()
    if dtype in QUANTISED:
        if a.shape != b.shape:
            raise Unsupported(f"quantised operands of different shapes, {list(a.shape)} and {list(b.shape)}")
        scales = [*input_scale(a), *input_scale(b), *output_scale(y)]
        return Choice(_quantised(method, act, dtype), name, [a, b, y, count(y.shape), p, q, *scales])
    if a.shape == b.shape:
        return Choice(_flat(method, act, dtype), name, [a, b, y, count(y.shape), p, q])
    if count(a.shape) != count(y.shape):
        a, b, method = b, a, SWAPPED.get(method, method)
    return _with_broadcast(method, act, dtype, (a, b, y), [p, q])


def _with_broadcast(
    method: str, act: str, dtype: str, tensors: tuple[Tensor, Tensor, Tensor], fused_values: list[float]
) -> Choice:
    a, b, y = tensors
    if count(a.shape) != count(y.shape):
        raise Unsupported(f"both operands, {list(a.shape)} and {list(b.shape)}, are smaller than the output")
    make, how, sizes = _broadcast(list(y.shape), list(b.shape))
    name = f"eltwise_{how}_{method}_{act}_{SHORT[dtype]}".lower()
    return Choice(make(method, act, dtype), name, [*tensors, *sizes, *fused_values])
