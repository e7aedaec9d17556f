"""Samples of layers along axes, and over time."""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
from compassc.layers.samples.draw import Draw, bits_of, layer_of, sample


@sample("Reduce")
def _reduce(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    axis = draw.integer(0, len(x.shape) - 1)
    shape = [1 if i == axis else n for i, n in enumerate(x.shape)]
    method = draw.choice(("SUM", "MEAN", "MIN", "MAX"))
    given = (
        draw.rescaling(bits_of(x) + int(np.log2(x.shape[axis]))) if x.is_integer and method in ("SUM", "MEAN") else {}
    )
    y = draw.like(x, shape) if method in ("MIN", "MAX") else draw.requantised(x, shape)
    return layer_of(draw, kind, [x], y, axis=[axis], method=method, **given)


_UNSIGNED = {"int8": "uint8", "uint8": "uint8", "int16": "uint16", "uint16": "uint16"}


@sample("Softmax", "LogSoftmax", "Hardmax")
def _softmax(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    axis = len(x.shape) - 1
    if not x.is_integer:
        return layer_of(draw, kind, [x], draw.tensor(x.shape, x.dtype), axis=axis)
    if x.dtype not in _UNSIGNED or kind == "Hardmax":
        return None
    bits = bits_of(x)
    steps = np.linspace(0, (1 << bits) - 1, min(1024, 1 << bits))
    powers = np.exp((steps - steps[-1]) / (20.0 * (bits - 7)))
    if kind == "LogSoftmax":
        given = {"quantize_scale": [0.3 if bits == 8 else 0.05, 7.96875]}
        y = draw.tensor(x.shape, "int8")
        return layer_of(draw, kind, [x], y, {"lut_exp": powers.astype(np.float32)}, axis=axis, **given)
    most = 8 if _UNSIGNED[x.dtype] == "uint8" else 16
    y = Tensor(draw.tensor((1,), x.dtype).name, x.shape, _UNSIGNED[x.dtype], float((1 << most) - 1), 0)
    scaling = {"scale_value": draw.integer(160, 255) << (bits - 8), "shift_value": 8 - bits}
    lut = np.rint(powers * (2**20 - 1)).astype(np.uint32)
    return layer_of(draw, kind, [x], y, {"lut": lut}, axis=axis, **scaling)


@sample("LayerNorm", "RMSNorm", "InstanceNorm", "GroupNorm", "MVN")
def _norm(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) < 3 or x.dtype in ("int32", "uint32", "bool") or (kind == "GroupNorm" and x.shape[-1] % 2):
        return None
    last, c = len(x.shape) - 1, x.shape[-1]
    axis = [last] if kind in ("LayerNorm", "RMSNorm", "GroupNorm") else list(range(1, last))
    extra: dict[str, Value] = {} if kind != "GroupNorm" else {"group": 2}
    if not x.is_integer:
        constants = {"weights": draw.array(x.dtype, c), "biases": draw.array(x.dtype, c)} if kind != "MVN" else {}
        return layer_of(draw, kind, [x], draw.tensor(x.shape, x.dtype), constants, axis=axis, epsilon=1e-5, **extra)
    bits, y = bits_of(x), draw.tensor(x.shape, x.dtype)
    if kind == "MVN":
        return layer_of(draw, kind, [x], y, axis=axis, scale_value=171, shift_value=9, var_shift_value=5)
    constants = {
        "weights": draw.array(f"int{bits}", c),
        "biases": draw.array("int32", c, low=-(1 << (2 * bits - 4)), high=1 << (2 * bits - 4)),
    }
    extra |= {
        "norm_scale_value": 181 if bits == 8 else 20000,
        "norm_shift_value": 9 if bits == 8 else 15,
        "var_shift_value": draw.integer(4, 6),
        "scale_value": draw.integer(16384, 32767),
        "shift_value": 14 + bits,
        "weights_zp": draw.integer(0, 1),
    }
    return layer_of(draw, kind, [x], y, constants, axis=axis, **extra)


@sample("BasicLSTM", "GRUv1", "GRUv3", "RNN")
def _recurrent(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 3:
        return None
    n, steps, features = x.shape
    cell, gates = draw.choice((1, 12, 40)), {"BasicLSTM": 4, "RNN": 1}.get(kind, 3)
    state = [Tensor(draw.tensor((1,), x.dtype).name, (n, cell), x.dtype) for _ in range(2 if gates == 4 else 1)]
    outputs = [
        Tensor(draw.tensor((1,), x.dtype).name, shape, x.dtype)
        for shape in [(n, steps, cell), (n, cell), (n, cell)][: 3 if gates == 4 else 2]
    ]
    given: dict[str, Value] = {
        "direction": draw.choice(("forward", "reverse")),
        "time_steps": steps,
        "cell_size": cell,
        "out_sequence": ["Y", "H", "C"] if gates == 4 else ["H", "Hn"],
    }
    given |= {"activations": "TANH"} if kind == "RNN" else {}
    rows = cell * (4 if kind == "GRUv1" else gates)
    if not x.is_integer:
        constants = {"weights": draw.array(x.dtype, gates * cell, features + cell), "biases": draw.array(x.dtype, rows)}
        return layer_of(draw, kind, [x, *state], outputs, constants, **given)
    wide = bits_of(x) > 8
    constants = {
        "weights": draw.array("int8", gates * cell, features + cell),
        "biases": draw.array("int32", rows, low=-2000, high=2000),
    }
    for table in ("lut_it", "lut_ft", "lut_ct", "lut_ot", "lut_h", "lut_rt", "lut_ht", "lut"):
        constants[table] = np.sort(draw.array("int16" if wide else "int8", 256, low=0 if table != "lut_ht" else -100))
    shifts = {
        "BasicLSTM": [17, 23, 23, 30, 28, *[15, 29] * steps] if wide else [9, 15, 15, 15, 14, *[7, 15] * steps],
        "RNN": [7, 8, 14],
    }.get(kind, [17, 23, 22, 23, 15, 30] if wide else [9, 15, 8, 15, 7, 15])
    scales = [draw.integer(16384, 32767) if wide else draw.integer(128, 255) for _ in shifts]
    given |= {"scale_value": scales, "shift_value": shifts, "lut_shift_value": 15 if wide else 0}
    given |= {"hidden_scale_value": 200, "hidden_shift_value": 22 if wide else 15}
    return layer_of(draw, kind, [x, *state], outputs, constants, **given)


@sample("Normalization")
def _vector_norm(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    given: dict[str, Value] = {"method": draw.choice(("L1", "L2")), "axis": [len(x.shape) - 1], "epsilon": 1e-6}
    if x.is_integer:
        wide = bits_of(x) > 8
        given |= {"scale_value": draw.integer(100, 127), "shift_value": draw.integer(0, 4)}
        given |= {"reciprocal_shift_value": 8 if wide else 0}
    return layer_of(draw, kind, [x], draw.requantised(x), **given)


@sample("Moments")
def _moments(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    axis = draw.integer(0, len(x.shape) - 1)
    shape = [1 if i == axis else n for i, n in enumerate(x.shape)]
    spread = draw.tensor(shape, {"int8": "uint8", "int16": "uint16"}.get(x.dtype, x.dtype))
    given = {"var_scale_value": draw.integer(128, 255), "var_shift_value": 2 * bits_of(x) - 2} if x.is_integer else {}
    return layer_of(draw, kind, [x], [draw.like(x, shape), spread], axis=[axis], keepdims=True, **given)


@sample("LRN")
def _local_response(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4:
        return None
    method = draw.choice(("ACROSS_CHANNELS", "WITHIN_CHANNEL"))
    given: dict[str, Value] = {"method": method, "size": 3, "alpha": 0.01, "beta": 0.75, "bias": 1.0}
    if not x.is_integer:
        return layer_of(draw, kind, [x], draw.tensor(x.shape, x.dtype), **given)
    given |= {"scale_sum_value": draw.integer(128, 255), "shift_sum_value": 2 * bits_of(x) - 6}
    x_bits = bits_of(x) + 8
    table = {"lut": np.sort(draw.array("uint16", 256, high=32767))[::-1].copy()}
    return layer_of(
        draw, kind, [x], draw.requantised(x), table, scale_value=draw.integer(128, 255), shift_value=x_bits, **given
    )


@sample("NormalizedMoments")
def _moments_of_sums(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    others = [draw.other(x), draw.other(x)]
    outputs = [draw.requantised(x), draw.requantised(x)]
    if not x.is_integer:
        return layer_of(draw, kind, [x, *others], outputs, counts=4.0)
    given: dict[str, Value] = {f"{p}_scale_value": [draw.integer(128, 255), 16000, 12000] for p in ("mean", "var")}
    given |= {"mean_shift_value": 22, "var_shift_value": 22}
    return layer_of(draw, kind, [x, *others], outputs, {"lut": draw.array("uint16", 256, high=200)}, **given)
