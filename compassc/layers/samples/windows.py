"""Samples of windows, products and images."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
from compassc.layers.samples.draw import Draw, activation, bits_of, float_activation, layer_of, sample


def _window(kernel: tuple[int, int], stride: int, pad: int) -> dict[str, int]:
    keys = {"kernel_y": kernel[0], "kernel_x": kernel[1]}
    keys |= {f"{n}_{a}": v for n, v in (("stride", stride), ("dilation", 1)) for a in "xy"}
    return keys | {f"pad_{s}": pad for s in ("left", "right", "top", "bottom")}


def _products(draw: Draw, x: Tensor, outputs: int, depth: int) -> tuple[dict[str, Value], dict[str, Array]]:
    """Attributes and constants of a requantisation after sums of `depth` products."""
    if not x.is_integer:
        return float_activation(draw), {"biases": draw.array(x.dtype, outputs)}
    wide = bits_of(x) > 8
    form, scaling = activation(draw), draw.rescaling(int(np.log2(depth**0.5 * 70)) + 8)
    given = {**form, **scaling}
    limit = 2000
    constants = {"biases": draw.array("int32", outputs, low=-limit, high=limit)}
    if draw.integer(0, 1):
        constants["scale"] = draw.array("uint16", outputs, low=100, high=60000 if not wide else 30000)
        constants["shift"] = np.full(outputs, scaling["shift_value"] + 7, "int8")
    return given, constants


@sample("Convolution", "DepthwiseConv")
def _convolution(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4:
        return None
    n, h, w, c = x.shape
    kernel = (draw.choice((1, 3)), draw.choice((1, 3)))
    stride, pad = draw.choice((1, 1, 2)), draw.integer(0, 1)
    size = [(s + 2 * pad - k) // stride + 1 for s, k in zip((h, w), kernel, strict=True)]
    if min(size) < 1:
        return None
    group = c if kind == "DepthwiseConv" else draw.choice([g for g in (1, 2) if c % g == 0])
    outputs = c if kind == "DepthwiseConv" else draw.choice((1, 8, 33)) * group
    given, constants = _products(draw, x, outputs, kernel[0] * kernel[1] * c // group)
    constants["weights"] = draw.array("int8" if x.is_integer else x.dtype, outputs, *kernel, c // group)
    given |= _window(kernel, stride, pad) | {"group": group, "num_output": outputs}
    return layer_of(draw, kind, [x], draw.requantised(x, (n, *size, outputs)), constants, **given)


@sample("FullyConnected")
def _fully_connected(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 2:
        return None
    outputs = draw.choice((1, 10, 40))
    given, constants = _products(draw, x, outputs, x.shape[1])
    constants["weights"] = draw.array("int8" if x.is_integer else x.dtype, outputs, x.shape[1])
    return layer_of(draw, kind, [x], draw.requantised(x, (x.shape[0], outputs)), constants, num_output=outputs, **given)


@sample("MatMul")
def _matmul(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) < 2:
        return None
    columns = draw.choice((1, 9, 33))
    other = draw.other(x, (*x.shape[:-2], x.shape[-1], columns))
    given = draw.rescaling(int(np.log2(x.shape[-1] ** 0.5 * 70)) + 8 + bits_of(x) - 8) if x.is_integer else {}
    y = draw.requantised(x, (*x.shape[:-1], columns))
    return layer_of(draw, kind, [x, other], y, trans_a=False, trans_b=False, **given)


@sample("BatchNorm", "BiasAdd")
def _batch_norm(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    c = x.shape[-1] if x.shape else 1
    given: dict[str, Value] = {"axis": len(x.shape) - 1}
    if not x.is_integer:
        constants = {"weights": draw.array(x.dtype, c), "biases": draw.array(x.dtype, c)}
        return layer_of(draw, kind, [x], draw.tensor(x.shape, x.dtype), constants, **given)
    constants = {"weights": draw.array("int8", c), "biases": draw.array("int32", c, low=-2000, high=2000)}
    return layer_of(draw, kind, [x], draw.requantised(x), constants, **given, **draw.rescaling(bits_of(x) + 6))


@sample("Pooling")
def _pooling(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4 or min(x.shape[1:3]) < 2:
        return None
    n, h, w, c = x.shape
    method = draw.choice(("MAX", "AVG"))
    y = draw.like(x, (n, (h - 2) // 2 + 1, (w - 2) // 2 + 1, c))
    given = {"method": method, "count_include_pad": True, **_window((2, 2), 2, 0)}
    return layer_of(draw, kind, [x], y, **given, **({"scale_value": 128, "shift_value": 7} if x.is_integer else {}))


@sample("GlobalPool")
def _global_pool(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4:
        return None
    n, h, w, c = x.shape
    given = {"method": draw.choice(("MAX", "AVG")), **(draw.rescaling(7 + int(np.log2(h * w))) if x.is_integer else {})}
    return layer_of(draw, kind, [x], draw.like(x, (n, 1, 1, c)), **given)


@sample("Resize", "Interp")
def _resize(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4 or x.count > 2000:
        return None
    n, h, w, c = x.shape
    given = {
        "method": draw.choice(("NEAREST", "BILINEAR")),
        "mode": "half_pixel",
        "nearest_mode": "floor",
        "ratio_x": 2.0,
        "ratio_y": 2.0,
    }
    return layer_of(draw, kind, [x], draw.like(x, (n, 2 * h, 2 * w, c)), **given)


def _solid(kernel: int, stride: int, pad: int) -> dict[str, int]:
    keys = {f"kernel_{a}": kernel for a in "xyz"} | {f"stride_{a}": stride for a in "xyz"}
    return keys | {f"dilation_{a}": 1 for a in "xyz"} | {f"pad_{a}_{e}": pad for a in "xyz" for e in ("begin", "end")}


@sample("Pooling3D")
def _pooling_3d(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 5 or min(x.shape[1:4]) < 2:
        return None
    n, *sizes, c = x.shape
    given = {"method": draw.choice(("MAX", "AVG")), "count_include_pad": draw.choice((True, False))}
    y = draw.like(x, (n, *((s - 2) // 2 + 1 for s in sizes), c))
    return layer_of(draw, kind, [x], y, **given, **_solid(2, 2, 0))


@sample("AdaptivePool")
def _adaptive_pool(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) not in (3, 4):
        return None
    wanted = [draw.integer(1, 4), draw.integer(1, 4)]
    y = draw.like(x, (*x.shape[:-3], *wanted, x.shape[-1]))
    return layer_of(draw, kind, [x], y, method=draw.choice(("MAX", "AVG")), output_size=wanted)


@sample("MaxPoolingWithArgMax")
def _pooling_with_index(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4 or min(x.shape[1:3]) < 2:
        return None
    n, h, w, c = x.shape
    shape = (n, (h - 2) // 2 + 1, (w - 2) // 2 + 1, c)
    given = {"flatten_dim": draw.choice(("HWC", "NHWC", "HW", "NCHW")), "storage_order": draw.integer(0, 1)}
    outputs = [draw.like(x, shape), draw.tensor(shape, "int32")]
    return layer_of(draw, kind, [x], outputs, ceil_mode=False, **given, **_window((2, 2), 2, 0))


@sample("MaxUnpool", "UpsampleByIndex")
def _unpooling(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4 or x.count > 1500:
        return None
    n, h, w, c = x.shape
    form = draw.choice(("HW", "NCHW") if kind == "MaxUnpool" else ("HWC", "NHWC", "HW", "NCHW"))
    index = draw.indices(x.shape, {"HW": 4 * h * w, "HWC": 4 * h * w * c}.get(form, 4 * x.count))
    return layer_of(draw, kind, [x, index], draw.like(x, (n, 2 * h, 2 * w, c)), flatten_dim=form)


@sample("Convolution3D", "ConvTranspose3D", "ConvTranspose")
def _solid_convolution(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != (4 if kind == "ConvTranspose" else 5):
        return None
    n, *sizes, c = x.shape
    kernel, outputs, turned = draw.choice((1, 2)), draw.choice((4, 33)), kind != "Convolution3D"
    made = [(s - 1) * kernel + kernel if turned else (s - kernel) // kernel + 1 for s in sizes]
    if min(made) < 1:
        return None
    cells = (kernel,) * len(sizes)
    given, constants = _products(draw, x, outputs, kernel ** len(sizes) * c)
    constants["weights"] = draw.array("int8" if x.is_integer else x.dtype, outputs, *cells, c)
    given |= _solid(kernel, kernel, 0) if len(sizes) == 3 else _window((kernel, kernel), kernel, 0)
    return layer_of(
        draw, kind, [x], draw.requantised(x, (n, *made, outputs)), constants, group=1, num_output=outputs, **given
    )


@sample("ConvInteger")
def _whole_convolution(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4 or x.dtype not in ("int8", "uint8"):
        return None
    n, h, w, c = x.shape
    constants = {"weights": draw.array("uint8", 7, 1, 1, c), "biases": np.zeros(7, "int32")}
    given = {"x_zero_point": draw.integer(0, 9), "w_zero_point": draw.integer(100, 140), **_window((1, 1), 1, 0)}
    return layer_of(draw, kind, [x], draw.tensor((n, h, w, 7), "int32"), constants, group=1, num_output=7, **given)


@sample("MatMulInteger")
def _whole_product(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) < 2 or not x.is_integer:
        return None
    other = draw.other(x, (*x.shape[:-2], x.shape[-1], 9))
    given = {"a_zero_point": draw.integer(-9, 9), "b_zero_point": draw.integer(-9, 9)}
    return layer_of(draw, kind, [x, other], draw.tensor((*x.shape[:-1], 9), "int32"), **given)
