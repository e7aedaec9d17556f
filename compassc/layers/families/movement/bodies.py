"""Layers that move elements by operators."""

from __future__ import annotations

from compassc.graph import Layer, LayerError
from compassc.layers.families.movement.reference import slice_indices
from compassc.operators.calls import Calls, Operand, Outputs


def reshape_body(call: Calls, layer: Layer, x: Operand) -> Outputs:
    return call("reshape", x, list(layer.output.shape))


def transpose_body(call: Calls, layer: Layer, x: Operand) -> Outputs:
    return call("transpose", x, layer.integers("perm"))


def concat_body(call: Calls, layer: Layer, *x: Operand) -> Outputs:
    return call("concatenate", list(x), layer.axis())


def split_body(call: Calls, layer: Layer, x: Operand) -> Outputs:
    sizes = layer.integers("splits")
    return call("split", x, [sum(sizes[: n + 1]) for n in range(len(sizes) - 1)], layer.axis())


def slice_body(call: Calls, layer: Layer, x: Operand, *dynamic: Operand) -> Outputs:
    if dynamic:
        raise LayerError("its ends are inputs, which no operator takes")
    rows = zip(*(layer.integers(key) for key in ("begin", "end", "strides")), layer.input.shape, strict=True)
    return _taken(call, layer, x, [slice_indices(*row) for row in rows])


def _taken(call: Calls, layer: Layer, x: Operand, indices: list[range]) -> Operand:
    """The elements at these indices of each axis."""
    ends = [r.stop if r.stop >= 0 else -n - 1 for r, n in zip(indices, layer.input.shape, strict=True)]
    return call("strided_slice", x, [r.start for r in indices], ends, [r.step for r in indices])


def crop_body(call: Calls, layer: Layer, x: Operand) -> Outputs:
    rows = zip(layer.pairs("crops"), layer.input.shape, strict=True)
    return _taken(call, layer, x, [range(n)[slice(begin, end)] for (begin, end), n in rows])


def tile_body(call: Calls, layer: Layer, x: Operand) -> Outputs:
    return call("tile", x, layer.integers("repeats"))


def pad_body(call: Calls, layer: Layer, x: Operand) -> Outputs:
    pads = layer.pairs("pads")
    if layer.word("mode", "CONSTANT") != "CONSTANT" or any(n < 0 for pair in pads for n in pair):
        raise LayerError("the operator pads with a constant, and cuts nothing off")
    value = layer.number("constant_value", 0)
    integer = layer.input.is_integer
    return call("pad", x, *([p[n] for p in pads] for n in (0, 1)), round(value) if integer else value)


def no_op_body(call: Calls, layer: Layer, x: Operand) -> Outputs:
    return call("identity", x)


def depth_to_space_body(call: Calls, layer: Layer, x: Operand) -> Outputs:
    (n, h, w, c), b = layer.input.shape, (layer.integer("block_size_y"), layer.integer("block_size_x"))
    depth = c // (b[0] * b[1])
    if layer.word("mode", "DCR") == "DCR":
        shape, order = [n, h, w, *b, depth], [0, 1, 3, 2, 4, 5]
    else:
        shape, order = [n, h, w, depth, *b], [0, 1, 4, 2, 5, 3]
    return call("reshape", call("transpose", call("reshape", x, shape), order), list(layer.output.shape))
