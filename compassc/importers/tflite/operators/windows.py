"""Convolutions, products of matrices, and pooling."""

from __future__ import annotations

from functools import partial

import numpy as np

from compass_core.arrays import Array
from compassc.importers.building import Building, known
from compassc.importers.onnx.operators.elementwise import arithmetic, unary
from compassc.importers.onnx.operators.linear import fully_connected, multiply
from compassc.importers.onnx.operators.normalise import local_response
from compassc.importers.onnx.operators.quantised import Levels, Quantised, as_marked, marked
from compassc.importers.onnx.operators.quantised_forms import convolution, multiplied, product
from compassc.importers.onnx.operators.windows import conv_transpose, convolve, pool
from compassc.importers.onnx.window import Asked, Window
from compassc.importers.tflite.convert import Conversion
from compassc.importers.tflite.declare import Call, Constant, moves, operator, quantised, refuse
from compassc.importers.tflite.window import Steps, padding_of
from compassc.importers.values import Refused, Value

FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)
"""Images with their channels first, and back."""
VOLUMES_FIRST, VOLUMES_LAST = (0, 4, 1, 2, 3), (0, 2, 3, 4, 1)


def image_of(b: Building, x: Value) -> Value:
    """An image with its channels first. Makes no layer."""
    if x.rank != 4:
        raise Refused(f"its input has {x.rank} dimensions, expected 4")
    return b.transpose(x, FIRST)


# -- convolutions


@operator("CONV_2D")
def conv_2d(b: Building, x: Value, w: Constant, bias: Constant | None = None, *, steps: Steps) -> Value:
    return _convolved(b, x, w.transpose(FIRST), bias, steps.over(x.shape[1:3], w.shape[1:3]))


@operator("DEPTHWISE_CONV_2D")
def depthwise(
    b: Building, x: Value, w: Constant, bias: Constant | None = None, *, steps: Steps, depth_multiplier: int = 0
) -> Value:
    """Weights [1,KH,KW,C*m]. How many filters a channel has follows from their sizes."""
    return _convolved(b, x, w.transpose(3, 0, 1, 2), bias, steps.over(x.shape[1:3], w.shape[1:3]))


def _group(channels: int, inner: int) -> int:
    if inner < 1 or channels % inner:
        raise Refused(f"filters of {inner} channels do not fit {channels} channels")
    return channels // inner


def _convolved(b: Building, x: Value, w: Array, bias: Array | None, window: Window) -> Value:
    made = convolve(b, image_of(b, x), w, bias, window, _group(x.shape[3], w.shape[1]))
    return b.transpose(made, LAST)


@quantised("CONV_2D", "DEPTHWISE_CONV_2D")
def quantised_convolution(b: Conversion, call: Call, out: Levels) -> Value | None:
    found, biases = call.pair(0, 1), biases_of(call)
    if found is None or biases is None:
        return None
    x, w = found
    perm = FIRST if call.operator == "CONV_2D" else (3, 0, 1, 2)
    if not w.levels.is_one and w.levels.axis != perm[0]:
        raise Refused("its weights have scales along another axis than the filters")
    weights = Quantised(Value.of(known(w.value).transpose(perm)), w.levels._replace(axis=0))
    image = Quantised(image_of(b, x.value), x.levels)
    given = call.options
    return b.transpose(
        convolution(
            b,
            image,
            weights,
            biases,
            out,
            {
                "group": _group(x.value.shape[3], weights.value.shape[1]),
                "strides": (given["stride_h"], given["stride_w"]),
                "dilations": (given["dilation_h_factor"], given["dilation_w_factor"]),
                "auto_pad": padding_of(given["padding"]),
            },
        ),
        LAST,
    )


def biases_of(call: Call) -> Array | None:
    """The integers of a bias, whose scale is that of the products; zeros without one, None when they are not known."""
    weights, bias = call.inputs[1], call.inputs[2] if len(call.inputs) > 2 else None
    axis = 3 if call.operator == "DEPTHWISE_CONV_2D" else 0
    if not isinstance(weights, Quantised):
        return None
    if bias is None:
        return np.zeros(weights.value.shape[axis], np.int64)
    array = bias.value.array if isinstance(bias, Quantised) else bias.array
    if array is None or array.dtype.kind != "i" or array.size != weights.value.shape[axis]:
        return None
    x = call.inputs[0]
    if isinstance(bias, Quantised) and isinstance(x, Quantised):
        expected = x.levels.scale * weights.levels.scale
        if not np.allclose(bias.levels.scale, expected, rtol=1e-3, atol=0):
            return None
    return array.reshape(-1).astype(np.int64)


@operator("TRANSPOSE_CONV")
def transposed(
    b: Building, shape: Constant, w: Constant, x: Value, bias: Constant | None = None, *, steps: Steps
) -> Value:
    """Weights [O,KH,KW,I]; the pads are those of the convolution that leads from the output to the input."""
    forward = steps.over([int(d) for d in shape[1:3]], w.shape[1:3])
    ends = []
    for size, wanted, k, s, (before, _) in zip(
        x.shape[1:3], shape[1:3], w.shape[1:3], forward.stride, forward.pads, strict=True
    ):
        ends.append((size - 1) * s + k - before - int(wanted))
    if forward.positions([int(d) for d in shape[1:3]]) != x.shape[1:3]:
        raise Refused(f"its input {list(x.shape)} does not lead to the shape {shape.tolist()}")
    made = conv_transpose(
        b,
        image_of(b, x),
        w.transpose(3, 0, 1, 2),
        bias,
        asked=Asked(None, forward.stride, None, [*(p for p, _ in forward.pads), *ends]),
    )
    return b.transpose(made, LAST)


@operator("CONV_3D")
def conv_3d(
    b: Building,
    x: Value,
    w: Constant,
    bias: Constant | None = None,
    *,
    padding: int,
    stride_d: int,
    stride_w: int,
    stride_h: int,
    dilation_d_factor: int = 1,
    dilation_w_factor: int = 1,
    dilation_h_factor: int = 1,
) -> Value:
    """Weights [KD,KH,KW,I,O]."""
    if x.rank != 5:
        raise Refused(f"its input has {x.rank} dimensions, expected 5")
    strides, dilations = (stride_d, stride_h, stride_w), (dilation_d_factor, dilation_h_factor, dilation_w_factor)
    window = Asked(None, strides, dilations, None, padding_of(padding)).over(x.shape[1:4], w.shape[:3])
    filters = w.transpose(4, 3, 0, 1, 2)
    made = convolve(b, b.transpose(x, VOLUMES_FIRST), filters, bias, window, _group(x.shape[4], filters.shape[1]))
    return b.transpose(made, VOLUMES_LAST)


# -- products


@operator("FULLY_CONNECTED")
def dense(b: Building, x: Value, w: Value, bias: Value | None = None, *, keep_num_dims: bool = False) -> Value:
    """x times the transposed weights [O,I]."""
    rows, shape = _rows(b, x, w, keep_num_dims)
    if w.array is not None and (bias is None or bias.array is not None):
        made = fully_connected(b, rows, w.array, None if bias is None else known_bias(bias, w.shape[0]))
    else:
        made = multiply(b, rows, b.transpose(w, (1, 0)))
        made = made if bias is None else arithmetic(b, made, bias, "Add")
    return b.reshape(made, shape)


def known_bias(bias: Value, outputs: int) -> Array:
    assert bias.array is not None
    return np.broadcast_to(bias.array.reshape(-1), (outputs,)).astype(np.float32)


def _rows(b: Building, x: Value, w: Value, keep: bool) -> tuple[Value, tuple[int, ...]]:
    """The input as a matrix, and the shape of the result."""
    if w.rank != 2 or x.count % w.shape[1]:
        raise Refused(f"weights {list(w.shape)} do not fit an input {list(x.shape)}")
    many = x.count // w.shape[1]
    shape = (*x.shape[:-1], w.shape[0]) if keep else (many, w.shape[0])
    return b.reshape(x, (many, w.shape[1])), shape


@quantised("FULLY_CONNECTED")
def quantised_dense(b: Conversion, call: Call, out: Levels) -> Value | None:
    found, biases = call.pair(0, 1), biases_of(call)
    if found is None or biases is None or found[1].value.array is None:
        return None
    x, w = found
    if not w.levels.is_one and w.levels.axis != 0:
        raise Refused("its weights have scales along another axis than the outputs")
    rows, shape = _rows(b, x.value, w.value, bool(call.options.get("keep_num_dims")))
    made = product(b, Quantised(rows, x.levels), w, biases, out)
    with marked(b, out):
        return b.reshape(made, shape)


@operator("BATCH_MATMUL")
def batch_matmul(b: Building, x: Value, y: Value, *, adj_x: bool = False, adj_y: bool = False) -> Value:
    return multiply(b, _adjoint(b, x, adj_x), _adjoint(b, y, adj_y))


def _adjoint(b: Building, x: Value, flag: bool) -> Value:
    return b.transpose(x, (*range(x.rank - 2), x.rank - 1, x.rank - 2)) if flag else x


@quantised("BATCH_MATMUL")
def quantised_matmul(b: Conversion, call: Call, out: Levels) -> Value | None:
    found = call.pair(0, 1)
    if found is None or not all(q.levels.is_one for q in found):
        return None
    flags = (bool(call.options.get("adj_x")), bool(call.options.get("adj_y")))
    x, y = (Quantised(_adjoint(b, q.value, f), q.levels) for q, f in zip(found, flags, strict=True))
    return multiplied(b, x, y, out)


# -- pooling


def _pooled(method: str, b: Building, x: Value, *, steps: Steps, filter_width: int, filter_height: int) -> Value:
    """Means are of what lies inside of the image."""
    window = steps.over(x.shape[1:3], (filter_height, filter_width))
    return b.transpose(pool(b, image_of(b, x), method, window, include=False), LAST)


operator("MAX_POOL_2D")(partial(_pooled, "MAX"))
moves("MAX_POOL_2D")
operator("AVERAGE_POOL_2D")(partial(_pooled, "AVG"))


@quantised("AVERAGE_POOL_2D")
def quantised_average_pool(b: Conversion, call: Call, out: Levels) -> Value | None:
    """Of 8 bits: the layer's multipliers have no more, which would show in results of 16 bits."""
    found = call.pair(0)
    if found is None or not found[0].levels.is_one or out.dtype.itemsize > 1:
        return None
    tensor, order = as_marked(b, found[0])
    x = b.value(tensor, found[0].value.dtype, order)
    with marked(b, out):
        return b.handled(Call(call.operator, [x], call.options))[0]


@operator("L2_POOL_2D")
def l2_pool(b: Building, x: Value, *, steps: Steps, filter_width: int, filter_height: int) -> Value:
    kernel = {"filter_width": filter_width, "filter_height": filter_height}
    return unary(b, _pooled("AVG", b, unary(b, x, "Square"), steps=steps, **kernel), "Sqrt")


@operator("LOCAL_RESPONSE_NORMALIZATION")
def lrn(b: Building, x: Value, *, radius: int, bias: float, alpha: float, beta: float) -> Value:
    """Over `radius` channels to both sides."""
    size = 2 * radius + 1
    return b.transpose(local_response(b, image_of(b, x), size=size, alpha=alpha * size, beta=beta, bias=bias), LAST)


refuse("volumes with transposed convolutions are not supported", "CONV_3D_TRANSPOSE")
