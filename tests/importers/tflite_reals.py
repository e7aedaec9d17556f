"""What TFLite's operators compute of real numbers, in NumPy: `REAL`, by operator."""

from __future__ import annotations

import math

import numpy as np

REAL = {}


def real(*names):
    def declare(function):
        REAL.update(dict.fromkeys(names, function))
        return function

    return declare


def away(x):
    """The nearest integers, halves away from zero."""
    return np.trunc(x + np.copysign(0.5, x))


# -- element by element

ELEMENTWISE = {
    "ABS": np.abs,
    "CEIL": np.ceil,
    "COS": np.cos,
    "EXP": np.exp,
    "FLOOR": np.floor,
    "LOG": np.log,
    "NEG": np.negative,
    "ROUND": np.rint,
    "RSQRT": lambda x: 1 / np.sqrt(x),
    "SIGN": np.sign,
    "SIN": np.sin,
    "SQRT": np.sqrt,
    "SQUARE": np.square,
    "ZEROS_LIKE": np.zeros_like,
    "LOGICAL_NOT": np.logical_not,
    "RELU": lambda x: np.maximum(x, 0),
    "RELU6": lambda x: np.clip(x, 0, 6),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
    "RELU_0_TO_1": lambda x: np.clip(x, 0, 1),
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)),
    "TANH": np.tanh,
    "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "ELU": lambda x: np.where(x < 0, np.expm1(x), x),
    "DEQUANTIZE": lambda x: x,
    "QUANTIZE": lambda x: x,
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "FLOOR_DIV": np.floor_divide,
    "FLOOR_MOD": np.mod,
    "POW": np.power,
    "EQUAL": np.equal,
    "SQUARED_DIFFERENCE": lambda x, y: np.square(x - y),
    "NOT_EQUAL": np.not_equal,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
    "LOGICAL_AND": np.logical_and,
    "LOGICAL_OR": np.logical_or,
    "BITWISE_XOR": np.bitwise_xor,
    "RIGHT_SHIFT": np.right_shift,
    "ADD_N": lambda *xs: sum(xs),
    "PRELU": lambda x, slope: np.where(x < 0, x * slope, x),
    "SELECT_V2": np.where,
    "CAST": lambda x: x,
}
for _name, _function in ELEMENTWISE.items():
    REAL[_name] = lambda *xs, f=_function, **rest: f(*xs)


@real("DIV")
def _div(x, y, **rest):
    return np.trunc(x / y) if x.dtype.kind in "iu" else x / y


@real("SELECT")
def _select(c, x, y, **rest):
    return np.where(c.reshape(c.shape + (1,) * (x.ndim - c.ndim)), x, y)


@real("LEAKY_RELU")
def _leaky(x, options, **rest):
    return np.where(x < 0, x * options["alpha"], x)


@real("GELU")
def _gelu(x, options, **rest):
    if options["approximate"]:
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))


@real("SOFTMAX")
def _softmax(x, options, **rest):
    e = np.exp(options["beta"] * (x - x.max(-1, keepdims=True)))
    return e / e.sum(-1, keepdims=True)


@real("LOG_SOFTMAX")
def _log_softmax(x, **rest):
    wide = x - x.max(-1, keepdims=True)
    return wide - np.log(np.exp(wide).sum(-1, keepdims=True))


@real("L2_NORMALIZATION")
def _l2(x, **rest):
    return x / np.maximum(np.sqrt(np.square(x).sum(-1, keepdims=True)), 1e-6)


@real("LOCAL_RESPONSE_NORMALIZATION")
def _lrn(x, options, **rest):
    r, channels = options["radius"], x.shape[-1]
    sums = [np.square(x[..., max(0, c - r) : c + r + 1]).sum(-1) for c in range(channels)]
    return x / (options["bias"] + options["alpha"] * np.stack(sums, -1)) ** options["beta"]


@real("FAKE_QUANT")
def _fake_quant(x, options, **rest):
    most = (1 << options["num_bits"]) - 1
    scale = (options["max"] - options["min"]) / most
    zero = np.clip(away(-options["min"] / scale), 0, most)
    return (np.clip(away(x / scale) + zero, 0, most) - zero) * scale


# -- windows


def windows(x, kernel, strides, dilations, padding, fill=0.0):
    """What a window sees: [N, positions..., kernel..., C]; padded by `fill`."""
    sizes, pads = x.shape[1:-1], []
    for size, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
        reach = (k - 1) * d + 1
        total = max(0, (-(-size // s) - 1) * s + reach - size) if padding == 0 else 0
        pads.append((total // 2, total - total // 2))
    wide = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=fill)
    counts = [
        (n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(wide.shape[1:-1], kernel, strides, dilations, strict=True)
    ]
    index = [
        np.arange(c)[:, None] * s + np.arange(k)[None] * d
        for c, s, k, d in zip(counts, strides, kernel, dilations, strict=True)
    ]
    m, at = len(kernel), []
    for j, i in enumerate(index):
        at.append(i.reshape([n if a == j else 1 for n in i.shape for a in range(m)]))
    return wide[(slice(None), *at)]


def spatial(options):
    return (options["stride_h"], options["stride_w"]), (
        options.get("dilation_h_factor", 1),
        options.get("dilation_w_factor", 1),
    )


def convolved(x, w, options, operator, fill=0.0):
    """Sums of products; weights as the operator has them."""
    depthwise = operator == "DEPTHWISE_CONV_2D"
    kernel = w.shape[1:3]
    seen = windows(x, kernel, *spatial(options), options["padding"], fill)
    outputs = w.shape[3] if depthwise else w.shape[0]
    filters = w[0].transpose(2, 0, 1)[..., None] if depthwise else w
    groups = x.shape[3] // filters.shape[3]
    parts = []
    for g in range(groups):
        inner, own = filters.shape[3], outputs // groups
        part = seen[..., g * inner : (g + 1) * inner]
        parts.append(np.tensordot(part, filters[g * own : (g + 1) * own], ([3, 4, 5], [1, 2, 3])))
    return np.concatenate(parts, -1)


@real("CONV_2D", "DEPTHWISE_CONV_2D")
def _conv(x, w, bias=None, options=None, operator="", **rest):
    made = convolved(x, w, options, operator)
    return made if bias is None else made + bias


@real("CONV_3D")
def _conv_3d(x, w, bias=None, options=None, **rest):
    strides = [options[f"stride_{a}"] for a in "dhw"]
    seen = windows(x, w.shape[:3], strides, (1, 1, 1), options["padding"])
    return np.tensordot(seen, w, ([4, 5, 6, 7], [0, 1, 2, 3])) + (0 if bias is None else bias)


@real("TRANSPOSE_CONV")
def _transposed(shape, w, x, bias=None, options=None, **rest):
    (sh, sw), _ = spatial(options)
    full = np.zeros(
        (x.shape[0], x.shape[1] * sh + w.shape[1], x.shape[2] * sw + w.shape[2], w.shape[0]), np.result_type(x, w)
    )
    for i in range(x.shape[1]):
        for j in range(x.shape[2]):
            full[:, i * sh : i * sh + w.shape[1], j * sw : j * sw + w.shape[2]] += np.einsum(
                "nc,ohwc->nhwo", x[:, i, j], w
            )
    begin = [
        max(0, (n - 1) * s + k - int(o)) // 2 if options["padding"] == 0 else 0
        for n, s, k, o in zip(x.shape[1:3], (sh, sw), w.shape[1:3], shape[1:3], strict=True)
    ]
    made = full[:, begin[0] : begin[0] + shape[1], begin[1] : begin[1] + shape[2]]
    return made if bias is None else made + bias


def seen_by_pool(x, options, fill):
    strides, _ = spatial(options)
    return windows(x, (options["filter_height"], options["filter_width"]), strides, (1, 1), options["padding"], fill)


@real("MAX_POOL_2D")
def _max_pool(x, options, **rest):
    return seen_by_pool(x, options, -np.inf).max((3, 4))


@real("AVERAGE_POOL_2D")
def _average_pool(x, options, **rest):
    return np.nanmean(seen_by_pool(x, options, np.nan), (3, 4))


@real("L2_POOL_2D")
def _l2_pool(x, options, **rest):
    return np.sqrt(np.nanmean(seen_by_pool(np.square(x), options, np.nan), (3, 4)))


@real("FULLY_CONNECTED")
def _dense(x, w, bias=None, options=None, **rest):
    made = x.reshape(-1, w.shape[1]) @ w.T + (0 if bias is None else bias)
    return made.reshape(*x.shape[:-1], w.shape[0]) if (options or {}).get("keep_num_dims") else made


@real("BATCH_MATMUL")
def _matmul(x, y, options, **rest):
    return (x.swapaxes(-1, -2) if options.get("adj_x") else x) @ (y.swapaxes(-1, -2) if options.get("adj_y") else y)


@real("UNIDIRECTIONAL_SEQUENCE_LSTM")
def _lstm(x, *weights, options, **rest):
    inner, recurrent, biases = weights[:4], weights[4:8], weights[11:15]
    sequence = x if options["time_major"] else x.swapaxes(0, 1)
    h = c = np.zeros((sequence.shape[1], recurrent[0].shape[0]))
    found = []
    for step in sequence:
        i, f, g, o = (step @ w.T + h @ r.T + b for w, r, b in zip(inner, recurrent, biases, strict=True))
        c = 1 / (1 + np.exp(-f)) * c + 1 / (1 + np.exp(-i)) * np.tanh(g)
        h = np.tanh(np.clip(c, -10, 10)) / (1 + np.exp(-o))
        found.append(h)
    return np.stack(found, 0 if options["time_major"] else 1)


# -- movement


def inputs_only(function):
    return lambda *xs, options, out, outs, operator: function(*xs)


for _name, _function in {
    "EXPAND_DIMS": lambda x, a: np.expand_dims(x, tuple(a)),
    "TRANSPOSE": np.transpose,
    "PAD": np.pad,
    "PADV2": lambda x, p, v: np.pad(x, p, constant_values=v),
    "TILE": np.tile,
    "BROADCAST_TO": np.broadcast_to,
    "EMBEDDING_LOOKUP": lambda i, x: x[i],
    "GATHER_ND": lambda x, i: x[tuple(np.moveaxis(i, -1, 0))],
    "REVERSE_V2": lambda x, a: np.flip(x, tuple(a)),
    "FILL": np.full,
    "RANK": np.ndim,
    "SLICE": lambda x, b, s: x[tuple(slice(i, None if n == -1 else i + n) for i, n in zip(b, s, strict=True))],
}.items():
    REAL[_name] = inputs_only(_function)
for _name, _function in {
    "RESHAPE": lambda x, *s, o: x.reshape(s[0] if s else o["new_shape"]),
    "SQUEEZE": lambda x, o: x.squeeze(tuple(o["squeeze_dims"])),
    "CONCATENATION": lambda *xs, o: np.concatenate(xs, o["axis"]),
    "PACK": lambda *xs, o: np.stack(xs, o["axis"]),
    "UNPACK": lambda x, o: list(np.moveaxis(x, o["axis"], 0)),
    "SPLIT": lambda a, x, o: np.split(x, o["num_splits"], int(a)),
    "MIRROR_PAD": lambda x, p, o: np.pad(x, p, ("reflect", "symmetric")[o["mode"]]),
    "GATHER": lambda x, i, o: (
        np.stack([np.take(v, k, o["axis"] - 1) for v, k in zip(x, i, strict=True)])
        if o["batch_dims"]
        else np.take(x, i, o["axis"])
    ),
    "SHAPE": lambda x, o: np.asarray(x.shape),
    "ARG_MAX": lambda x, a, o: x.argmax(int(np.reshape(a, -1)[0])),
    "ONE_HOT": lambda i, d, on, off, o: np.where(i[:, None] == np.arange(d), on, off),
}.items():
    REAL[_name] = lambda *xs, options, f=_function, **rest: f(*xs, o=options)


@real("SPLIT_V")
def _split_v(x, sizes, axis, outs, **rest):
    return np.split(x, np.cumsum([t.shape[int(axis)] for t in outs])[:-1], int(axis))


@real("STRIDED_SLICE")
def _strided_slice(x, begin, end, strides, options, **rest):
    at = []
    for i, (b, e, s) in enumerate(zip(begin, end, strides, strict=True)):
        masked = {
            k: options.get(f"{k}_mask", 0) >> i & 1 for k in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
        }
        if masked["ellipsis"]:
            at.append(...)
        elif masked["new_axis"]:
            at.append(None)
        elif masked["shrink_axis"]:
            at.append(int(b))
        else:
            at.append(slice(None if masked["begin"] else b, None if masked["end"] else e, s))
    return x[tuple(at)]


@real("SCATTER_ND")
def _scatter(index, updates, shape, **rest):
    made = np.zeros(shape, updates.dtype)
    np.add.at(made, tuple(np.moveaxis(index, -1, 0)), updates)
    return made


@real("REVERSE_SEQUENCE")
def _reverse_sequence(x, lengths, **rest):
    return np.stack([np.concatenate([row[:n][::-1], row[n:]]) for row, n in zip(x, lengths, strict=True)])


@real("TOPK_V2")
def _topk(x, k, **rest):
    order = np.argsort(-x, -1, kind="stable")[..., : int(k)]
    return [np.take_along_axis(x, order, -1), order]


@real("DEPTH_TO_SPACE")
def _depth_to_space(x, options, **rest):
    n, h, w, c = x.shape
    b = options["block_size"]
    return x.reshape(n, h, w, b, b, -1).transpose(0, 1, 3, 2, 4, 5).reshape(n, h * b, w * b, c // b**2)


@real("SPACE_TO_DEPTH")
def _space_to_depth(x, options, **rest):
    n, h, w, c = x.shape
    b = options["block_size"]
    return x.reshape(n, h // b, b, w // b, b, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, h // b, w // b, c * b**2)


@real("SPACE_TO_BATCH_ND")
def _space_to_batch(x, block, pads, **rest):
    wide = np.pad(x, [(0, 0), *pads, (0, 0)])
    return np.concatenate([wide[:, i :: block[0], j :: block[1]] for i in range(block[0]) for j in range(block[1])])


@real("BATCH_TO_SPACE_ND")
def _batch_to_space(x, block, crops, **rest):
    n = x.shape[0] // block.prod()
    made = np.zeros((n, x.shape[1] * block[0], x.shape[2] * block[1], x.shape[3]), x.dtype)
    for i in range(block[0]):
        for j in range(block[1]):
            start = (i * block[1] + j) * n
            made[:, i :: block[0], j :: block[1]] = x[start : start + n]
    return made[:, crops[0][0] : made.shape[1] - crops[0][1], crops[1][0] : made.shape[2] - crops[1][1]]


for _name, _function in {
    "MEAN": np.mean,
    "SUM": np.sum,
    "REDUCE_PROD": np.prod,
    "REDUCE_MAX": np.max,
    "REDUCE_MIN": np.min,
}.items():
    REAL[_name] = lambda x, axes, options, f=_function, **rest: f(
        x, tuple(axes), keepdims=bool(options.get("keep_dims"))
    )


@real("CUMSUM")
def _cumsum(x, axis, options, **rest):
    wide = np.flip(x, int(axis)) if options["reverse"] else x
    made = np.cumsum(wide, int(axis)) - (wide if options["exclusive"] else 0)
    return np.flip(made, int(axis)) if options["reverse"] else made


def places(size, result, options):
    if options.get("align_corners"):
        return np.arange(result) * ((size - 1) / (result - 1))
    if options.get("half_pixel_centers"):
        return (np.arange(result) + 0.5) * (size / result)
    return np.arange(result) * (size / result)


@real("RESIZE_BILINEAR")
def _resize_bilinear(x, size, options, **rest):
    for axis, result in zip((1, 2), size, strict=True):
        at = places(x.shape[axis], result, options) - (0.5 if options.get("half_pixel_centers") else 0)
        at = np.clip(at, 0, x.shape[axis] - 1)
        low = np.floor(at).astype(int)
        high, part = np.minimum(low + 1, x.shape[axis] - 1), at - low
        part = part.reshape([-1 if a == axis else 1 for a in range(4)])
        x = x.take(low, axis) * (1 - part) + x.take(high, axis) * part
    return x


@real("RESIZE_NEAREST_NEIGHBOR")
def _resize_nearest(x, size, options, **rest):
    for axis, result in zip((1, 2), size, strict=True):
        at = places(x.shape[axis], result, options)
        at = away(at) if options.get("align_corners") else np.floor(at)
        x = x.take(np.clip(at, 0, x.shape[axis] - 1).astype(int), axis)
    return x
