"""Shapes and the places of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from compassc.importers.building import Building
from compassc.importers.onnx.declare import Constant, operator, refuse
from compassc.importers.onnx.operators.shuffles import shuffled
from compassc.importers.onnx.protobuf import numpy_type
from compassc.importers.values import Order, Refused, Value, channels_last, fitting

if TYPE_CHECKING:
    from compassc.importers.onnx.convert import Conversion

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


@operator("Squeeze")
def squeeze(b: Building, x: Value, axes: Constant | None = None) -> Value:
    return b.squeeze(x, [a for a, n in enumerate(x.shape) if n == 1] if axes is None else [int(a) for a in axes])


@operator("Unsqueeze")
def unsqueeze(b: Building, x: Value, axes: Constant) -> Value:
    return b.unsqueeze(x, [int(a) for a in axes.reshape(-1)])


@operator("Transpose")
def transpose(b: Building, x: Value, *, perm: Sequence[int] | None = None) -> Value:
    if perm is not None and sorted(perm) != list(range(x.rank)):
        raise Refused(f"its perm {list(perm)} is no order of {x.rank} axes")
    return b.transpose(x, list(reversed(range(x.rank))) if perm is None else perm)


@operator("Shape")
def shape_of(b: Building, x: Value, *, start: int = 0, end: int = LARGEST) -> Value:
    return Value.of(np.asarray(x.shape[slice(start, end)], np.int64))


@operator("Size")
def size_of(b: Building, x: Value) -> Value:
    return Value.of(np.asarray(x.count, np.int64))


@operator("EyeLike", since=9)
def eye_like(b: Building, x: Value, *, dtype: int | None = None, k: int = 0) -> Value:
    rows, columns = b.room(*x.shape)
    return Value.of(np.eye(rows, columns, k).astype(x.dtype if dtype is None else numpy_type(dtype)))


@operator("Concat", since=4)
def concat(b: Building, *xs: Value, axis: int) -> Value:
    """In the order of axes that most of the operands have."""
    at = xs[0].axis(axis)
    xs = tuple(x for x in xs if x.shape[at]) or xs[:1]
    if len(xs) == 1:
        return xs[0]
    if all(x.array is not None for x in xs):
        b.room(sum(x.count for x in xs))
        return Value.of(np.concatenate([x.array for x in xs if x.array is not None], at))
    sizes: dict[Order, int] = {}
    for x in xs:
        if x.tensor is not None:
            sizes[x.order] = sizes.get(x.order, 0) + x.count
    order = max(sizes, key=lambda o: (sizes[o], o))
    tensors = [b.laid(x, order) for x in xs]
    shape = list(tensors[0].shape)
    place = order.index(at)
    shape[place] = sum(t.shape[place] for t in tensors)
    return b.value(b.layer("Concat", tensors, shape, tensors[0].dtype, axis=place), xs[0].dtype, order)


def split(b: Building, x: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    """Parts along an axis."""
    at = x.axis(axis)
    if sum(sizes) != x.shape[at]:
        raise Refused(f"the parts {list(sizes)} are not the {x.shape[at]} elements of axis {at}")
    if len(sizes) == 1:
        return [x]
    if x.array is not None:
        return [Value.of(part) for part in np.split(x.array, np.cumsum(sizes)[:-1], at)]
    tensor, order = b.stored(x)
    place = order.index(at)
    shapes = [[size if i == place else d for i, d in enumerate(tensor.shape)] for size in sizes]
    kind = tensor.dtype
    made = b.layers_of("Split", [tensor], [(s, kind) for s in shapes], axis=place, splits=[int(s) for s in sizes])
    return [b.value(t, x.dtype, order) for t in made]


@operator("Split", since=2)
def split_input(
    b: Conversion, x: Value, sizes: Constant | None = None, *, axis: int = 0, num_outputs: int | None = None
) -> list[Value]:
    if sizes is not None:
        return split(b, x, axis, [int(s) for s in sizes])
    many = num_outputs or len(b.outputs())
    size, each = x.shape[x.axis(axis)], -(-x.shape[x.axis(axis)] // many)
    if num_outputs is None and size % many:
        raise Refused(f"{size} elements do not divide into {many} parts")
    return split(b, x, axis, [min(each, size - each * i) for i in range(many)])


def sliced(
    b: Building, x: Value, begin: Sequence[int], end: Sequence[int], step: Sequence[int], axes: Sequence[int]
) -> Value:
    """A slice of a tensor, with Python's rules for bounds outside of it."""
    at = {x.axis(a): slice(*_limits(s, e, t)) for a, s, e, t in zip(axes, begin, end, step, strict=True)}
    spans = [range(*at.get(a, slice(None)).indices(size)) for a, size in enumerate(x.shape)]
    if x.array is not None:
        return Value.of(x.array[tuple(at.get(a, slice(None)) for a in range(x.rank))])
    if all(len(s) == size and s.step == 1 for s, size in zip(spans, x.shape, strict=True)):
        return x
    tensor, order = b.stored(x)
    shape = [len(spans[a]) for a in order]
    stops = [s.stop if s.stop >= 0 else -x.shape[a] - 1 for a, s in enumerate(spans)]
    made = b.layer(
        "Slice",
        [tensor],
        shape,
        tensor.dtype,
        begin=[spans[a].start for a in order],
        end=[stops[a] for a in order],
        strides=[spans[a].step for a in order],
    )
    return b.value(made, x.dtype, order)


def _limits(begin: int, end: int, step: int) -> tuple[int, int | None, int]:
    if step == 0:
        raise Refused("its step is 0")
    return begin, end, step


@operator("Slice")
def slice_inputs(
    b: Building, x: Value, starts: Constant, ends: Constant, axes: Constant | None = None, steps: Constant | None = None
) -> Value:
    count = starts.size
    return sliced(
        b,
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
    listed = [int(p) for p in pads]
    if axes is not None:
        full, many = [0] * (2 * x.rank), len(axes)
        for i, a in enumerate(int(v) for v in axes):
            full[x.axis(a)], full[x.axis(a) + x.rank] = listed[i], listed[i + many]
        listed = full
    return padded(b, x, listed, mode, 0 if value is None else fitting(value).reshape(-1)[0].item())


def padded(b: Building, x: Value, pads: Sequence[int], mode: str, value: float) -> Value:
    """With a border; `pads`: all begins, then all ends. Negative ones cut off first."""
    pairs = list(zip(pads[: x.rank], pads[x.rank :], strict=True))
    if any(p < 0 for pair in pairs for p in pair):
        begin = [max(0, -p) for p, _ in pairs]
        end = [size - max(0, -q) for size, (_, q) in zip(x.shape, pairs, strict=True)]
        x = sliced(b, x, begin, end, [1] * x.rank, range(x.rank))
        pairs = [(max(p, 0), max(q, 0)) for p, q in pairs]
    if not any(p or q for p, q in pairs):
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


@operator("CenterCropPad", since=18)
def center_crop_pad(b: Building, x: Value, shape: Constant, *, axes: Sequence[int] | None = None) -> Value:
    listed = range(x.rank) if axes is None else [x.axis(a) for a in axes]
    pads = [0] * (2 * x.rank)
    for a, size in zip(listed, (int(d) for d in shape), strict=True):
        missing = size - x.shape[a]
        first = missing // 2 if missing >= 0 else -(-missing // 2)
        pads[a], pads[a + x.rank] = first, missing - first
    return padded(b, x, pads, "constant", 0)


@operator("DepthToSpace")
def depth_to_space(b: Building, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    n, c, h, w = x.shape
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


@operator("ConcatFromSequence", since=11)
def concat_from_sequence(b: Building, xs: list[Value], *, axis: int, new_axis: int = 0) -> Value:
    if new_axis:
        xs = [b.unsqueeze(x, [axis if axis >= 0 else axis + x.rank + 1]) for x in xs]
    return concat(b, *xs, axis=axis)


refuse(
    "how many results it gives follows from the values; compute it behind the network",
    "NonZero",
    "Unique",
)
