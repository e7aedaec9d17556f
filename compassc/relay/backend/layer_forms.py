"""Operators of Relay as layers of the NPU: each by the operators of ONNX that mean the same, whose functions make the layers.

    @form("nn.bias_add")
    def bias_add(b, a, t, x, bias): ...

A function gets the layers in the making, the attributes and the type of the call, and its arguments as values with an order of
axes (lists of them for tuples). What a function refuses (`Refused`), with the reason, runs on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, floor

import numpy as np

from compassc.importers.building import Building
from compassc.importers.onnx.declare import select
from compassc.importers.onnx.names import SAME_REDUCTIONS
from compassc.importers.onnx.operators.activations import clipped
from compassc.importers.onnx.operators.elementwise import unary
from compassc.importers.values import Refused, Value
from compassc.relay.attributes import Attrs
from compassc.relay.ops.convolution import SPACE, both_ends, several
from compassc.relay.ops.reduction import reduced_axes
from compassc.relay.ops.relations import axes_of, axis_of
from compassc.relay.ops.slices import cut, slices
from compassc.relay.types import TensorType, TupleType

OPSET = 21
"""The operators of ONNX that are meant."""
Form = Callable[..., Value | list[Value]]
FORMS: dict[str, Form] = {}
"""What makes the layers of a call, by the operator's name."""
OF_BYTES = frozenset(
    "reshape squeeze expand_dims nn.batch_flatten transpose concatenate split strided_slice nn.pad tile broadcast_to clip maximum minimum "
    "nn.relu nn.max_pool2d max min".split()
)
"""Operators whose layers do the same with int8 and uint8: they move numbers, or choose some."""


class Layers(Building):
    """Layers in the making: what functions of operators get as `b`."""

    op = ""
    """The operator of ONNX whose layers are made."""

    def outputs(self) -> list[bool]:
        """Which results are asked for: the first."""
        return [True]

    def uses(self, index: int) -> bool:
        """Whether a result is asked for."""
        return index == 0

    def onnx(self, name: str, *inputs: Value, **attributes: object) -> Value:
        """What an operator of ONNX makes of values. Refused where it has no layers in this form."""
        declared = select("", name, OPSET)
        assert declared is not None, f"there is no {name} in ONNX"
        self.op = name
        made: Value = declared.handler(self, *declared.arguments(inputs), **attributes)
        return made


def form(*names: str) -> Callable[[Form], Form]:
    """Declare the function that makes layers of calls of operators."""

    def declare(function: Form) -> Form:
        for name in names:
            assert name not in FORMS, f"{name} is declared twice"
            FORMS[name] = function
        return function

    return declare


def ints(values: Sequence[int]) -> Value:
    """A known list of whole numbers."""
    return Value.of(np.asarray(values, np.int64))


# --------------------------------------------------------------------------------------------------------- each element


SAME = (
    "abs acos acosh add asin asinh atan atanh ceil cos cosh divide erf exp floor log maximum minimum multiply negative nn.relu power "
    "sigmoid sign sin sinh sqrt subtract tan tanh"
).split()
"""Operators that the registry has by this name, and layers do."""


def _same(name: str, b: Layers, a: object, t: TensorType, *xs: Value) -> Value:
    return b.made(name, *xs)


for _name in SAME:
    form(_name)(partial(_same, _name.removeprefix("nn.")))


@form("rsqrt")
def rsqrt(b: Layers, a: object, t: TensorType, x: Value) -> Value:
    return unary(b, x, "Rsqrt")


@form("clip")
def clip(b: Layers, a: Attrs, t: TensorType, x: Value) -> Value:
    if not x.is_float:
        return clipped(b, x, ceil(a.a_min), floor(a.a_max))
    return b.onnx("Clip", x, *[Value.of(np.asarray(v, np.float32)) for v in (a.a_min, a.a_max)])


@form("nn.leaky_relu")
def leaky_relu(b: Layers, a: Attrs, t: TensorType, x: Value) -> Value:
    return b.onnx("LeakyRelu", x, alpha=float(a.alpha))


def along(b: Layers, x: Value, axis: int, each: Value) -> Value:
    """A tensor with one axis, of the elements of an axis of another, to be broadcast to it."""
    return b.reshape(each, (each.count, *(1,) * (x.rank - 1 - x.axis(axis))))


@form("nn.bias_add")
def bias_add(b: Layers, a: Attrs, t: TensorType, x: Value, bias: Value) -> Value:
    return b.onnx("Add", x, along(b, x, a.axis, bias))


@form("nn.prelu")
def prelu(b: Layers, a: Attrs, t: TensorType, x: Value, alpha: Value) -> Value:
    return b.onnx("PRelu", x, along(b, x, a.axis, alpha))


# ------------------------------------------------------------------------------------------------------------- windows


def ordered(b: Layers, x: Value, layout: str, wanted: str) -> Value:
    """A value of a layout with the axes of another; its elements stay where they are."""
    if sorted(layout) != sorted(wanted):
        raise Refused(f"layers have no layout {layout}")
    return b.transpose(x, [layout.index(axis) for axis in wanted])


def window(a: Attrs, rank: int) -> dict[str, tuple[int, ...]]:
    """Strides, dilations and pads as ONNX calls them."""
    strides, dilations = several(a.strides, rank), several(a.dilation, rank)
    return {"strides": strides, "dilations": dilations, "pads": both_ends(a.padding, rank)}


def _convolution(rank: int, transposed: bool, b: Layers, a: Attrs, t: TensorType, x: Value, w: Value) -> Value:
    plain, kernel = "NC" + SPACE[rank], ("IO" if transposed else "OI") + SPACE[rank]
    more = {"output_padding": several(a.output_padding, rank)} if transposed else {}
    made = b.onnx(
        "ConvTranspose" if transposed else "Conv",
        ordered(b, x, a.data_layout, plain),
        ordered(b, w, a.kernel_layout, kernel),
        **window(a, rank),
        **more,
        group=a.groups,
    )
    return ordered(b, made, plain, a.out_layout or a.data_layout)


def _pool(rank: int, name: str, b: Layers, a: Attrs, t: TensorType, x: Value) -> Value:
    plain, size = "NC" + SPACE[rank], several(a.pool_size, rank)
    more = {"count_include_pad": int(a.count_include_pad)} if name == "AveragePool" else {}
    made = b.onnx(
        name, ordered(b, x, a.layout, plain), kernel_shape=size, **window(a, rank), **more, ceil_mode=int(a.ceil_mode)
    )
    return ordered(b, made, plain, a.out_layout or a.layout)


def _shares(rank: int, name: str, b: Layers, a: Attrs, t: TensorType, x: Value) -> Value:
    """Pooling to so many shares of each axis, which are windows where they are even."""
    plain, out = "NC" + SPACE[rank], a.out_layout or a.layout
    image = ordered(b, x, a.layout, plain)
    counts = [t.concrete_shape[out.index(axis)] for axis in SPACE[rank]]
    if any(size % n for size, n in zip(image.shape[2:], counts, strict=True)):
        raise Refused(f"{list(image.shape[2:])} elements have no even shares of {counts}")
    size = [size // n for size, n in zip(image.shape[2:], counts, strict=True)]
    return ordered(b, b.onnx(name, image, kernel_shape=size, strides=size), plain, out)


for _rank in SPACE:
    form(f"nn.conv{_rank}d")(partial(_convolution, _rank, False))
    form(f"nn.conv{_rank}d_transpose")(partial(_convolution, _rank, True))
    for _kind, _onnx in (("max", "MaxPool"), ("avg", "AveragePool")):
        form(f"nn.{_kind}_pool{_rank}d")(partial(_pool, _rank, _onnx))
        form(f"nn.adaptive_{_kind}_pool{_rank}d")(partial(_shares, _rank, _onnx))
        if _rank == 2:
            form(f"nn.global_{_kind}_pool2d")(partial(_shares, _rank, _onnx))


# ---------------------------------------------------------------------------------------- products, sums, normalisation


@form("nn.dense")
def dense(b: Layers, a: object, t: TensorType, x: Value, w: Value) -> Value:
    return b.onnx("MatMul", x, b.transpose(w, (1, 0)))


@form("nn.matmul", "nn.batch_matmul")
def matmul(b: Layers, a: Attrs, t: TensorType, x: Value, y: Value) -> Value:
    def swapped(v: Value, flag: bool) -> Value:
        return b.transpose(v, (*range(v.rank - 2), v.rank - 1, v.rank - 2)) if flag else v

    return b.onnx("MatMul", swapped(x, a.transpose_a), swapped(y, a.transpose_b))


def _reduction(name: str, b: Layers, a: Attrs, t: TensorType, x: Value) -> Value:
    axes = reduced_axes(a, x.rank)
    return b.reshape(b.onnx(name, x, ints(axes)), t.concrete_shape) if axes else x


for _name, _onnx in SAME_REDUCTIONS.items():
    form(_name)(partial(_reduction, _onnx))


def _softmax(name: str, b: Layers, a: Attrs, t: TensorType, x: Value) -> Value:
    return b.onnx(name, x, axis=a.axis)


form("nn.softmax")(partial(_softmax, "Softmax"))
form("nn.log_softmax")(partial(_softmax, "LogSoftmax"))


@form("nn.lrn")
def lrn(b: Layers, a: Attrs, t: TensorType, x: Value) -> Value:
    if x.axis(a.axis) != 1:
        raise Refused(f"its axis is {a.axis}; the layer goes over the channels")
    return b.onnx("LRN", x, size=a.size, alpha=float(a.alpha), beta=float(a.beta), bias=float(a.bias))


# ---------------------------------------------------------------------------------------------------------------- moves


@form("reshape", "squeeze", "expand_dims", "nn.batch_flatten")
def reshape(b: Layers, a: Attrs, t: TensorType, x: Value) -> Value:
    return b.reshape(x, t.concrete_shape)


@form("transpose")
def transpose(b: Layers, a: Attrs, t: TensorType, x: Value) -> Value:
    axes = reversed(range(x.rank)) if not a.axes else axes_of(a.axes, x.rank)
    return b.transpose(x, list(axes))


@form("concatenate")
def concatenate(b: Layers, a: Attrs, t: TensorType, xs: list[Value]) -> Value:
    return b.onnx("Concat", *xs, axis=a.axis)


@form("split")
def split_(b: Layers, a: Attrs, t: TupleType, x: Value) -> list[Value]:
    axis = axis_of(a.axis, x.rank)
    return b.split(x, axis, [f.concrete_shape[axis] for f in t.fields if isinstance(f, TensorType)])


@form("strided_slice")
def strided_slice(b: Layers, a: Attrs, t: TensorType, x: Value) -> Value:
    cuts = slices(a, x.rank)
    spans = [cut(*limits, x.shape[d]) for d, limits in cuts.items()]
    steps = [stride for _, _, stride in cuts.values()]
    ends = [end if end >= 0 else -x.shape[d] - 1 for d, (_, end, _) in zip(cuts, spans, strict=True)]
    return b.onnx("Slice", x, ints([begin for begin, _, _ in spans]), ints(ends), ints([*cuts]), ints(steps))


@form("nn.pad")
def pad(b: Layers, a: Attrs, t: TensorType, x: Value, value: Value) -> Value:
    pads = [before for before, _ in a.pad_width] + [after for _, after in a.pad_width]
    return b.onnx("Pad", x, ints(pads), value, mode=a.pad_mode)


@form("tile")
def tile(b: Layers, a: Attrs, t: TensorType, x: Value) -> Value:
    rank = max(x.rank, len(a.reps))
    return b.onnx("Tile", b.ranked(x, rank), ints([*(1,) * (rank - len(a.reps)), *a.reps]))


@form("broadcast_to")
def broadcast_to(b: Layers, a: object, t: TensorType, x: Value) -> Value:
    return b.onnx("Expand", x, ints(t.concrete_shape))
