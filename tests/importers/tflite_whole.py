"""What runtimes of TFLite compute of integers with scales, in NumPy and Python's integers: `INTEGERS`, by operator."""

from __future__ import annotations

import math

import numpy as np

from tests.importers.tflite_reals import REAL, _matmul, away, convolved, seen_by_pool

INTEGERS = {}


def integers(*names):
    def declare(function):
        INTEGERS.update(dict.fromkeys(names, function))
        return function

    return declare


def along(values, tensor, rank):
    shape = [1] * rank
    if np.size(values) > 1:
        shape[tensor.axis] = -1
    return np.reshape(values, shape)


def multiplied(x, factor, way, bits=31):
    """Integers times a real number as runtimes do it: by a multiplier of some bits. `way`: with one rounding, or with a second one
    of the high word, whose halves go up or away from zero."""
    made = []
    for value, real in zip(np.ravel(x).tolist(), np.broadcast_to(factor, np.shape(x)).ravel().tolist(), strict=True):
        fraction, exponent = math.frexp(real)
        whole = math.floor(fraction * (1 << 31) + 0.5)
        if bits == 15:
            whole = min((whole + (1 << 15)) >> 16, 0x7FFF)
        if way == "once":
            shift = bits - exponent
            made.append((value * whole + (1 << (shift - 1))) >> shift)
            continue
        high = ((value << max(exponent, 0)) * whole + (1 << 30)) >> 31
        shift = max(-exponent, 0)
        half = (1 << shift) >> 1
        made.append((high + half - (way == "away" and high < 0 and shift > 0)) >> shift)
    return np.asarray(made, np.int64).reshape(np.shape(x))


def sums_of(sums, bias, factor, out, way, bits=31):
    return multiplied(sums + (0 if bias is None else bias.astype(np.int64)), factor, way, bits) + int(out.zero[0])


@integers("CONV_2D", "DEPTHWISE_CONV_2D")
def _int_conv(arrays, infos, out, options):
    x, w, bias = (*arrays, None)[:3]
    operator = "DEPTHWISE_CONV_2D" if "depth_multiplier" in options else "CONV_2D"
    wide = x.astype(np.int64) - infos[0].zero[0]
    filters = w.astype(np.int64) - along(infos[1].zero, infos[1], 4)
    sums = convolved(wide, filters, options, operator, 0)
    factors = np.resize(infos[1].scale, sums.shape[-1]) * infos[0].scale[0] / out.scale[0]
    if out.dtype.itemsize > 1:
        return sums_of(sums, bias, factors, out, "once", 15)
    return sums_of(sums, bias, factors, out, "up" if operator == "CONV_2D" else "away")


@integers("FULLY_CONNECTED")
def _int_dense(arrays, infos, out, options):
    x, w, bias = (*arrays, None)[:3]
    wide, filters = x.astype(np.int64) - infos[0].zero[0], w.astype(np.int64) - along(infos[1].zero, infos[1], 2)
    sums = wide.reshape(-1, w.shape[1]) @ filters.T
    factors = np.resize(infos[1].scale, sums.shape[-1]) * infos[0].scale[0] / out.scale[0]
    made = sums_of(sums, bias, factors, out, "up" if out.dtype.itemsize == 1 else "once")
    return made.reshape(*x.shape[:-1], w.shape[0]) if options.get("keep_num_dims") else made


@integers("BATCH_MATMUL")
def _int_matmul(arrays, infos, out, options):
    x, y = (a.astype(np.int64) - t.zero[0] for a, t in zip(arrays, infos, strict=True))
    return sums_of(
        _matmul(x, y, options), None, float(infos[0].scale[0] * infos[1].scale[0] / out.scale[0]), out, "away"
    )


def _sum(sign):
    def compute(arrays, infos, out, options):
        """With 15 or 20 bits behind the point, in twice the larger of both scales."""
        left = 20 if out.dtype.itemsize == 1 else 15
        most = 2 * max(float(t.scale[0]) for t in infos)
        x, y = (
            multiplied((a.astype(np.int64) - t.zero[0]) << left, float(t.scale[0]) / most, "away")
            for a, t in zip(arrays, infos, strict=True)
        )
        return multiplied(x + sign * y, most / ((1 << left) * float(out.scale[0])), "away") + int(out.zero[0])

    return compute


INTEGERS.update({"ADD": _sum(1), "SUB": _sum(-1)})


@integers("MUL")
def _int_mul(arrays, infos, out, options):
    x, y = (a.astype(np.int64) - t.zero[0] for a, t in zip(arrays, infos, strict=True))
    first, second, step = (np.float32(t.scale[0]) for t in (*infos, out))
    return multiplied(x * y, float(first * second / step), "away") + int(out.zero[0])


@integers("AVERAGE_POOL_2D")
def _int_average_pool(arrays, infos, out, options):
    """Of the integers as they are, halves away from zero."""
    return away(np.nanmean(seen_by_pool(arrays[0].astype(np.float64), options, np.nan), (3, 4)))


@integers("QUANTIZE")
def _int_requantise(arrays, infos, out, options):
    x = arrays[0].astype(np.int64) - infos[0].zero[0]
    way = "up" if infos[0].dtype.itemsize == out.dtype.itemsize == 1 else "away"
    return multiplied(x, float(infos[0].scale[0] / out.scale[0]), way) + int(out.zero[0])


def _limits(most):
    def compute(arrays, infos, out, options):
        x = arrays[0].astype(np.int64) - infos[0].zero[0]
        made = multiplied(x, float(infos[0].scale[0] / out.scale[0]), "away") + int(out.zero[0])
        return np.clip(made, int(out.zero[0]), out.zero[0] + away(most / out.scale[0]))

    return compute


INTEGERS.update({"RELU": _limits(np.inf), "RELU6": _limits(6.0)})


@integers("LEAKY_RELU")
def _int_leaky(arrays, infos, out, options):
    x = arrays[0].astype(np.int64) - infos[0].zero[0]
    own, step, alpha = (np.float32(v) for v in (infos[0].scale[0], out.scale[0], options["alpha"]))
    above, below = (multiplied(x, float(f), "away") for f in (own / step, own * alpha / step))
    return np.where(x < 0, below, above) + int(out.zero[0])


@integers("TRANSPOSE_CONV")
def _int_transposed(arrays, infos, out, options):
    shape, w, x, bias = (*arrays, None)[:4]
    numbers = w.astype(np.int64) - along(infos[1].zero, infos[1], w.ndim)
    sums = REAL["TRANSPOSE_CONV"](shape, numbers, x.astype(np.int64) - infos[2].zero[0], options=options)
    factors = np.resize(infos[1].scale, sums.shape[-1]) * infos[2].scale[0] / out.scale[0]
    return sums_of(sums, bias, factors, out, *(("away",) if out.dtype.itemsize == 1 else ("once", 15)))


def ends(size, result, options):
    """For each place of a result both places that it lies between, and its distance from the first, in 1/1024."""
    corners = options.get("align_corners") and result > 1
    inner, outer = (size - 1, result - 1) if corners else (size, result)
    step = (1024 * inner + outer // 2) // outer
    for place in range(result):
        at = place * step + (step // 2 - 512 if options.get("half_pixel_centers") else 0)
        low = min(max(int(at / 1024), 0), size - 1)
        yield low, min(max(int((at + 1023) / 1024), 0), size - 1), at - 1024 * low


@integers("RESIZE_BILINEAR")
def _int_bilinear(arrays, infos, out, options):
    """Four corners with their shares of 2^20, halves away from zero."""
    x, size = arrays[0].astype(np.int64), arrays[1]
    made = np.zeros((x.shape[0], *size, x.shape[3]), np.int64)
    for i, (top, bottom, down) in enumerate(ends(x.shape[1], int(size[0]), options)):
        for j, (left, right, along) in enumerate(ends(x.shape[2], int(size[1]), options)):
            upper = x[:, top, left] * (1024 - along) + x[:, top, right] * along
            lower = x[:, bottom, left] * (1024 - along) + x[:, bottom, right] * along
            total = upper * (1024 - down) + lower * down
            made[:, i, j] = np.sign(total) * ((np.abs(total) + (1 << 19)) >> 20)
    return made


def fixed_point(real, bits=15):
    """A number as (whole, exponent): whole * 2^(exponent - bits)."""
    fraction, exponent = math.frexp(float(real))
    return min((math.floor(fraction * (1 << 31) + 0.5) + (1 << 15)) >> 16, (1 << bits) - 1), exponent


def word(x):
    return max(-(1 << 15), min((1 << 15) - 1, x))


def halved(product):
    """The high half of twice a product of words, to the nearest."""
    return word(int((product + ((1 << 14) if product >= 0 else 1 - (1 << 14))) / (1 << 15)))


def shifted_right(x, by):
    """x / 2^by, halves away from zero."""
    return x if by <= 0 else (1 if x >= 0 else -1) * ((abs(x) + (1 << (by - 1))) >> by)


@integers("HARD_SWISH")
def _int_hard_swish(arrays, infos, out, options):
    """With words that have 7 bits behind the point, each step rounded."""
    fine = np.float32(infos[0].scale[0]) * np.float32(1 / 128)
    own, shift = fixed_point(np.float32(fine / np.float32(out.scale[0])))
    gate, more = fixed_point(np.float32(fine / np.float32(3 / 32768)))

    def one(q):
        x = (int(q) - int(infos[0].zero[0])) * 128
        opened = halved(word(x << max(more - 1, 0)) * gate)
        opened = word(opened * 2) if more > 0 else shifted_right(opened, -more)
        half = (opened + (1 << 15)) >> 1
        return shifted_right(word(int(half * halved(x * own) / (1 << 15))), -shift) + int(out.zero[0])

    table = {q: one(q) for q in np.unique(arrays[0]).tolist()}
    return np.vectorize(table.__getitem__, otypes=[np.int64])(arrays[0])
