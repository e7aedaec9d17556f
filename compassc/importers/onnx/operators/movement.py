"""Shapes and the places of elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compassc.importers.building import Building
from compassc.importers.onnx.common.shapes import cut_off, pairs_of
from compassc.importers.onnx.declare import Constant, operator, refuse
from compassc.importers.onnx.operators.shuffles import shuffled
from compassc.importers.values import Refused, Value, channels_last, fitting

LARGEST = 1 << 62


@operator("Reshape", since=5)
def reshape(b: Building, x: Value, shape: Constant, *, allowzero: int = 0) -> Value:
    wanted = [int(d) for d in shape]
    if not allowzero:
        wanted = [x.shape[i] if d == 0 else d for i, d in enumerate(wanted)]
    if -1 in wanted:
        rest = int(np.prod([d for d in wanted if d != -1], dtype=np.int64))
        if not rest or x.count % rest:
            raise Refused(f"{x.count} elements of {list(x.shape)} do not go into {[int(d) for d in shape]}")
        wanted[wanted.index(-1)] = x.count // rest
    if int(np.prod(wanted, dtype=np.int64)) != x.count:
        raise Refused(f"{x.count} elements of {list(x.shape)} do not go into {[int(d) for d in shape]}")
    return shuffled(b, x, tuple(wanted)) or b.reshape(x, wanted)


@operator("Flatten")
def flatten(b: Building, x: Value, *, axis: int = 1) -> Value:
    at = axis + x.rank if axis < 0 else axis
    return b.reshape(x, (int(np.prod(x.shape[:at])), int(np.prod(x.shape[at:]))))


@operator("Shape")
def shape_of(b: Building, x: Value, *, start: int = 0, end: int = LARGEST) -> Value:
    return Value.of(np.asarray(x.shape[slice(start, end)], np.int64))


@operator("Size")
def size_of(b: Building, x: Value) -> Value:
    return Value.of(np.asarray(x.count, np.int64))


@operator("Slice")
def slice_inputs(
    b: Building, x: Value, starts: Constant, ends: Constant, axes: Constant | None = None, steps: Constant | None = None
) -> Value:
    count = starts.size
    return b.sliced(
        x,
        [int(v) for v in starts],
        [int(v) for v in ends],
        [1] * count if steps is None else [int(v) for v in steps],
        range(count) if axes is None else [int(v) for v in axes],
    )


@operator("Expand", since=8)
def expand(b: Building, x: Value, shape: Constant) -> Value:
    target = np.broadcast_shapes(x.shape, tuple(int(d) for d in shape))
    return tiled(
        b,
        b.ranked(x, len(target)),
        [t // max(d, 1) if d == 1 else 1 for t, d in zip(target, (1,) * (len(target) - x.rank) + x.shape, strict=True)],
    )


def tiled(b: Building, x: Value, repeats: Sequence[int]) -> Value:
    if x.array is not None:
        b.room(x.count, *repeats)
        return Value.of(np.tile(x.array, repeats))
    if all(r == 1 for r in repeats):
        return x
    tensor, order = b.stored(x)
    by = [int(repeats[a]) for a in order]
    shape = [d * r for d, r in zip(tensor.shape, by, strict=True)]
    return b.value(b.layer("Tile", [tensor], shape, tensor.dtype, repeats=by), x.dtype, order)


@operator("Tile", since=6)
def tile(b: Building, x: Value, repeats: Constant) -> Value:
    return tiled(b, x, [int(r) for r in repeats])


@operator("Pad")
def pad(
    b: Building,
    x: Value,
    pads: Constant,
    value: Constant | None = None,
    axes: Constant | None = None,
    *,
    mode: str = "constant",
) -> Value:
    pairs = pairs_of(x, [int(p) for p in pads], axes)
    return padded(b, x, pairs, mode, 0 if value is None else fitting(value).reshape(-1)[0].item())


def padded(b: Building, x: Value, pairs: Sequence[tuple[int, int]], mode: str = "constant", value: float = 0) -> Value:
    """With a border: before and behind each axis. Negative ones cut off first."""
    x, pairs = cut_off(b, x, pairs)
    if not any(map(any, pairs)):
        return x
    tensor, order = b.stored(x)
    ordered = [list(pairs[a]) for a in order]
    shape = [d + p + q for d, (p, q) in zip(tensor.shape, ordered, strict=True)]
    made = b.layer(
        "Pad",
        [tensor],
        shape,
        tensor.dtype,
        mode=mode.upper(),
        pads=ordered,
        constant_value=float(value) if x.is_float else int(value),
    )
    return b.value(made, x.dtype, order)


def _blocks(sizes: Sequence[int], block: int) -> None:
    """Refuse blocks that axes do not have."""
    if block < 1 or any(size % block for size in sizes):
        raise Refused(f"{list(sizes)} elements are no blocks of {block}")


@operator("DepthToSpace")
def depth_to_space(b: Building, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    n, c, h, w = x.shape
    _blocks([c], blocksize * abs(blocksize))
    tensor = b.image(x)
    made = b.layer(
        "DepthToSpace",
        [tensor],
        [n, h * blocksize, w * blocksize, c // blocksize**2],
        tensor.dtype,
        block_size_x=blocksize,
        block_size_y=blocksize,
        mode=mode,
    )
    return b.value(made, x.dtype, channels_last(4))


@operator("SpaceToDepth")
def space_to_depth(b: Building, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    n, c, h, w = x.shape
    _blocks([h, w], blocksize)
    if mode != "DCR":
        wide = b.reshape(x, (n, c, h // blocksize, blocksize, w // blocksize, blocksize))
        moved = b.transpose(wide, (0, 1, 3, 5, 2, 4))
        return b.reshape(moved, (n, c * blocksize**2, h // blocksize, w // blocksize))
    tensor = b.image(x)
    made = b.layer(
        "SpaceToDepth",
        [tensor],
        [n, h // blocksize, w // blocksize, c * blocksize**2],
        tensor.dtype,
        block_size_x=blocksize,
        block_size_y=blocksize,
    )
    return b.value(made, x.dtype, channels_last(4))


@operator("ReverseSequence", since=10)
def reverse_sequence(b: Building, x: Value, lengths: Value, *, batch_axis: int = 1, time_axis: int = 0) -> Value:
    tensor = b.laid(x)
    index = b.laid(lengths)
    made = b.layer(
        "ReverseSequence", [tensor, index], tensor.shape, tensor.dtype, batch_axis=batch_axis, time_axis=time_axis
    )
    return b.value(made, x.dtype)


refuse(
    "how many results it gives follows from the values; compute it behind the network",
    "NonZero",
    "Unique",
)
