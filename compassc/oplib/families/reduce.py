"""Reduce and GlobalPool, computed in float32; the reduced axes must be neighbours."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from compassc.dsl import script as S
from compassc.oplib.layer import FLOATS, Choice, Layer, one_of, operator, split_axes
from compassc.oplib.vector import LANES, SHORT, filled, highest, lowest, narrow, wide


class Method(NamedTuple):
    """`start` is neutral for `step(acc, x, mean)`; `across` joins the lanes (None: there is no quick way);
    `finish(acc, n)` gives the result. `centred`: x - mean is what counts, so the mean is found first."""

    start: Any
    step: Callable[[Any, Any], Any]
    across: Callable[[Any, int], Any] | None
    finish: Callable[[Any, Any], Any] = lambda acc, n: acc
    centred: bool = False


def _sum(vector: Any, lanes: int) -> Any:
    return S.vrpadd(vector)[0]


METHODS: dict[str, Method] = {
    "SUM": Method(0.0, lambda acc, v: acc + v, _sum),
    "MEAN": Method(0.0, lambda acc, v: acc + v, _sum, lambda acc, n: acc / n),
    "MAX": Method("-inf", lambda acc, v: S.max(acc, v), highest),
    "MIN": Method("inf", lambda acc, v: S.min(acc, v), lowest),
    "PROD": Method(1.0, lambda acc, v: acc * v, None),
    "L1": Method(0.0, lambda acc, v: acc + S.abs(v), _sum),
    "L2": Method(0.0, lambda acc, v: acc + v * v, _sum, lambda acc, n: S.sqrt(acc)),
    "VARIANCE": Method(0.0, lambda acc, v: acc + v * v, _sum, lambda acc, n: acc / n, True),
    "UNBIASED_VARIANCE": Method(0.0, lambda acc, v: acc + v * v, _sum, lambda acc, n: acc / (n - 1.0), True),
}


@cache
def _rows(method: str, dtype: str):
    """Every row of rows x n becomes one element."""
    lanes, (start, step, joined, finish, centred) = LANES[dtype], METHODS[method]
    across = joined or highest  # rows are only done for methods with a way to join lanes

    @S.prim_func
    def reduce(x: S.ptr(dtype, "global"), y: S.ptr(dtype, "global"), rows: S.i32, n: S.i32):
        for r in range(S.get_local_id(), rows, S.get_local_size()):
            mean = S.fp32(0.0)
            if centred:
                total = filled(0.0, lanes)
                for j in range(0, n, lanes):
                    own = S.tail_mask(S.min(n - j, lanes), lanes)
                    total = total + S.vsel(wide(S.vload(x + (r * n + j), own), dtype), filled(0.0, lanes), own)
                mean = S.vrpadd(total)[0] / S.fp32(n)
            acc = filled(start, lanes)
            for i in range(0, n, lanes):
                mask = S.tail_mask(S.min(n - i, lanes), lanes)
                v = wide(S.vload(x + (r * n + i), mask), dtype)
                if centred:
                    v = v - mean
                acc = S.vsel(step(acc, v), acc, mask)
            y[r] = finish(across(acc, lanes), S.fp32(n))

    return reduce


@cache
def _columns(method: str, dtype: str):
    """outer x n x inner becomes outer x inner; the lanes are neighbours along `inner`."""
    lanes, (start, step, _, finish, centred) = LANES[dtype], METHODS[method]

    @S.prim_func
    def reduce(x: S.ptr(dtype, "global"), y: S.ptr(dtype, "global"), outer: S.i32, n: S.i32, inner: S.i32):
        blocks = S.ceildiv(inner, lanes)
        for b in range(S.get_local_id(), outer * blocks, S.get_local_size()):
            at = b % blocks * lanes
            first = b / blocks * n * inner + at
            mask = S.tail_mask(S.min(inner - at, lanes), lanes)
            mean = filled(0.0, lanes)
            if centred:
                for j in range(n):
                    mean = mean + wide(S.vload(x + (first + j * inner), mask), dtype)
                mean = mean / S.fp32(n)
            acc = filled(start, lanes)
            for i in range(n):
                v = wide(S.vload(x + (first + i * inner), mask), dtype)
                if centred:
                    v = v - mean
                acc = step(acc, v)
            S.vstore(narrow(finish(acc, S.fp32(n)), dtype), y + (b / blocks * inner + at), mask)

    return reduce


def _choose(layer: Layer, method: str, axes: list[int]) -> Choice:
    dtype = layer.dtype(*FLOATS)
    x, y = layer.input(), layer.output
    outer, n, inner = split_axes(list(x.shape), axes)
    name = f"reduce_{method}_{SHORT[dtype]}".lower()
    if inner == 1 and METHODS[method].across is not None:
        return Choice(_rows(method, dtype), f"{name}_rows", [x, y, outer, n])
    return Choice(_columns(method, dtype), f"{name}_columns", [x, y, outer, n, inner])


@operator("Reduce")
def reduce_layer(layer: Layer) -> Choice:
    return _choose(layer, layer.word("method", "", tuple(METHODS)), layer.axes())


@operator("GlobalPool")
def global_pool(layer: Layer) -> Choice:
    """Over height and width of NHWC."""
    method = {"AVG": "MEAN"}.get(word := layer.word("method", "AVG"), word)
    return _choose(layer, one_of("method", method, tuple(METHODS)), [1, 2])
