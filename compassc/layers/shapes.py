"""Shape inference: the shapes of a layer's outputs from those of its inputs, by rules per layer type.

A rule gives a shape per output, or None where the inputs do not tell. It computes nothing: sizes may be any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from compass_core.lazy import LazyModule
from compassc.graph import Layer, LayerError
from compassc.layers import moved_shapes as moved
from compassc.layers.declare import LayerType, consistent, find_type
from compassc.layers.families.movement.reference import gathered
from compassc.layers.windows import window_of
from compassc.operators.patterns import PatternKind

if TYPE_CHECKING:
    from compassc.layers.families.recurrent import reference as recurrences
else:
    recurrences = LazyModule("compassc.layers.families.recurrent.reference")

Shape = tuple[int, ...]
Shapes = list[Shape] | None
ShapeRule = Callable[[Layer], Shapes]
"""A rule: the shapes of a layer's outputs; None where they cannot be inferred."""


def shapes_of(layer: Layer) -> Shapes:
    """The output shapes of a layer; None where they cannot be inferred. LayerError for inputs and attributes that contradict."""
    declared = find_type(layer.type)
    if declared is None or declared.refused:
        return None
    with np.errstate(all="ignore"), consistent(layer):
        return rule_of(declared)(layer)


def rule_of(declared: LayerType) -> ShapeRule:
    if declared.name in RULES:
        return RULES[declared.name]
    if declared.pattern is PatternKind.ELEMENTWISE:
        return same
    if declared.pattern is PatternKind.BROADCAST:
        return broadcast
    return unknown


def unknown(layer: Layer) -> Shapes:
    """The shapes cannot be inferred."""
    return None


def same(layer: Layer) -> Shapes:
    """Of the first input."""
    return [tuple(layer.input.shape)] * len(layer.outputs)


def broadcast(layer: Layer) -> Shapes:
    """Of all inputs together; of one alone there may be other rules."""
    return [np.broadcast_shapes(*(t.shape for t in layer.inputs))] * len(layer.outputs)


def reduced(layer: Layer) -> Shapes:
    """The reduced axes are kept with size 1, or dropped, as `keepdims` says."""
    axes, keep = set(layer.axes()), layer.flag("keepdims", True)
    shape = tuple(1 if i in axes else n for i, n in enumerate(layer.input.shape) if keep or i not in axes)
    return [shape] * len(layer.outputs)


# -- moves


def transpose(layer: Layer) -> Shapes:
    shape, perm = layer.input.shape, layer.integers("perm")
    if sorted(perm) != list(range(len(shape))):
        raise LayerError(f"'perm' is {perm}, but the input has {len(shape)} dimensions")
    return [tuple(shape[p] for p in perm)]


def reshape(layer: Layer) -> Shapes:
    """The attribute `shape`, where one size may be -1; without it the declared one, if the elements are as many."""
    given = layer.integers("shape") if layer.has("shape") else list(layer.output.shape)
    count = layer.input.count
    if given.count(-1) == 1:
        known = -int(np.prod(given))
        given = [count // known if n == -1 and known else n for n in given]
    if int(np.prod(given)) != count or min(given, default=0) < 0:
        raise LayerError(f"the {count} elements of {list(layer.input.shape)} do not make {given}")
    return [tuple(given)]


def gather(layer: Layer) -> Shapes:
    operands = gathered(layer)
    x, index = operands.data.shape, operands.places.shape
    axis, batch = operands.axis(layer), layer.integer("batch_dims", 0)
    return [(*x[:axis], *index[batch:], *x[axis + 1 :])]


def gather_nd(layer: Layer) -> Shapes:
    x, index = (t.shape for t in layer.inputs[:2])
    batch = layer.integer("batch_dims", 0)
    return [(*index[:-1], *x[batch + index[-1] :])]


def split(layer: Layer) -> Shapes:
    axis, sizes, shape = layer.axis(), layer.integers("splits"), layer.input.shape
    if sum(sizes) != shape[axis]:
        raise LayerError(f"'splits' is {sizes}, but axis {axis} has {shape[axis]} elements")
    return [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]


def channel_shuffle(layer: Layer) -> Shapes:
    many, (*lead, channels) = layer.integer("splits", 1), layer.input.shape
    if many < 1 or channels % many:
        raise LayerError(f"'splits' is {many}, but '{layer.input.name}' has {channels} channels")
    return [(*lead, channels // many)] * many


def depth_to_space(layer: Layer) -> Shapes:
    n, h, w, c = layer.input.shape
    by, bx = layer.integer("block_size_y"), layer.integer("block_size_x")
    if by < 1 or bx < 1 or c % (by * bx):
        raise LayerError(f"'block_size_y' is {by} and 'block_size_x' {bx}, but '{layer.input.name}' has {c} channels")
    return [(n, h * by, w * bx, c // (by * bx))]


def space_to_depth(layer: Layer) -> Shapes:
    (n, h, w, c), b = layer.input.shape, layer.integer("block_size_x")
    if b < 1 or h % b or w % b:
        raise LayerError(f"'block_size_x' is {b}, but '{layer.input.name}' is an image of {h} x {w}")
    return [(n, h // b, w // b, c * b * b)]


# -- windows and products


def convolution(layer: Layer) -> Shapes:
    """Positions of the window, and an output channel for each filter."""
    x, filters = layer.input.shape, layer.constant("weights").shape[0]
    return [(x[0], *window_of(layer).positions(x[1:-1]), filters)]


def transposed_convolution(layer: Layer) -> Shapes:
    window, x = window_of(layer), layer.input.shape
    axes = {1: "x", 2: "yx", 3: "zyx"}[len(x) - 2]
    sizes = [
        stride * (n - 1) + layer.integer(f"output_padding_{axis}", 0) + reach - before - after
        for axis, n, stride, reach, (before, after) in zip(
            axes, x[1:-1], window.stride, window.reach, window.pads, strict=True
        )
    ]
    return [(x[0], *sizes, layer.constant("weights").shape[0] * layer.integer("group", 1))]


def pooling(layer: Layer) -> Shapes:
    """By `ceil_mode`; a declared shape that is one of the two possible ones decides."""
    x = layer.input.shape
    if layer.type == "GlobalPool" and not layer.has("kernel_x"):
        return [(x[0], *(1 for _ in x[1:-1]), x[-1])]
    window = window_of(layer)
    found = [(x[0], *window.positions(x[1:-1], ceil), x[-1]) for ceil in (False, True)]
    declared = layer.output.shape
    return [declared if declared in found else found[layer.flag("ceil_mode", False)]] * len(layer.outputs)


def fully_connected(layer: Layer) -> Shapes:
    outputs, inputs = layer.constant("weights").shape[0], layer.constant("weights")[0].size
    x = layer.input.shape
    if not x or x[-1] != inputs:
        raise LayerError(f"an input of shape {list(x)} for weights of {inputs} inputs")
    return [(*x[:-1], outputs)]


def matmul(layer: Layer) -> Shapes:
    a, b = (
        (*t.shape[:-2], t.shape[-1], t.shape[-2]) if layer.flag(key, False) else t.shape
        for t, key in zip(layer.inputs[:2], ("trans_a", "trans_b"), strict=True)
    )
    if a[-1] != b[-2]:
        raise LayerError(f"products of {list(a)} and {list(b)}")
    return [(*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])]


def resize(layer: Layer) -> Shapes:
    """By the ratios where these give integers, else the declared sizes."""
    n, *sizes, c = layer.input.shape
    ratios = [layer.number(f"ratio_{axis}", 0) for axis in {1: "x", 2: "yx", 3: "zyx"}.get(len(sizes), "")]
    if len(layer.inputs) > 1 or not ratios or not all(r > 0 and float(r).is_integer() for r in ratios):
        return None
    return [(n, *(int(size * r) for size, r in zip(sizes, ratios, strict=True)), c)]


def recurrent(layer: Layer) -> Shapes:
    """The states of all steps, or the last ones, as the outputs are named."""
    (samples, steps, features), whole = layer.input.shape, {"Y"}
    cell = layer.constant("weights").shape[1] - features
    names = ["Y", "H"][: len(layer.outputs)] if layer.type == "RNN" else recurrences.output_names(layer)
    if layer.type.startswith("GRU"):
        whole = {"Y", "H"}
    return [(samples, steps, cell) if name in whole else (samples, cell) for name in names]


def _by_type(*rows: tuple[ShapeRule, str]) -> dict[str, ShapeRule]:
    return {name: rule for rule, names in rows for name in names.split()}


RULES: dict[str, ShapeRule] = _by_type(
    (
        same,
        "BatchNorm BiasAdd FixedPoint Softmax LogSoftmax Hardmax LRN Cumulate ReverseSequence ScatterElements ScatterND",
    ),
    (same, "InstanceNorm GroupNorm RMSNorm MVN Normalization NoOp Dummy"),
    (same, "Sort"),
    (reduced, "Moments"),
    (moved.kept, "Reduce ArgMinMax"),
    (moved.normalised, "LayerNorm"),
    (moved.one_hot, "OneHot"),
    (moved.dimensions, "Shape"),
    (moved.meshgrid, "Meshgrid"),
    (moved.concat, "Concat"),
    (moved.tile, "Tile"),
    (moved.pad, "Pad"),
    (moved.sliced, "Slice StridedSlice"),
    (moved.cropped, "Crop"),
    (moved.picked, "GatherElements"),
    (moved.batch_to_space, "BatchToSpace"),
    (moved.batch_to_space_nd, "BatchToSpaceND"),
    (moved.space_to_batch, "SpaceToBatch"),
    (moved.batch_to_depth, "BatchToDepth"),
    (moved.side_by_side, "DataStride"),
    (reshape, "Reshape Squeeze Unsqueeze Flatten"),
    (transpose, "Transpose Permute"),
    (split, "Split"),
    (channel_shuffle, "ChannelShuffle"),
    (depth_to_space, "DepthToSpace"),
    (space_to_depth, "SpaceToDepth"),
    (gather, "Gather"),
    (gather_nd, "GatherND"),
    (convolution, "Convolution DepthwiseConv Convolution3D ConvInteger"),
    (transposed_convolution, "ConvTranspose ConvTranspose3D"),
    (pooling, "Pooling GlobalPool Pooling3D MaxPoolingWithArgMax"),
    (fully_connected, "FullyConnected"),
    (matmul, "MatMul MatMulInteger Gemm"),
    (resize, "Resize Interp"),
    (recurrent, "BasicLSTM GRUv1 GRUv3 RNN"),
)
"""Types whose rule is not that of their pattern."""
