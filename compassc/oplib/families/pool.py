"""Pooling: windows over NHWC images; the lanes are channels."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from compassc.dsl import script as S
from compassc.oplib.layer import FLOATS, Choice, Layer, Unsupported, operator
from compassc.oplib.vector import LANES, SHORT, filled, narrow, wide
from compassc.oplib.window import window


class Method(NamedTuple):
    """`start` is neutral for `step(acc, x)`; `finish(acc, cells)` gives the result. `whole`: int8 is possible, too."""

    start: Any
    step: Callable[[Any, Any], Any]
    finish: Callable[[Any, Any], Any] = lambda acc, cells: acc


METHODS: dict[str, Method] = {
    "MAX": Method("-inf", lambda acc, v: S.max(acc, v)),
    "AVG": Method(0.0, lambda acc, v: acc + v, lambda acc, cells: acc / cells),
    "L1": Method(0.0, lambda acc, v: acc + S.abs(v)),
    "L2": Method(0.0, lambda acc, v: acc + v * v, lambda acc, cells: S.sqrt(acc)),
}
WHOLE = ("MAX", "AVG")
"""Methods for int8; the average is rounded half to even."""


@cache
def _kernel(method: str, dtype: str):
    lanes, (start, step, finish) = LANES[dtype], METHODS[method]
    rounded = S.rint if dtype == "int8" and method == "AVG" else lambda v: v

    @S.prim_func
    def pool(
        x: S.ptr(dtype, "global"), y: S.ptr(dtype, "global"), n: S.i32, h: S.i32, w: S.i32, c: S.i32, oh: S.i32,
        ow: S.i32, kh: S.i32, kw: S.i32, sy: S.i32, sx: S.i32, dy: S.i32, dx: S.i32, pt: S.i32, pl: S.i32, area: S.i32,
    ):  # fmt: skip
        for at in range(S.get_local_id(), n * oh * ow, S.get_local_size()):
            ox = at % ow
            oy = at / ow % oh
            image = at / (ow * oh)
            for o in range(0, c, lanes):
                mask = S.tail_mask(S.min(c - o, lanes), lanes)
                acc = filled(start, lanes)
                inside = S.i32(0)
                for k in range(kh * kw):
                    iy = oy * sy + k / kw * dy - pt
                    ix = ox * sx + k % kw * dx - pl
                    if iy >= 0 and iy < h and ix >= 0 and ix < w:
                        acc = step(acc, wide(S.vload(x + (((image * h + iy) * w + ix) * c + o), mask), dtype))
                        inside += 1
                cells = S.fp32(area if area > 0 else inside)
                S.vstore(narrow(rounded(finish(acc, cells)), dtype), y + (at * c + o), mask)

    return pool


@operator("Pooling")
def select(layer: Layer) -> Choice:
    method = layer.word("method", "", tuple(METHODS))
    dtype = layer.dtype(*FLOATS, *(("int8",) if method in WHOLE else ()))
    at = window(layer)
    if at.c != layer.output.shape[3]:
        raise Unsupported(f"{at.c} input channels, {layer.output.shape[3]} output channels")
    area = at.kh * at.kw if layer.flag("count_include_pad", True) else 0
    return Choice(
        _kernel(method, dtype), f"pool_{method}_{SHORT[dtype]}".lower(), [layer.input(), layer.output, *at, area]
    )
