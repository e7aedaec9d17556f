"""Operators as quantised layers, by their name in ONNX; and the QLinear operators, which are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.arrays import Array
from compassc.importers.building import Building
from compassc.importers.onnx.declare import Constant, operator
from compassc.importers.onnx.operators.quantised import (
    Levels,
    Quantised,
    as_marked,
    bias_of,
    marked,
    plain_levels,
    quantised_form,
    quantised_inputs,
)
from compassc.importers.onnx.operators.windows import as_image, finished, widened
from compassc.importers.onnx.protobuf import attribute_value
from compassc.importers.onnx.window import Asked
from compassc.importers.values import Refused, Value, broadcast_shape

if TYPE_CHECKING:
    from compassc.importers.onnx.convert import Conversion, Origin

MULTIPLIER_BITS = 15
Form = Callable[["Conversion", "Origin", Levels], "Value | None"]


def factor(ratio: Array) -> dict[str, Any]:
    """The multiplier and shift of a requantisation, as a layer has them: numbers, or constants per channel."""
    multiplier, shift = _multipliers(np.asarray(ratio, np.float64).reshape(-1))
    if (multiplier == multiplier[0]).all() and (shift == shift[0]).all():
        return _scaled(multiplier[0], shift[0])
    return {"scale": multiplier.astype(np.uint16), "shift": shift.astype(np.int8)}


def _multipliers(exact: Array) -> tuple[Array, Array]:
    """(multipliers, shifts) next to real factors."""
    shift = MULTIPLIER_BITS - 1 - np.floor(np.log2(exact)).astype(np.int64)
    multiplier = np.rint(exact * np.exp2(shift)).astype(np.int64)
    over = multiplier >= 1 << MULTIPLIER_BITS
    return np.where(over, multiplier >> 1, multiplier), np.where(over, shift - 1, shift)


def _scaled(multiplier: int, shift: int) -> dict[str, int | str]:
    """A single multiplier and shift as attributes."""
    return {
        "scale_value": int(multiplier),
        "scale_type": "uint16",
        "shift_value": int(shift),
        "shift_type": "int8",
    }


def _attributes(origin: Origin) -> dict[str, object]:
    return {a.name: attribute_value(a) for a in origin.node.attribute}


# -- convolutions and products


def convolution(
    b: Building,
    x: Quantised,
    w: Quantised,
    biases: Array,
    out: Levels,
    given: dict[str, Any],
    multiplier: dict[str, object] | None = None,
) -> Value:
    """A convolution of integers: biases hold what the input's zero point adds. `multiplier`: that of its sums, by default of the
    scales (`factor`)."""
    weights, group = w.value.array, int(given.get("group", 1))
    assert weights is not None
    asked = Asked(**{name: given[name] for name in Asked._fields if name in given})
    window = widened(asked.over(x.value.shape[2:], weights.shape[2:]))
    if len(window.kernel) != 2 or not x.levels.is_one or any(p < 0 for pair in window.pads for p in pair):
        raise Refused("this form is not one of a quantised layer")
    image = Quantised(as_image(b, x.value), x.levels)
    tensor, order = as_marked(b, image)
    moved = b.image(b.value(tensor, x.value.dtype, order))
    outputs = weights.shape[0]
    kernel = weights.reshape(outputs, weights.shape[1], *window.kernel).transpose(0, 2, 3, 1)
    zeros = -np.broadcast_to(w.levels.zero, (outputs,))
    sums = (kernel.astype(np.int64) + zeros.reshape(-1, 1, 1, 1)).reshape(outputs, -1).sum(1)
    total = biases - int(x.levels.zero[0]) * sums
    depthwise = outputs == group == x.value.shape[1] and group > 1
    ratio = x.levels.scale * np.broadcast_to(w.levels.scale, (outputs,)) / out.scale
    shape = (x.value.shape[0], *window.positions(image.value.shape[2:]), outputs)
    with marked(b, out):
        made = b.layer(
            "DepthwiseConv" if depthwise else "Convolution",
            [moved],
            shape,
            out.dtype.name,
            weights=np.ascontiguousarray(kernel),
            biases=int32_biases(total),
            **_weights_levels(w, zeros),
            num_output=outputs,
            **window.attributes(),
            group=group,
            multiplier=1 if depthwise else None,
            with_activation="NONE",
            **(multiplier or factor(ratio)),
        )
    return finished(b, made, x.value.typed(out.dtype), x.value.rank)


def int32_biases(exact: Array) -> Array:
    """Biases as layers have them. Refused when they do not fit."""
    if exact.size and (exact.min() < -(1 << 31) or exact.max() >= 1 << 31):
        raise Refused("its biases, with what the input's zero point adds, do not fit 32 bits")
    return exact.astype(np.int32)


def _weights_levels(w: Quantised, zeros: Array) -> dict[str, object]:
    """Scale and zero point of the weights in the form that layers take."""
    one = w.levels.is_one
    scale: object = float(1 / w.levels.scale[0]) if one else (1 / w.levels.scale).astype(np.float32)
    if (zeros == zeros[0]).all():
        return {"weights_scale": scale, "weights_zp": int(zeros[0])}
    return {"weights_scale": scale, "weights_zp": zeros.astype(np.int32)}


def _conv(b: Conversion, origin: Origin, out: Levels) -> Value | None:
    found = quantised_inputs(b, origin.inputs[:2])
    if found is None or found[1].value.array is None or found[0].value.array is not None:
        return None
    x, w = found
    if not w.levels.is_one and w.levels.axis != 0:
        return None
    bias = origin.inputs[2] if len(origin.inputs) > 2 else None
    biases = bias_of(b, bias, x, w, w.value.shape[0])
    return None if biases is None else convolution(b, x, w, biases, out, _attributes(origin))


def product(
    b: Building, x: Quantised, w: Quantised, biases: Array, out: Levels, multiplier: dict[str, object] | None = None
) -> Value:
    """x times known weights [O,I], as a FullyConnected of integers. `multiplier`: as of `convolution`."""
    weights = w.value.array
    if weights is None or not x.levels.is_one:
        raise Refused("this form is not one of a quantised layer")
    tensor, order = as_marked(b, x)
    moved = b.laid(b.value(tensor, x.value.dtype, order))
    outputs = weights.shape[0]
    zeros = -np.broadcast_to(w.levels.zero, (outputs,))
    sums = (weights.astype(np.int64) + zeros.reshape(-1, 1)).sum(1)
    total = biases - int(x.levels.zero[0]) * sums
    ratio = x.levels.scale * np.broadcast_to(w.levels.scale, (outputs,)) / out.scale
    with marked(b, out):
        made = b.layer(
            "FullyConnected",
            [moved],
            (*moved.shape[:-1], outputs),
            out.dtype.name,
            weights=np.ascontiguousarray(weights),
            biases=int32_biases(total),
            **_weights_levels(w, zeros),
            num_output=outputs,
            with_activation="NONE",
            **(multiplier or factor(ratio)),
        )
    return b.value(made, out.dtype)


def _transposed(w: Quantised) -> Quantised:
    assert w.value.array is not None
    return Quantised(Value.of(np.ascontiguousarray(w.value.array.T)), w.levels._replace(axis=1 - w.levels.axis))


def _gemm(b: Conversion, origin: Origin, out: Levels) -> Value | None:
    found, given = quantised_inputs(b, origin.inputs[:2]), _attributes(origin)
    plain = given.get("alpha", 1.0) == given.get("beta", 1.0) == 1.0 and not given.get("transA")
    if found is None or found[1].value.array is None or found[0].value.array is not None or not plain:
        return None
    x, w = found[0], found[1] if given.get("transB") else _transposed(found[1])
    bias = origin.inputs[2] if len(origin.inputs) > 2 else None
    biases = bias_of(b, bias, x, w, w.value.shape[0])
    if biases is None or not w.levels.is_one and w.levels.axis != 0:
        return None
    return product(b, x, w, biases, out)


def _matmul(b: Conversion, origin: Origin, out: Levels) -> Value | None:
    found = quantised_inputs(b, origin.inputs)
    return None if found is None else multiplied(b, found[0], found[1], out)


def multiplied(b: Building, x: Quantised, y: Quantised, out: Levels) -> Value | None:
    """A matrix product of integers."""
    if y.value.array is not None and y.value.rank == 2 and x.value.array is None:
        w = _transposed(y)
        if w.levels.is_one or w.levels.axis == 0:
            return product(b, x, w, np.zeros(w.value.shape[0], np.int64), out)
        return None
    if not (x.levels.is_one and y.levels.is_one) or min(x.value.rank, y.value.rank) < 2:
        return None
    rank = max(x.value.rank, y.value.rank)
    tensors = []
    for q in (x, y):
        tensor, order = as_marked(b, Quantised(b.ranked(q.value, rank), q.levels))
        tensors.append(b.laid(b.value(tensor, q.value.dtype, order)))
    shape = (*broadcast_shape([x.value.shape[:-2], y.value.shape[:-2]]), x.value.shape[-2], y.value.shape[-1])
    with marked(b, out):
        made = b.layer(
            "MatMul",
            tensors,
            shape,
            out.dtype.name,
            trans_a=False,
            trans_b=False,
            **factor(x.levels.scale * y.levels.scale / out.scale),
        )
    return b.value(made, out.dtype)


# -- element by element


COMMON = 1 << 14
"""What operands of a sum are multiplied with to have one scale: the coarser one with this or less, the other one with less."""
_NEAR, _ALLOWED = 1 / 64, 0.5
"""Levels of the result that may be lost by multipliers before others are looked for, and before there are none."""


def _sum_factors(found: Sequence[Quantised], out: Levels) -> dict[str, object] | None:
    """The multipliers of the result and of both operands: the first ones that are near enough to the real ones, or the
    nearest. None where these lose half a level of the result."""
    ends = [(np.iinfo(q.levels.dtype), int(q.levels.zero[0])) for q in found]
    reach = np.asarray([max(info.max - zero, zero - info.min) for info, zero in ends])[:, None]
    scales = np.asarray([float(q.levels.scale[0]) for q in found])[:, None]
    common = np.arange(COMMON, COMMON // 2, -1)
    operands = np.rint(scales / scales.max() * common)
    multiplier, shift = _multipliers(scales.max() / float(out.scale[0]) / common)
    lost = np.abs(operands * multiplier * np.exp2(-shift) - scales / float(out.scale[0])) * reach
    worst = lost.sum(0)
    best = int(np.argmax(worst <= _NEAR) if (worst <= _NEAR).any() else np.argmin(worst))
    if worst[best] > _ALLOWED:
        return None
    own = [int(n) for n in (multiplier[best], *operands[:, best])]
    return {**_scaled(multiplier[best], shift[best]), "scale_value": own, "scale_type": ["uint16"] * 3}


def combine(b: Building, method: str, found: Sequence[Quantised], out: Levels) -> Value | None:
    """A sum, difference or product of two tensors of integers."""
    if not all(q.levels.is_one for q in found):
        return None
    scales = [float(q.levels.scale[0]) for q in found]
    given = factor(np.asarray(scales[0] * scales[1] / out.scale[0])) if method == "MUL" else _sum_factors(found, out)
    if given is None:
        return None
    values = []
    for q in found:
        tensor, order = as_marked(b, q)
        values.append(b.value(tensor, q.value.dtype, order))
    tensors, shape, order = b.operands(values)
    same = all(tuple(t.shape) == shape for t in tensors)
    if same:
        given["method"] = method
    type = "Eltwise" if same else method.capitalize()
    with marked(b, out):
        made = b.layer(type, tensors, shape, out.dtype.name, with_activation="NONE", **given)
    return b.value(made, out.dtype, order)


def _arithmetic(method: str) -> Form:
    def make(b: Conversion, origin: Origin, out: Levels) -> Value | None:
        found = quantised_inputs(b, origin.inputs)
        return None if found is None else combine(b, method, found, out)

    return make


def _behind(b: Conversion, origin: Origin, out: Levels) -> Value | None:
    """A Relu: fused into the operator before it as a limit of its result, or a layer of its own."""
    x = origin.inputs[0]
    if int(out.zero[0]) == np.iinfo(out.dtype).min:  # nothing below zero can be told anyhow
        found = quantised_form(b, x, out)
        if found is not None:
            return found
    source = b.source(x)
    if source is None or not source.levels.is_one:
        return None
    tensor, order = as_marked(b, source)
    with marked(b, out):
        made = b.layer(
            "Activation",
            [tensor],
            tensor.shape,
            out.dtype.name,
            method="RELU",
            **factor(source.levels.scale / out.scale),
        )
    return b.value(made, out.dtype, order)


# -- movement and pooling


def _moved(b: Conversion, origin: Origin, out: Levels) -> Value | None:
    """Operators that take elements as they are, where nothing is rescaled."""
    data = [v for v in origin.inputs if isinstance(v, Value) and v.is_float]
    found = quantised_inputs(b, data)
    if found is None or not all(q.levels.is_one and q.levels.matches(out) for q in found):
        return None
    if len(b.outputs_of(origin.node)) > 1:
        return None
    swapped = iter(found)
    inputs = [next(swapped).value if isinstance(v, Value) and v.is_float else v for v in origin.inputs]
    with marked(b, out):
        made = b.handled(origin.node, inputs)
    return made[0] if made and isinstance(made[0], Value) else None


FORMS: dict[str, Form] = {
    "Conv": _conv,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Add": _arithmetic("ADD"),
    "Sub": _arithmetic("SUB"),
    "Mul": _arithmetic("MUL"),
    "Relu": _behind,
    **dict.fromkeys(
        "Concat Flatten Gather MaxPool Reshape Slice Squeeze Tile Transpose Unsqueeze Expand DepthToSpace SpaceToDepth".split(),
        _moved,
    ),
}


# -- QLinear operators


@operator("QLinearConv", since=10)
def qlinear_conv(
    b: Conversion,
    x: Value,
    x_scale: Constant,
    x_zero: Constant,
    w: Constant,
    w_scale: Constant,
    w_zero: Constant,
    y_scale: Constant,
    y_zero: Constant,
    bias: Constant | None = None,
    **given: object,
) -> Value:
    weights = Quantised(Value.of(w), plain_levels(w_scale, w_zero, w.dtype))
    source = Quantised(x, plain_levels(x_scale, x_zero, x.dtype))
    biases = np.zeros(w.shape[0], np.int64) if bias is None else bias.reshape(-1).astype(np.int64)
    return convolution(b, source, weights, biases, plain_levels(y_scale, y_zero, y_zero.dtype), given)


@operator("QLinearMatMul", since=10)
def qlinear_matmul(
    b: Conversion,
    x: Value,
    x_scale: Constant,
    x_zero: Constant,
    y: Value,
    y_scale: Constant,
    y_zero: Constant,
    out_scale: Constant,
    out_zero: Constant,
) -> Value:
    left = Quantised(x, plain_levels(x_scale, x_zero, x.dtype))
    right = Quantised(y, plain_levels(y_scale, y_zero, y.dtype, 1, 2))
    found = multiplied(b, left, right, plain_levels(out_scale, out_zero, out_zero.dtype))
    if found is None:
        raise Refused("this form is not one of a quantised layer")
    return found
