"""Kernels of images: lanes are pixels of a row for colours, and channels for windows plus weights."""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import Array
from compassc.layers.emit import requantise, wide_kind
from compassc.layers.families.images.reference import (
    Colours,
    added,
    checked_window,
    colours_of,
    image_size,
    multipliers,
    weights_of,
)
from compassc.layers.kernels import kernel
from compassc.layers.scripts import Substitutions, script
from compassc.layers.source import LANES, Kernel, KernelSource, named

HALF_ROW = 3072
"""Pixels of a row of a plane of half the size, at most; two such rows lie in LSRAM."""

TO_RGB = """
u_row = S.alloc(3106, "$kind", scope="lsram")
v_row = S.alloc(3106, "$kind", scope="lsram")
for r in range(S.get_local_id(), rows, S.get_local_size()):
    at = r % height
    luma = x + (r / height * size + at * width)
    half = width / 2
    near = x + (r / height * size + height * width + at / 2 * half)
    between = S.min(at % 2, height / 2 - 1 - at / 2)
    far = near + half * between
    for j in range(0, half, 32):
        mask = S.tail_mask(S.min(half - j, 32), 32)
        mean_u = $near_u
        mean_v = $near_v
        if between > 0:
            mean_u = $mean_u
            mean_v = $mean_v
        S.vstore(mean_u, u_row + (j + 1), mask)
        S.vstore(mean_v, v_row + (j + 1), mask)
    u_row[0] = u_row[1]
    v_row[0] = v_row[1]
    u_row[half + 1] = u_row[half]
    v_row[half + 1] = v_row[half]
    for j in range(0, half, 32):
        mask = S.tail_mask(S.min(half - j, 32), 32)
        u = S.vload(u_row + (j + 1), mask, lanes=32) * $three
        v = S.vload(v_row + (j + 1), mask, lanes=32) * $three
        c1 = $quarter_u0 - before1
        c2 = $quarter_v0 - before2
        c0 = $luma0 - before0
        $even
        c1 = $quarter_u1 - before1
        c2 = $quarter_v1 - before2
        c0 = $luma1 - before0
        $odd
"""


def _coefficients(c: Colours, real: bool) -> dict[str, float | int]:
    given = {f"m{i}{j}": c.matrix[i, j] for i in range(3) for j in range(3)}
    given |= {f"before{i}": c.before[i] for i in range(3)}
    given |= {f"behind{i}": c.behind[i] * (1 if real else 1 << c.shift) for i in range(3)}
    return {n: float(v) if real else int(v) for n, v in given.items()}


def _wide(at: str, dtype: str, real: bool, zero: int, stride: int = 1) -> str:
    raw = f'wide(S.vload({at}, mask, lanes={LANES}{f", stride={stride}" if stride > 1 else ""}), "{dtype}")'
    if real:
        return raw if dtype == "float32" or dtype.endswith("float16") else f'S.cast({raw}, "float32")'
    return f"{raw} + {zero}" if zero else raw


def _stored(value: str, y: Tensor) -> str:
    """A whole number as it is stored: from 0 to 255, less the zero point, in the range of the type."""
    moved = f"clamp({value}, 0, 255)" + (" - zero" if y.scalar_zero else "")
    fits = y.integer.low <= -y.scalar_zero and 255 - y.scalar_zero <= y.integer.high
    return moved if fits else f"clamp({moved}, {y.integer.low}, {y.integer.high})"


def _check_colours(layer: Layer, x: Tensor, y: Tensor, c: Colours) -> None:
    wide_kind(x)
    if wide_kind(y) == "int32" and not layer.is_quantised:
        raise LayerError(f"{x.dtype} to {y.dtype} has no kernel")
    if layer.is_quantised:
        largest = max(abs(x.low + x.scalar_zero), abs(x.high + x.scalar_zero)) + int(np.abs(c.before).max())
        most = largest * int(np.abs(c.matrix).sum(1).max()) + (int(np.abs(c.behind).max()) + 1 << c.shift)
        if most + sum(abs(int(v)) for v in added(c)) >= 2**31:
            raise LayerError(f"sums of up to {most} do not fit 32 bits, which no kernel here computes with")


@kernel("YuvToRgb")
def yuv_to_rgb(layer: Layer) -> Kernel:
    x, y, c = layer.input, layer.output, colours_of(layer)
    n, h, w = image_size(x.count, y.shape)
    _check_colours(layer, x, y, c)
    if w // 2 > HALF_ROW:
        raise LayerError(f"rows of {w} pixels do not fit LSRAM; it takes {2 * HALF_ROW}")
    real, zero = not layer.is_quantised, x.scalar_zero if layer.is_quantised else 0

    under = "height / 2 * half + "

    def taken(row: str, offset: str) -> str:
        return _wide(f"{row} + ({offset}j)", x.dtype, real, zero)

    def both(name: str, offset: str) -> str:
        total = f"mean_{name} + {taken('far', offset)}"
        return f"S.rint(({total}) * 0.5)" if real else f"requantised({total}, 1, 1)"

    def quarter(name: str, k: int) -> str:
        total = f"S.vload({name}_row + (j + {2 * k}), mask, lanes=32) + {name}"
        if not real:
            return f"requantised({total}, 1, 2)"
        # the outer columns are not between two others
        own, outer = f"S.vload({name}_row + (j + 1), mask, lanes=32)", "half - 1" if k else "0"
        return f"S.vsel({own}, S.rint(({total}) * 0.25), S.vload(counting, lanes=32) + j == {outer})"

    words: Substitutions = {
        "kind": "float32" if real else "int32",
        "three": "3.0" if real else "3",
        "near_u": taken("near", ""),
        "near_v": taken("near", under),
        "mean_u": both("u", ""),
        "mean_v": both("v", under),
        "even": _colours(c, real, y, 0),
        "odd": _colours(c, real, y, 1),
    }
    for k in (0, 1):
        words |= {f"quarter_{p}{k}": quarter(p, k) for p in "uv"}
        words[f"luma{k}"] = _wide(f"luma + (j * 2 + {k})", x.dtype, real, zero, 2)
    given: dict[str, Array | float | int] = {**_coefficients(c, real)}
    if real:
        given |= {
            "half_step": float(c.half),
            "factor": float(2.0**-c.shift),
            "counting": np.arange(LANES, dtype=np.int32),
        }
    else:
        given |= {"half_step": c.half, "shift": c.shift}
    if not real and y.scalar_zero:
        given["zero"] = y.scalar_zero
    return script(TO_RGB, None, words, x=x, y=y, rows=n * h, height=h, width=w, size=h * w * 3 // 2, **given)


def _colours(c: Colours, real: bool, y: Tensor, odd: int) -> list[str]:
    """Lines that store the three colours of every other pixel."""
    lines = []
    for i in range(3):
        total = f"c0 * m{i}0 + c1 * m{i}1 + c2 * m{i}2 + half_step"
        if real:
            value = f"clamp(S.rint(({total}) * factor + behind{i}), 0.0, 255.0)"
        else:
            value = _stored(f"requantised({total} + behind{i}, 1, shift)", y)
        lines.append(
            f'S.vstore(narrow({value}, "{y.dtype}"), y + ((r * width + j * 2 + {odd}) * 3 + {i}), mask, stride=6)'
        )
    return lines


TO_YUV = """
for r in range(S.get_local_id(), rows, S.get_local_size()):
    n = r / height
    at = r % height
    for j in range(0, width, 32):
        mask = S.tail_mask(S.min(width - j, 32), 32)
        first = x + (r * width + j) * 3
        $luma
    if at % 2 == 0:
        half = width / 2
        for j in range(0, half, 32):
            mask = S.tail_mask(S.min(half - j, 32), 32)
            first = x + (r * width + j * 2) * 3
            $chroma
"""


@kernel("RgbToYuv")
def rgb_to_yuv(layer: Layer) -> Kernel:
    x, y, c = layer.input, layer.output, colours_of(layer)
    n, h, w = image_size(y.count, x.shape)
    _check_colours(layer, x, y, c)
    real, zero = not layer.is_quantised, x.scalar_zero if layer.is_quantised else 0

    def plane(i: int, stride: int, target: str) -> list[str]:
        total = " + ".join(f"c{k} * m{i}{k}" for k in range(3)) + f" + add{i}"
        value = (
            f"clamp(S.floor({total}) * factor, 0.0, 255.0)" if real else _stored(f"requantised({total}, 1, shift)", y)
        )
        return [f'S.vstore(narrow({value}, "{y.dtype}"), y + (n * size + {target} + j), mask)']

    def loads(stride: int) -> list[str]:
        return [f"c{k} = {_wide(f'first + {k}', x.dtype, real, zero, stride)}" for k in range(3)]

    given = {f"m{i}{k}": c.matrix[i, k] for i in range(3) for k in range(3)}
    given |= {f"add{i}": v for i, v in enumerate(added(c))}
    numbers: dict[str, float | int] = {k: float(v) if real else int(v) for k, v in given.items()}
    numbers |= {"factor": float(2.0**-c.shift)} if real else {"shift": c.shift}
    if not real and y.scalar_zero:
        numbers["zero"] = y.scalar_zero
    under = "height * width + at / 2 * half"
    words: Substitutions = {
        "luma": [*loads(3), *plane(0, 3, "at * width")],
        "chroma": [*loads(6), *plane(1, 6, under), *plane(2, 6, f"{under} + height / 2 * half")],
    }
    return script(TO_YUV, None, words, x=x, y=y, rows=n * h, height=h, width=w, size=h * w * 3 // 2, **numbers)


EXTREME = """
for p in range(S.get_local_id(), points, S.get_local_size()):
    ox = p % across
    oy = p / across % down
    image = x + p / (down * across) * image_size
    for j in range(0, channels, 32):
        mask = S.tail_mask(S.min(channels - j, 32), 32)
        acc = S.vbcast($start, lanes=32)
        for ky in range(kernel_y):
            iy = oy * stride_y + ky * dilation_y - pad_y
            if iy >= 0 and iy < height:
                for kx in range(kernel_x):
                    ix = ox * stride_x + kx * dilation_x - pad_x
                    if ix >= 0 and ix < width:
                        v = load(image + ((iy * width + ix) * channels + j), mask, "$dtype", 32)$moved
                        under = S.vload(weights + ((ky * kernel_x + kx) * padded + j), lanes=32)
                        acc = S.$how(acc, v $sign under)
        $body
        S.vstore(narrow($result, "$to"), y + (p * channels + j), mask)
"""


@kernel("Dilation", "Erosion")
def extreme(layer: Layer) -> Kernel:
    x, y, window, k = layer.input, layer.output, checked_window(layer), KernelSource()
    erosion, kind, weights = layer.type == "Erosion", wide_kind(x), weights_of(layer)
    if (kind == "int32") != layer.is_quantised or wide_kind(y) != kind:
        raise LayerError(f"{x.dtype} to {y.dtype} has no kernel")
    words: Substitutions = {
        "dtype": x.dtype,
        "to": y.dtype,
        "how": "min" if erosion else "max",
        "sign": "-" if erosion else "+",
        "moved": "",
        "body": [],
        "result": "acc",
    }
    given: dict[str, int] = {}
    if layer.is_quantised:
        (scale, of_x, of_w), shift = multipliers(layer)
        added_weights = weights.astype(np.int64) * of_w
        ends = [(v + x.scalar_zero) * of_x for v in (x.low, x.high)]
        most = int(np.abs(added_weights).max())
        acc = named("acc", "int32", min(ends) - most, max(ends) + most)
        result = requantise(k, acc, scale, shift, y.scalar_zero, y.low, y.high)
        words |= {
            "moved": " * of_x" if not x.scalar_zero else " * of_x + offset",
            "body": k.body,
            "result": result.name,
        }
        words["start"] = f"S.i32({2**31 - 1 if erosion else -(2**31) + 1})"
        given = {"of_x": of_x} | ({"offset": x.scalar_zero * of_x} if x.scalar_zero else {})
        table = added_weights.astype(np.int32)
    else:
        words["start"] = f'S.fp32("{"" if erosion else "-"}inf")'
        table = weights.astype(np.float32)
    padded = -(-x.shape[3] // LANES) * LANES
    table = np.pad(table, ((0, 0), (0, 0), (0, padded - x.shape[3])))
    for i, a in enumerate("yx"):
        given |= {
            f"kernel_{a}": window.kernel[i],
            f"stride_{a}": window.stride[i],
            f"dilation_{a}": window.dilation[i],
            f"pad_{a}": window.pads[i][0],
        }
    return script(
        EXTREME,
        k,
        words,
        x=x,
        weights=table.reshape(-1),
        y=y,
        points=y.shape[0] * y.shape[1] * y.shape[2],
        down=y.shape[1],
        across=y.shape[2],
        height=x.shape[1],
        width=x.shape[2],
        channels=x.shape[3],
        image_size=x.shape[1] * x.shape[2] * x.shape[3],
        padded=padded,
        **given,
    )
