"""Shapes and the places of elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.importers.building import Building
from compassc.importers.onnx.operators import movement
from compassc.importers.onnx.operators.indexing import gather, gather_nd, one_hot, scatter_nd, top_k
from compassc.importers.onnx.operators.quantised import Levels, as_marked, marked
from compassc.importers.onnx.operators.shuffles import shuffled
from compassc.importers.tflite.convert import Conversion
from compassc.importers.tflite.declare import Call, Constant, moves, operator, quantised, refuse
from compassc.importers.tflite.source import names_of
from compassc.importers.values import Refused, Value

Ints = Sequence[int]
FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)


def whole(array: Array) -> list[int]:
    return [int(v) for v in array.reshape(-1)]


def reshaped(b: Building, x: Value, shape: Ints) -> Value:
    """In another shape, of which one size may be -1."""
    wanted = list(shape)
    if wanted.count(-1) == 1:
        rest = int(np.prod([d for d in wanted if d != -1], dtype=object))
        wanted[wanted.index(-1)] = x.count // rest if rest else 0
    if min(wanted, default=0) < 0 or int(np.prod(wanted, dtype=object)) != x.count:
        raise Refused(f"{x.count} elements of {list(x.shape)} do not go into {list(shape)}")
    return shuffled(b, x, tuple(wanted)) or b.reshape(x, wanted)


@operator("RESHAPE")
def reshape(b: Building, x: Value, shape: Constant | None = None, *, new_shape: Ints = ()) -> Value:
    return reshaped(b, x, list(new_shape) if shape is None else whole(shape))


@operator("SQUEEZE")
def squeeze(b: Building, x: Value, *, squeeze_dims: Ints = ()) -> Value:
    return b.squeeze(x, squeeze_dims or [a for a, size in enumerate(x.shape) if size == 1])


@operator("EXPAND_DIMS")
def expand_dims(b: Building, x: Value, axis: Constant) -> Value:
    return b.unsqueeze(x, whole(axis))


@operator("TRANSPOSE")
def transpose(b: Building, x: Value, perm: Constant) -> Value:
    listed = [p + x.rank if p < 0 else p for p in whole(perm)]
    if sorted(listed) != list(range(x.rank)):
        raise Refused(f"{listed} is no order of {x.rank} axes")
    return b.transpose(x, listed)


@operator("CONCATENATION")
def concatenation(b: Building, *xs: Value, axis: int) -> Value:
    return b.concat(*xs, axis=axis)


@operator("PACK")
def pack(b: Building, *xs: Value, values_count: int, axis: int = 0) -> Value:
    at = axis + xs[0].rank + 1 if axis < 0 else axis
    return b.concat(*(b.unsqueeze(x, [at]) for x in xs), axis=at)


@operator("UNPACK")
def unpack(b: Building, x: Value, *, num: int, axis: int = 0) -> list[Value]:
    at = x.axis(axis)
    return [b.squeeze(part, [at]) for part in b.split(x, at, [1] * num)]


@operator("SPLIT")
def split(b: Building, axis: Constant, x: Value, *, num_splits: int) -> list[Value]:
    at = x.axis(whole(axis)[0])
    if num_splits < 1 or x.shape[at] % num_splits:
        raise Refused(f"{x.shape[at]} elements do not divide into {num_splits} parts")
    return b.split(x, at, [x.shape[at] // num_splits] * num_splits)


@operator("SPLIT_V")
def split_v(b: Building, x: Value, sizes: Constant, axis: Constant, *, num_splits: int) -> list[Value]:
    at, listed = x.axis(whole(axis)[0]), whole(sizes)
    if listed.count(-1) == 1:
        listed[listed.index(-1)] = x.shape[at] - sum(listed) - 1
    return b.split(x, at, listed)


@operator("SLICE")
def slice_of(b: Building, x: Value, begin: Constant, size: Constant) -> Value:
    starts = whole(begin)
    ends = [d if n == -1 else s + n for d, s, n in zip(x.shape, starts, whole(size), strict=True)]
    if any(not 0 <= s <= e <= d for s, e, d in zip(starts, ends, x.shape, strict=True)):
        raise Refused(f"from {starts} to {ends} is no part of {list(x.shape)}")
    return b.sliced(x, starts, ends, [1] * x.rank, range(x.rank))


@operator("STRIDED_SLICE", partly="without offset")
def strided_slice(
    b: Building,
    x: Value,
    begin: Constant,
    end: Constant,
    strides: Constant,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Value:
    """As Python slices, by entries: an ellipsis, a new axis, one element, or a part."""
    entries = list(zip(whole(begin), whole(end), whole(strides), strict=True))
    spans, new, gone, axis = [slice(None)] * x.rank, [], [], 0
    place = 0  # in the result, before axes are taken away
    for i, (first, last, step) in enumerate(entries):
        bit = 1 << i
        if ellipsis_mask & bit:
            later = sum(not new_axis_mask >> j & 1 for j in range(i + 1, len(entries)))
            place += x.rank - later - axis
            axis = x.rank - later
            continue
        if new_axis_mask & bit:
            new.append(place)
            place += 1
            continue
        if axis >= x.rank or step == 0:
            raise Refused(f"its parts {entries} do not fit {list(x.shape)}")
        if shrink_axis_mask & bit:
            at = first + x.shape[axis] if first < 0 else first
            if not 0 <= at < x.shape[axis]:
                raise Refused(f"the element {first} is none of axis {axis} of {list(x.shape)}")
            spans[axis] = slice(at, at + 1, 1)
            gone.append(axis)
        else:
            spans[axis] = slice(None if begin_mask & bit else first, None if end_mask & bit else last, step)
            place += 1
        axis += 1
    made = _parts(b, x, spans)
    made = b.squeeze(made, gone) if gone else made
    return b.unsqueeze(made, new) if new else made


def _parts(b: Building, x: Value, spans: Sequence[slice]) -> Value:
    ranges = [range(*s.indices(size)) for s, size in zip(spans, x.shape, strict=True)]
    if any(len(r) == 0 for r in ranges):
        return Value.of(np.zeros([len(r) for r in ranges], x.dtype))
    ends = [r[-1] + (1 if r.step > 0 else -1) for r in ranges]
    ends = [-size - 1 if e < 0 else e for e, size in zip(ends, x.shape, strict=True)]
    return b.sliced(x, [r.start for r in ranges], ends, [r.step for r in ranges], range(x.rank))


# -- borders


def pads_of(paddings: Array, rank: int) -> list[tuple[int, int]]:
    """What is put before and behind each axis."""
    pairs = paddings.reshape(-1, 2)
    if len(pairs) != rank:
        raise Refused(f"its paddings are for {len(pairs)} axes, its input has {rank}")
    return list(zip(whole(pairs[:, 0]), whole(pairs[:, 1]), strict=True))


@operator("PAD")
def pad(b: Building, x: Value, paddings: Constant) -> Value:
    return movement.padded(b, x, pads_of(paddings, x.rank))


@operator("PADV2")
def pad_v2(b: Building, x: Value, paddings: Constant, value: Constant) -> Value:
    return movement.padded(b, x, pads_of(paddings, x.rank), value=value.reshape(-1)[0].item())


@operator("MIRROR_PAD")
def mirror_pad(b: Building, x: Value, paddings: Constant, *, mode: int) -> Value:
    name = names_of("MirrorPadMode").get(mode, str(mode))
    return movement.padded(b, x, pads_of(paddings, x.rank), name.lower())


@quantised("PAD", "PADV2")
def quantised_pad(b: Conversion, call: Call, out: Levels) -> Value | None:
    """The border of PAD is the integer that stands for 0."""
    found, paddings = call.pair(0), call.inputs[1]
    value = int(out.zero[0])
    if call.operator == "PADV2":
        border = call.pair(0, 2)
        if border is None or border[1].value.array is None or not border[1].levels.matches(out):
            return None
        value = int(border[1].value.array.reshape(-1)[0])
    if found is None or paddings.array is None or not found[0].levels.matches(out):
        return None
    tensor, order = as_marked(b, found[0])
    x = b.value(tensor, out.dtype, order)
    with marked(b, out):
        return movement.padded(b, x, pads_of(paddings.array, x.rank), value=value)


# -- copies and choices


@operator("TILE")
def tile(b: Building, x: Value, repeats: Constant) -> Value:
    return movement.tiled(b, x, whole(repeats))


@operator("BROADCAST_TO")
def broadcast_to(b: Building, x: Value, shape: Constant) -> Value:
    return movement.expand(b, x, shape)


@operator("GATHER")
def gather_along(b: Building, x: Value, indices: Value, *, axis: int = 0, batch_dims: int = 0) -> Value:
    """The first `batch_dims` axes of both go together."""
    if not batch_dims:
        return gather(b, x, indices, axis=axis)
    at, shared = x.axis(axis), batch_dims + indices.rank if batch_dims < 0 else batch_dims
    if not shared <= at or x.shape[:shared] != indices.shape[:shared]:
        raise Refused(f"{list(x.shape)} and {list(indices.shape)} have no {shared} axes in common before axis {at}")
    tensor = b.laid(x)
    shape = (*x.shape[:at], *indices.shape[shared:], *x.shape[at + 1 :])
    made = b.layer("Gather", [tensor, b.laid(indices)], shape, tensor.dtype, axis=at, batch_dims=shared)
    return b.value(made, x.dtype)


@operator("EMBEDDING_LOOKUP")
def embedding_lookup(b: Building, indices: Value, table: Value) -> Value:
    return gather(b, table, indices, axis=0)


@operator("GATHER_ND")
def gather_at(b: Building, x: Value, indices: Value) -> Value:
    return gather_nd(b, x, indices)


@operator("SCATTER_ND")
def scatter_at(b: Building, indices: Value, updates: Value, shape: Constant) -> Value:
    """Elements that fall on one place are added."""
    return scatter_nd(b, Value.of(np.zeros(b.room(*whole(shape)), updates.dtype)), indices, updates, reduction="add")


@operator("REVERSE_V2")
def reverse(b: Building, x: Value, axes: Constant) -> Value:
    spans = [slice(None)] * x.rank
    for axis in whole(axes):
        spans[x.axis(axis)] = slice(None, None, -1)
    return _parts(b, x, spans)


@operator("REVERSE_SEQUENCE")
def reverse_sequence(b: Building, x: Value, lengths: Value, *, seq_dim: int, batch_dim: int = 0) -> Value:
    return movement.reverse_sequence(b, x, lengths, batch_axis=batch_dim, time_axis=seq_dim)


@operator("TOPK_V2")
def topk(b: Building, x: Value, k: Constant) -> list[Value]:
    values, places = top_k(b, x, k)
    return [values, places.typed(np.dtype(np.int32))]


@operator("ONE_HOT")
def one_hot_of(b: Building, indices: Value, depth: Constant, on: Constant, off: Constant, *, axis: int = -1) -> Value:
    return one_hot(b, indices, depth, np.stack([off.reshape(()), on.reshape(())]), axis=axis)


# -- blocks


@operator("DEPTH_TO_SPACE")
def depth_to_space(b: Building, x: Value, *, block_size: int) -> Value:
    return b.transpose(movement.depth_to_space(b, b.transpose(x, FIRST), blocksize=block_size), LAST)


@operator("SPACE_TO_DEPTH")
def space_to_depth(b: Building, x: Value, *, block_size: int) -> Value:
    return b.transpose(movement.space_to_depth(b, b.transpose(x, FIRST), blocksize=block_size), LAST)


@operator("SPACE_TO_BATCH_ND")
def space_to_batch(b: Building, x: Value, block: Constant, paddings: Constant) -> Value:
    """The elements of a block become batches."""
    sizes, pairs = whole(block), paddings.reshape(-1, 2)
    m, rest = len(sizes), x.rank - 1 - len(sizes)
    full = [(0, 0), *((int(p), int(q)) for p, q in pairs), *[(0, 0)] * rest]
    wide = movement.padded(b, x, full)
    n, *spatial = wide.shape[: m + 1]
    if any(d % s for d, s in zip(spatial, sizes, strict=True)):
        raise Refused(f"{spatial} does not divide into blocks of {sizes}")
    cells = [v for d, s in zip(spatial, sizes, strict=True) for v in (d // s, s)]
    blocks = b.reshape(wide, (n, *cells, *wide.shape[m + 1 :]))
    perm = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m + 1, 2), *range(2 * m + 1, 2 * m + 1 + rest)]
    shape = (n * int(np.prod(sizes)), *(d // s for d, s in zip(spatial, sizes, strict=True)), *wide.shape[m + 1 :])
    return b.reshape(b.transpose(blocks, perm), shape)


@operator("BATCH_TO_SPACE_ND")
def batch_to_space(b: Building, x: Value, block: Constant, crops: Constant) -> Value:
    """Batches become the elements of a block."""
    sizes, pairs = whole(block), crops.reshape(-1, 2)
    m, rest = len(sizes), x.rank - 1 - len(sizes)
    n, spatial = x.shape[0] // int(np.prod(sizes)), x.shape[1 : m + 1]
    blocks = b.reshape(x, (*sizes, n, *x.shape[1:]))
    perm = [m, *(v for i in range(m) for v in (m + 1 + i, i)), *range(2 * m + 1, 2 * m + 1 + rest)]
    shape = (n, *(d * s for d, s in zip(spatial, sizes, strict=True)), *x.shape[m + 1 :])
    whole_image = b.reshape(b.transpose(blocks, perm), shape)
    begin = whole(pairs[:, 0])
    end = [d - int(q) for d, q in zip(shape[1 : m + 1], pairs[:, 1], strict=True)]
    return b.sliced(whole_image, begin, end, [1] * m, range(1, m + 1))


moves(
    *"RESHAPE SQUEEZE EXPAND_DIMS TRANSPOSE CONCATENATION PACK UNPACK SPLIT SPLIT_V SLICE STRIDED_SLICE".split(),
    *"MIRROR_PAD TILE BROADCAST_TO GATHER GATHER_ND EMBEDDING_LOOKUP REVERSE_V2 DEPTH_TO_SPACE SPACE_TO_DEPTH".split(),
    "BATCH_TO_SPACE_ND",
)

# -- sizes and filled tensors


@operator("SHAPE")
def shape_of(b: Conversion, x: Value, *, out_type: int = 0) -> Value:
    return Value.of(np.asarray(x.shape, b.output_types[0]))


@operator("RANK")
def rank_of(b: Building, x: Value) -> Value:
    return Value.of(np.asarray(x.rank, np.int32))


@operator("FILL")
def fill(b: Building, dims: Constant, value: Value) -> Value:
    if value.array is not None:
        return Value.of(np.full(b.room(*whole(dims)), value.array.reshape(-1)[0]))
    return movement.tiled(b, b.reshape(value, (1,) * len(whole(dims))), whole(dims))


@operator("RANGE")
def numbers(b: Building, start: Constant, limit: Constant, delta: Constant) -> Value:
    ends = [float(v.item()) for v in (start, limit, delta)]
    b.room(max(0, int(-((ends[0] - ends[1]) // ends[2]))))
    return Value.of(np.arange(start.item(), limit.item(), delta.item()).astype(start.dtype))


refuse(
    "how many results it gives follows from the values; compute it behind the network",
    "WHERE",
    "UNIQUE",
    "NON_MAX_SUPPRESSION_V4",
    "NON_MAX_SUPPRESSION_V5",
)
