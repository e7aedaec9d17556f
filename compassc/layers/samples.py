"""Small valid layers of every type, drawn at random on a given input: pages ask which forms have kernels, tests run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import INTEGER_TYPES, numpy_dtype
from compassc.layers.arithmetic import Array
from compassc.layers.declare import all_types


@dataclass
class Draw:
    """Random numbers and tensors of one layer. `given` are tensors that further inputs may be taken from."""

    source: np.random.Generator
    name: str = "layer"
    given: Sequence[Tensor] = ()
    _count: int = 0

    def integer(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.source.integers(low, high + 1))

    def choice(self, options: Sequence[Any]) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def array(self, dtype: str, *shape: int, low: int | None = None, high: int | None = None) -> Array:
        if dtype not in INTEGER_TYPES:
            return self.source.normal(0, 0.3, shape).astype(numpy_dtype(dtype))
        kind = INTEGER_TYPES[dtype]
        ends = kind.low if low is None else low, (kind.high if high is None else high) + 1
        return self.source.integers(*ends, shape).astype(numpy_dtype(dtype))

    def tensor(self, shape: Sequence[int], dtype: str, zero: int | None = None) -> Tensor:
        """A new tensor; integers have a random scale and zero point."""
        self._count += 1
        name = f"{self.name}_{self._count}"
        if dtype not in INTEGER_TYPES or dtype in ("int32", "bool"):
            return Tensor(name, tuple(shape), dtype)
        zero = self.integer(-9, 9) if zero is None else zero
        return Tensor(name, tuple(shape), dtype, float(self.integer(1, 400)) / 8, zero)

    def like(self, x: Tensor, shape: Sequence[int] | None = None) -> Tensor:
        """A new tensor with the type, scale and zero point of another one."""
        made = self.tensor(x.shape if shape is None else shape, x.dtype)
        return Tensor(made.name, made.shape, x.dtype, x.scale, x.zero)

    def requantised(self, x: Tensor, shape: Sequence[int] | None = None) -> Tensor:
        """A new tensor of the same kind of type, of 8 or 16 bits with or without sign for integers."""
        narrow = ("int8", "uint8") if x.dtype in ("int8", "uint8") else (x.dtype,)
        return self.tensor(x.shape if shape is None else shape, self.choice(narrow) if x.is_integer else x.dtype)

    def other(self, x: Tensor, shape: Sequence[int] | None = None) -> Tensor:
        """A second operand of the type of `x`: one of the given tensors, or a new input."""
        wanted = tuple(x.shape if shape is None else shape)
        found = [t for t in self.given if t.shape == wanted and t.dtype == x.dtype and t.name != x.name]
        return self.choice(found) if found and self.integer(0, 3) else self.tensor(wanted, x.dtype)

    def rescaling(self, bits: int) -> dict[str, Any]:
        """A multiplier and shift that bring numbers of `bits` bits to about 7."""
        return {"scale_value": self.integer(128, 255), "shift_value": max(0, bits + self.integer(-1, 1))}


Sample = Callable[[Draw, Tensor], "Layer | None"]
"""`sample(draw, x)`: a layer with `x` as its first input; None when no such layer takes it."""
SAMPLES: dict[str, Sample] = {}


def sample(*types: str) -> Callable[[Callable[..., Layer | None]], Callable[..., Layer | None]]:
    """Registers a function `(draw, type, x)` for layer types."""

    def register(make: Callable[..., Layer | None]) -> Callable[..., Layer | None]:
        for name in types:
            SAMPLES[name] = lambda draw, x, name=name: make(draw, name, x)  # type: ignore[misc]
        return make

    return register


def drawn(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    """A layer of a type on `x` that its reference takes; None where there is none."""
    if kind not in SAMPLES:
        return None
    layer = SAMPLES[kind](draw, x)
    if layer is None:
        return None
    from compassc.layers.declare import evaluate

    try:
        evaluate(layer, [np.zeros(t.shape, numpy_dtype(t.dtype)) for t in layer.inputs])
    except LayerError:
        return None
    return layer


def names(*candidates: str) -> list[str]:
    """Those of the names that are declared."""
    return [n for n in candidates if n in all_types()]


def _bits(t: Tensor) -> int:
    return t.integer.bits if t.is_integer else 0


def _layer(draw: Draw, kind: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor] | Tensor,
           constants: dict[str, Array] | None = None, /, **attributes: Any) -> Layer:  # fmt: skip
    listed = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    return Layer(draw.name, kind, tuple(inputs), tuple(listed), attributes, constants or {})


def _activation(draw: Draw) -> dict[str, Any]:
    method = draw.choice(("NONE", "NONE", "RELU", "CLIP", "LEAKYRELU"))
    return {"with_activation": method, "clip_min": -3000, "clip_max": 20000, "negative_slope_value": 26}


def _float_activation(draw: Draw) -> dict[str, Any]:
    return {"with_activation": draw.choice(("NONE", "RELU"))}


# -- element by element

METHODS = (
    "SIGMOID TANH GELU SILU HARDSWISH HARDSIGMOID MISH ELU SELU CELU SOFTPLUS SOFTSIGN SHRINK THRESHOLDEDRELU".split()
)
TABLED = (
    "Sigmoid Tanh GELU Silu Swish Hardswish HardSigmoid MISH ELU SELU CELU Softplus Softsign SHRINK THRESHOLDEDRELU "
    "Exp Log Erf Square Floor Ceil Trunc Round Tan Sinh Cosh Asin Acos Atan Asinh Acosh Atanh Sqrt Rsqrt Reciprocal "
    "BNLL Sine Cosine"
).split()


@sample("Activation", *TABLED)
def _tabled(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    given: dict[str, Any] = {"method": draw.choice(METHODS)} if kind == "Activation" else {}
    if not x.is_integer:
        return _layer(draw, kind, [x], draw.tensor(x.shape, x.dtype), **given)
    if kind in ("Sine", "Cosine") and _bits(x) > 8:
        given |= {"scale_value": 200, "shift_value": 8}
    y = draw.tensor(x.shape, draw.choice(("int8", "uint8", "int16")))
    table = draw.array(y.dtype, 256 if _bits(x) <= 8 else 512)
    return _layer(draw, kind, [x], y, {"lut": table}, **given)


@sample("RELU", "RELU6", "Clip", "LeakyRELU", "PRELU")
def _rectifier(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    channels = x.shape[-1] if x.shape else 1
    if not x.is_integer:
        slope = {"negative_slope": draw.array(x.dtype, channels)} if kind == "PRELU" else None
        y = draw.tensor(x.shape, x.dtype)
        return _layer(draw, kind, [x], y, slope, clip_min=-1.0, clip_max=2.0, negative_slope_value=0.125)
    slope = {"negative_slope": draw.array("int8", channels)} if kind == "PRELU" else None
    given = {"clip_min": -100, "clip_max": 90, "negative_slope_value": 26, **draw.rescaling(7)}
    return _layer(draw, kind, [x], draw.requantised(x), slope, **given)


@sample("Abs", "Negative", "Sign")
def _sign(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    given = draw.rescaling(7) if kind == "Abs" and x.is_integer else {}
    return _layer(draw, kind, [x], draw.requantised(x), **given)


@sample("Eltwise", "Add", "Sub", "Mul")
def _eltwise(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    method = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL"}.get(kind) or draw.choice(("ADD", "SUB", "MUL", "MAX", "MIN"))
    shape = [1 if draw.integer(0, 9) == 0 else n for n in x.shape]
    other = draw.other(x, shape)
    if not x.is_integer:
        return _layer(draw, kind, [x, other], draw.tensor(x.shape, x.dtype), method=method, **_float_activation(draw))
    bits = _bits(x)
    if method == "MUL":
        given = draw.rescaling(14 if bits <= 8 else 22)
    else:
        top = 32767 if bits <= 8 else 255
        listed = [draw.integer(128, 255), draw.integer(top // 2, top), draw.integer(top // 4, top)]
        given = {"scale_value": listed, "shift_value": 22 if bits <= 8 else 16}
    return _layer(draw, kind, [x, other], draw.requantised(x), method=method, **given, **_activation(draw))


@sample("SquaredDifference", "Div", "Mod", "DivMod", "BitShift")
def _two_operands(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    other = draw.other(x)
    given: dict[str, Any] = {"direction": "LEFT"} if kind == "BitShift" else {}
    constants: dict[str, Array] = {}
    if kind == "SquaredDifference" and x.is_integer:
        given = {"scale_value": [200, 128, 120], "shift_value": [14, 7, 7]}
    if kind == "Div" and x.is_integer:
        given, constants = draw.rescaling(15), {"lut": draw.array("uint16", 256)}
    y = draw.like(x) if kind == "BitShift" else draw.requantised(x)
    outputs = [y, draw.like(y)] if kind == "DivMod" else [y]
    return _layer(draw, kind, [x, other], outputs, constants, **given)


@sample("Bitwise", "Logical")
def _logical(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    methods: tuple[str, ...] = ("AND", "OR", "XOR", "NOT")
    if kind == "Logical":
        methods += ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
    method = draw.choice(methods)
    inputs = [x] if method == "NOT" else [x, draw.other(x)]
    given = {"scale_value": [draw.integer(1, 255), draw.integer(1, 255)]} if kind == "Logical" and x.is_integer else {}
    y = draw.tensor(x.shape, "uint8", 0) if kind == "Logical" else draw.like(x)
    return _layer(draw, kind, inputs, y, method=method, **given)


@sample("IsNaN", "IsInf")
def _special(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    return _layer(draw, kind, [x], draw.tensor(x.shape, "uint8", 0), detect_positive=draw.choice((True, False)))


@sample("Pow")
def _power(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.is_integer:
        return _layer(draw, kind, [x], draw.tensor(x.shape, x.dtype), exponent=draw.choice((2.0, 3.0)))
    y = draw.tensor(x.shape, draw.choice(("int8", "uint8", "int16")))
    return _layer(draw, kind, [x], y, {"lut_log": draw.array(y.dtype, 256)}, exponent=2.0)


@sample("Cast")
def _cast(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    to = ("int8", "uint8", "int16") if x.is_integer else (x.dtype,)
    return _layer(draw, kind, [x], draw.tensor(x.shape, draw.choice(to)), ignore_scale_zp=True, clip_mode="saturation")


@sample("Quantize")
def _quantise(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    return None if x.is_integer else _layer(draw, kind, [x], draw.tensor(x.shape, draw.choice(("int8", "uint8"))))


@sample("DeQuantize")
def _dequantise(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    return _layer(draw, kind, [x], draw.tensor(x.shape, "float32")) if x.is_integer else None


@sample("Where", "Select")
def _where(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    condition = draw.tensor(x.shape, "uint8", 0)
    y = draw.requantised(x)
    given = {"scale_value": [150, 200], "shift_value": [7, 8]} if x.is_integer else {}
    return _layer(draw, kind, [condition, x, draw.other(x)], y, **given)


@sample("FakeQuantWithMinMaxVars", "NoOp", "Dummy")
def _plain(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    return _layer(draw, kind, [x], draw.like(x))


# -- windows and products


def _window(kernel: tuple[int, int], stride: int, pad: int) -> dict[str, int]:
    keys = {"kernel_y": kernel[0], "kernel_x": kernel[1]}
    keys |= {f"{n}_{a}": v for n, v in (("stride", stride), ("dilation", 1)) for a in "xy"}
    return keys | {f"pad_{s}": pad for s in ("left", "right", "top", "bottom")}


def _products(draw: Draw, x: Tensor, outputs: int, depth: int) -> tuple[dict[str, Any], dict[str, Array]]:
    """Attributes and constants of a requantisation after sums of `depth` products."""
    if not x.is_integer:
        return _float_activation(draw), {"biases": draw.array(x.dtype, outputs)}
    wide = _bits(x) > 8
    given = {**_activation(draw), **draw.rescaling(int(np.log2(depth**0.5 * 70)) + 8)}
    limit = 2000
    constants = {"biases": draw.array("int32", outputs, low=-limit, high=limit)}
    if draw.integer(0, 1):
        constants["scale"] = draw.array("uint16", outputs, low=100, high=60000 if not wide else 30000)
        constants["shift"] = np.full(outputs, given["shift_value"] + 7, "int8")
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
    return _layer(draw, kind, [x], draw.requantised(x, (n, *size, outputs)), constants, **given)


@sample("FullyConnected")
def _fully_connected(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 2:
        return None
    outputs = draw.choice((1, 10, 40))
    given, constants = _products(draw, x, outputs, x.shape[1])
    constants["weights"] = draw.array("int8" if x.is_integer else x.dtype, outputs, x.shape[1])
    return _layer(draw, kind, [x], draw.requantised(x, (x.shape[0], outputs)), constants, num_output=outputs, **given)


@sample("MatMul")
def _matmul(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) < 2:
        return None
    columns = draw.choice((1, 9, 33))
    other = draw.other(x, (*x.shape[:-2], x.shape[-1], columns))
    given = draw.rescaling(int(np.log2(x.shape[-1] ** 0.5 * 70)) + 8 + _bits(x) - 8) if x.is_integer else {}
    y = draw.requantised(x, (*x.shape[:-1], columns))
    return _layer(draw, kind, [x, other], y, trans_a=False, trans_b=False, **given)


@sample("BatchNorm", "BiasAdd")
def _batch_norm(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    c = x.shape[-1] if x.shape else 1
    given: dict[str, Any] = {"axis": len(x.shape) - 1}
    if not x.is_integer:
        constants = {"weights": draw.array(x.dtype, c), "biases": draw.array(x.dtype, c)}
        return _layer(draw, kind, [x], draw.tensor(x.shape, x.dtype), constants, **given)
    constants = {"weights": draw.array("int8", c), "biases": draw.array("int32", c, low=-2000, high=2000)}
    return _layer(draw, kind, [x], draw.requantised(x), constants, **given, **draw.rescaling(_bits(x) + 6))


@sample("Pooling")
def _pooling(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4 or min(x.shape[1:3]) < 2:
        return None
    n, h, w, c = x.shape
    method = draw.choice(("MAX", "AVG"))
    y = draw.like(x, (n, (h - 2) // 2 + 1, (w - 2) // 2 + 1, c))
    given = {"method": method, "count_include_pad": True, **_window((2, 2), 2, 0)}
    return _layer(draw, kind, [x], y, **given, **({"scale_value": 128, "shift_value": 7} if x.is_integer else {}))


@sample("GlobalPool")
def _global_pool(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4:
        return None
    n, h, w, c = x.shape
    given = {"method": draw.choice(("MAX", "AVG")), **(draw.rescaling(7 + int(np.log2(h * w))) if x.is_integer else {})}
    return _layer(draw, kind, [x], draw.like(x, (n, 1, 1, c)), **given)


@sample("Resize", "Interp")
def _resize(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4 or x.count > 2000:
        return None
    n, h, w, c = x.shape
    given = {"method": draw.choice(("NEAREST", "BILINEAR")), "mode": "half_pixel", "nearest_mode": "floor",
             "ratio_x": 2.0, "ratio_y": 2.0}  # fmt: skip
    return _layer(draw, kind, [x], draw.like(x, (n, 2 * h, 2 * w, c)), **given)


# -- moves


@sample("Reshape", "Flatten")
def _reshape(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    first = draw.choice([n for n in range(1, min(x.count, 12) + 1) if x.count % n == 0])
    shape = draw.choice(((first, x.count // first), (1, first, 1, x.count // first), (x.count,)))
    return _layer(draw, kind, [x], draw.like(x, shape), shape=list(shape))


@sample("Squeeze")
def _squeeze(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    ones = [i for i, n in enumerate(x.shape) if n == 1]
    if not ones or len(x.shape) == 1:
        return None
    shape = x.shape[: ones[0]] + x.shape[ones[0] + 1 :]
    return _layer(draw, kind, [x], draw.like(x, shape), axis=[ones[0]])


@sample("Transpose", "Permute")
def _transpose(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    perm = [int(i) for i in draw.source.permutation(len(x.shape))]
    return _layer(draw, kind, [x], draw.like(x, [x.shape[i] for i in perm]), perm=perm)


@sample("Concat")
def _concat(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    axis = draw.integer(0, len(x.shape) - 1)
    count = draw.integer(2, 3)
    inputs = [x, *(draw.other(x) for _ in range(count - 1))]
    if len({t.name for t in inputs}) < count:
        return None
    shape = [n * (count if i == axis else 1) for i, n in enumerate(x.shape)]
    given = {
        "scale_value": [draw.integer(100, 255) for _ in inputs],
        "shift_value": [draw.integer(6, 8) for _ in inputs],
    }
    return _layer(draw, kind, inputs, draw.tensor(shape, x.dtype), axis=axis, **(given if x.is_integer else {}))


@sample("Split")
def _split(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    axes = [i for i, n in enumerate(x.shape) if n > 1]
    if not axes:
        return None
    axis = draw.choice(axes)
    first = draw.integer(1, x.shape[axis] - 1)
    sizes = (first, x.shape[axis] - first)
    shapes = [[s if i == axis else n for i, n in enumerate(x.shape)] for s in sizes]
    return _layer(draw, kind, [x], [draw.like(x, s) for s in shapes], axis=axis, splits=list(sizes))


@sample("Slice", "StridedSlice", "Crop")
def _slice(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    begin = [draw.integer(0, n - 1) for n in x.shape]
    end = [draw.integer(b + 1, n) for b, n in zip(begin, x.shape, strict=True)]
    shape = [e - b for b, e in zip(begin, end, strict=True)]
    given = {"crops": [list(p) for p in zip(begin, end, strict=True)]} if kind == "Crop" else {}
    return _layer(draw, kind, [x], draw.like(x, shape), begin=begin, end=end, strides=[1] * len(begin), **given)


@sample("Tile")
def _tile(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if x.count > 2000 or not x.shape:
        return None
    repeats = [draw.choice((1, 1, 2)) for _ in x.shape]
    return _layer(
        draw, kind, [x], draw.like(x, [n * r for n, r in zip(x.shape, repeats, strict=True)]), repeats=repeats
    )


@sample("Pad")
def _pad(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    pads = [[draw.integer(0, 1), draw.integer(0, 2)] for _ in x.shape]
    shape = [n + a + b for n, (a, b) in zip(x.shape, pads, strict=True)]
    value = draw.integer(-20, 20) if x.dtype != "uint8" else 3
    return _layer(draw, kind, [x], draw.like(x, shape), pads=pads, mode="CONSTANT", constant_value=value)


@sample("ChannelShuffle")
def _shuffle(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape or x.shape[-1] % 2:
        return None
    return _layer(draw, kind, [x], draw.like(x), group=2, splits=1)


@sample("DepthToSpace", "SpaceToDepth")
def _blocks(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4:
        return None
    n, h, w, c = x.shape
    if (kind == "DepthToSpace" and c % 4) or (kind == "SpaceToDepth" and (h % 2 or w % 2)):
        return None
    shape = (n, 2 * h, 2 * w, c // 4) if kind == "DepthToSpace" else (n, h // 2, w // 2, 4 * c)
    return _layer(draw, kind, [x], draw.like(x, shape), block_size_x=2, block_size_y=2, mode="DCR")


# -- over an axis


@sample("Reduce")
def _reduce(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    axis = draw.integer(0, len(x.shape) - 1)
    shape = [1 if i == axis else n for i, n in enumerate(x.shape)]
    method = draw.choice(("SUM", "MEAN", "MIN", "MAX"))
    given = draw.rescaling(_bits(x) + int(np.log2(x.shape[axis]))) if x.is_integer and method in ("SUM", "MEAN") else {}
    y = draw.like(x, shape) if method in ("MIN", "MAX") else draw.requantised(x, shape)
    return _layer(draw, kind, [x], y, axis=[axis], method=method, **given)


@sample("Softmax", "LogSoftmax", "Hardmax")
def _softmax(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape or x.is_integer:
        return None
    return _layer(draw, kind, [x], draw.tensor(x.shape, x.dtype), axis=len(x.shape) - 1)


@sample("LayerNorm", "RMSNorm", "InstanceNorm", "GroupNorm", "MVN")
def _norm(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) < 3 or x.is_integer:
        return None
    last, c = len(x.shape) - 1, x.shape[-1]
    constants = {"weights": draw.array(x.dtype, c), "biases": draw.array(x.dtype, c)}
    axis = [last] if kind in ("LayerNorm", "RMSNorm", "GroupNorm") else list(range(1, last))
    extra = {} if kind != "GroupNorm" else {"group": 2}
    return _layer(draw, kind, [x], draw.tensor(x.shape, x.dtype), constants, axis=axis, epsilon=1e-5, **extra)


# -- over time


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
    given: dict[str, Any] = {"direction": draw.choice(("forward", "reverse")), "time_steps": steps, "cell_size": cell,
                             "out_sequence": ["Y", "H", "C"] if gates == 4 else ["H", "Hn"]}  # fmt: skip
    given |= {"activations": "TANH"} if kind == "RNN" else {}
    rows = cell * (4 if kind == "GRUv1" else gates)
    if not x.is_integer:
        constants = {"weights": draw.array(x.dtype, gates * cell, features + cell), "biases": draw.array(x.dtype, rows)}
        return _layer(draw, kind, [x, *state], outputs, constants, **given)
    wide = _bits(x) > 8
    constants = {
        "weights": draw.array("int8", gates * cell, features + cell),
        "biases": draw.array("int32", rows, low=-2000, high=2000),
    }
    for table in ("lut_it", "lut_ft", "lut_ct", "lut_ot", "lut_h", "lut_rt", "lut_ht", "lut"):
        constants[table] = np.sort(draw.array("int16" if wide else "int8", 256, low=0 if table != "lut_ht" else -100))
    shifts = {"BasicLSTM": [17, 23, 23, 30, 28, *[15, 29] * steps] if wide else [9, 15, 15, 15, 14, *[7, 15] * steps],
              "RNN": [7, 8, 14]}.get(kind, [17, 23, 22, 23, 15, 30] if wide else [9, 15, 8, 15, 7, 15])  # fmt: skip
    scales = [draw.integer(16384, 32767) if wide else draw.integer(128, 255) for _ in shifts]
    given |= {"scale_value": scales, "shift_value": shifts, "lut_shift_value": 15 if wide else 0}
    given |= {"hidden_scale_value": 200, "hidden_shift_value": 22 if wide else 15}
    return _layer(draw, kind, [x, *state], outputs, constants, **given)


# -- by index


def _indices(draw: Draw, shape: Sequence[int], count: int) -> Tensor:
    """A new tensor of indices below `count`."""
    return Tensor(draw.tensor((1,), "int32").name, tuple(shape), "int32", limits=(0, count - 1))


@sample("Gather", "GatherElements", "GatherND")
def _gather(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    axis = 0 if kind == "GatherND" else draw.integer(0, len(x.shape) - 1)
    count = draw.integer(1, 5)
    if kind == "GatherElements":
        shape = tuple(count if i == axis else n for i, n in enumerate(x.shape))
        return _layer(draw, kind, [x, _indices(draw, shape, x.shape[axis])], draw.like(x, shape), axis=axis)
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    index = _indices(draw, (count, 1) if kind == "GatherND" else (count,), x.shape[axis])
    return _layer(draw, kind, [x, index], draw.like(x, shape), axis=axis, batch_dims=0)


@sample("ReverseSequence")
def _reverse(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) < 2:
        return None
    lengths = _indices(draw, (x.shape[0],), x.shape[1] + 1)
    return _layer(draw, kind, [x, lengths], draw.like(x), batch_axis=0, time_axis=1)


@sample("OneHot")
def _one_hot(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if x.dtype not in ("int8", "uint8", "int32"):
        return None
    y = draw.tensor((*x.shape, 6), x.dtype, 0)
    return _layer(draw, kind, [x], y, depth=6, values=[0, 1], axis=-1)


@sample("ArgMinMax")
def _arg_min_max(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    axis = draw.integer(0, len(x.shape) - 1)
    y = draw.tensor([1 if i == axis else n for i, n in enumerate(x.shape)], "int32")
    return _layer(draw, kind, [x], y, axis=axis, method=draw.choice(("MIN", "MAX")), select_last_index=False)


@sample("TopK", "Sort")
def _top(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    k = draw.integer(1, x.shape[-1]) if kind == "TopK" else x.shape[-1]
    shape = (*x.shape[:-1], k)
    outputs = [draw.like(x, shape), draw.tensor(shape, "int32")]
    return _layer(draw, kind, [x], outputs, k=k, axis=len(x.shape) - 1, largest=True, sorted=True)


@sample("Cumulate")
def _cumulate(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    given = {"method": "SUM", "axis": len(x.shape) - 1, "exclusive": False, "reverse": draw.choice((True, False))}
    return _layer(draw, kind, [x], draw.requantised(x), **given, **(draw.rescaling(8) if x.is_integer else {}))
