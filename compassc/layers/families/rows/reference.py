"""Rows that are summed, gathered or compared by indices, and labels that are decoded."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import requantise

COMBINERS = ("SUM", "MEAN", "SQRTN")


def kind_of(layer: Layer) -> type[np.generic]:
    """The type that sums are made in."""
    return np.int64 if layer.is_quantised else np.float32


def with_zero(layer: Layer, x: Array) -> Array:
    return x.astype(np.int64) + layer.input.scalar_zero if layer.is_quantised else x.astype(np.float32)


def rescaled(layer: Layer, total: Array) -> Array:
    """Sums as the output wants them."""
    if not layer.is_quantised:
        return total
    scale, shift = (int(v.reshape(-1)[0]) for v in layer.scale_shift(of=1))
    out = layer.output
    return requantise(total, scale, shift, out.scalar_zero, out.low, out.high)


def frame_step(layer: Layer) -> tuple[int, int, int, int]:
    """(leading elements, frames, length, step) of an OverlapAdd."""
    shape = layer.input.shape
    if len(shape) < 2 or 0 in shape:
        raise LayerError(f"{list(shape)} are no frames")
    frames, length, step = shape[-2], shape[-1], layer.integer("frame_step", 1)
    if not 1 <= step <= length:
        raise LayerError(f"'frame_step' is {step}, expected 1 to the {length} elements of a frame")
    want = (*shape[:-2], (frames - 1) * step + length)
    if layer.output.shape != want:
        raise LayerError(f"the output is {list(layer.output.shape)}, expected {list(want)}")
    return int(np.prod(shape[:-2], dtype=np.int64)), frames, length, step


def overlap_add(layer: Layer, x: Array) -> Array:
    lead, frames, length, step = frame_step(layer)
    wide = with_zero(layer, x).reshape(lead, frames, length)
    total = np.zeros((lead, (frames - 1) * step + length), wide.dtype)
    for f in range(frames):
        total[:, f * step : f * step + length] += wide[:, f]
    return rescaled(layer, total.reshape(layer.output.shape))


def segment_sizes(layer: Layer) -> tuple[int, int, int, int]:
    """(rows, elements of a row, ids, rows of the result)."""
    if len(layer.inputs) != 2 or not layer.input.shape or not layer.output.shape:
        raise LayerError("it has the inputs rows and ids, and one output")
    layer.word("method", "SUM", ("SUM",))
    x, y, ids = layer.input.shape, layer.output.shape, layer.inputs[1].count
    if x[1:] != y[1:] or 0 in x or ids < 1:
        raise LayerError(f"rows of {list(x)} and {ids} ids do not lead to the shape {list(y)}")
    return x[0], layer.input.count // x[0], ids, y[0]


def segment_reduce(layer: Layer, x: Array, ids: Array) -> Array:
    """Missing ids at the end are the last one, ids without rows have the sum 0."""
    rows, width, many, segments = segment_sizes(layer)
    wide = with_zero(layer, x).reshape(rows, width)
    flat = ids.reshape(-1).astype(np.int64)
    of_row = flat[np.minimum(np.arange(rows), many - 1)]
    total = np.zeros((segments, width), wide.dtype)
    for row, i in zip(wide, of_row, strict=True):
        if 0 <= i < segments:
            total[i] += row
    return rescaled(layer, total.reshape(layer.output.shape))


def lookup_sizes(layer: Layer) -> tuple[int, int, int, int]:
    """(rows of the table, elements of a row, indices, rows of the result)."""
    if len(layer.inputs) != 4 or not layer.input.shape or not layer.output.shape:
        raise LayerError("it has the inputs table, rows, ids and weights, and one output")
    if layer.has("max_norm") and str(layer.attributes["max_norm"]).upper() != "NONE":
        raise LayerError(f"'max_norm' is {layer.attributes['max_norm']}, expected NONE")
    n = layer.inputs[2].count
    x, y = layer.input.shape, layer.output.shape
    if layer.inputs[1].count != n or layer.inputs[3].count != n or x[1:] != y[1:] or 0 in x:
        raise LayerError(f"a table of {list(x)}, {n} ids and {layer.inputs[1].count} rows do not lead to {list(y)}")
    return x[0], layer.input.count // x[0], n, y[0]


def embedding_lookup(layer: Layer, table: Array, rows: Array, ids: Array, weights: Array) -> Array:
    size, width, _, many = lookup_sizes(layer)
    combiner = layer.word("combiner", "MEAN", COMBINERS)
    wide, w = table.astype(np.float32).reshape(size, width), weights.astype(np.float32).reshape(-1)
    total: Array = np.zeros((many, width), np.float32)
    weight: Array = np.zeros(many, np.float32)
    for r, i, factor in zip(rows.reshape(-1).astype(int), ids.reshape(-1).astype(int), w, strict=True):
        if 0 <= r < many and 0 <= i < size:
            total[r] += wide[i] * factor
            weight[r] += factor * factor if combiner == "SQRTN" else factor
    if combiner != "SUM":
        total = total / (np.sqrt(weight) if combiner == "SQRTN" else weight)[:, None]
        total = np.where(np.isfinite(total), total, np.float32(0))
    return total.reshape(layer.output.shape)


def slot_sizes(layer: Layer) -> tuple[int, int, int, int, int]:
    """(images, lists, rows of a list, elements of a row, rows of the result)."""
    x, y = layer.input.shape, layer.output.shape
    if len(x) != 4 or len(y) != 3 or (x[0], x[3]) != (y[0], y[2]) or len(layer.inputs) != x[1] + 1:
        raise LayerError(f"{list(x)} with {len(layer.inputs) - 1} lists of indices does not lead to {list(y)}")
    if any(t.count > x[2] for t in layer.inputs[1:]):
        raise LayerError(f"a list has more than {x[2]} indices")
    return x[0], x[1], x[2], x[3], y[1]


def slot_update(layer: Layer, x: Array, *lists: Array) -> Array:
    n, _, _, width, rows = slot_sizes(layer)
    wide = with_zero(layer, x)
    total = np.zeros((n, rows, width), wide.dtype)
    for s, places in enumerate(lists):
        for k, i in enumerate(places.reshape(-1).astype(int)):
            if 0 <= i < rows:
                total[:, i] += wide[:, s, k]
    return rescaled(layer, total)


def query_sizes(layer: Layer) -> tuple[int, int, int, int, int]:
    """(images, rows, elements of a row, lists, rows of a result)."""
    x, y = layer.input.shape, layer.output.shape
    lists = len(layer.inputs) - 1
    if (
        len(x) != 3
        or len(y) != 4
        or (x[0], x[2]) != (y[0], y[3])
        or y[1] != lists
        or layer.input.dtype != layer.output.dtype
    ):
        raise LayerError(f"{list(x)} with {lists} lists of indices does not lead to {list(y)}")
    if any(t.count > y[2] for t in layer.inputs[1:]):
        raise LayerError(f"a list has more than {y[2]} indices")
    return x[0], x[1], x[2], lists, y[2]


def query_rebatch(layer: Layer, x: Array, *lists: Array) -> Array:
    """Places without an index, or with one that is not there, hold (real) 0."""
    n, rows, width, _, room = query_sizes(layer)
    found = np.full((n, len(lists), room, width), filling(layer)).astype(x.dtype)
    for s, places in enumerate(lists):
        for k, i in enumerate(places.reshape(-1).astype(int)):
            if 0 <= i < rows:
                found[:, s, k] = x[:, i]
    return found


def filling(layer: Layer) -> int:
    """The output value that means 0."""
    out = layer.output
    return min(max(-out.scalar_zero, out.low), out.high) if layer.is_quantised else 0


def collapse_sizes(layer: Layer) -> tuple[int, int]:
    x = layer.input.shape
    if len(layer.inputs) != 2 or len(layer.outputs) != 2 or len(x) != 2:
        raise LayerError("it has the inputs labels [N, T] and lengths, and two outputs")
    if layer.inputs[1].count != x[0] or layer.outputs[1].count != x[0] or layer.output.shape != x:
        raise LayerError(
            f"labels {list(x)} do not fit {layer.inputs[1].count} lengths and the output {list(layer.output.shape)}"
        )
    return x[0], x[1]


def collapse_repeated(layer: Layer, x: Array, lengths: Array) -> list[Array]:
    n, steps = collapse_sizes(layer)
    found = np.full((n, steps), filling(layer)).astype(x.dtype)
    many = np.zeros(n, np.int64)
    for i, length in enumerate(lengths.reshape(-1).astype(int)):
        row = x[i, : min(max(length, 0), steps)]
        kept = row[np.concatenate([[True], row[1:] != row[:-1]])] if len(row) else row
        found[i, : len(kept)], many[i] = kept, len(kept)
    return [found, many.reshape(layer.outputs[1].shape)]


def ctc_sizes(layer: Layer) -> tuple[int, int, int, int]:
    x = layer.input.shape
    if len(x) != 3 or 0 in x or len(layer.inputs) != 2 or layer.inputs[1].count != x[0] or layer.output.count % x[0]:
        raise LayerError(
            f"{list(x)} with {[list(t.shape) for t in layer.inputs[1:]]} are no steps of classes with lengths"
        )
    if not layer.output.is_integer:
        raise LayerError(f"labels are {layer.output.dtype}, expected an integer type")
    return x[0], x[1], x[2], layer.output.count // x[0]


def ctc_greedy(layer: Layer, x: Array, lengths: Array) -> Array:
    """The rest is filled with the largest value of the type; a length of 0 or less means all steps. NaN is never
    the most likely, as long as there is a number."""
    n, steps, classes, room = ctc_sizes(layer)
    merge = layer.flag("merge_repeated", True)
    found = np.full((n, room), layer.output.integer.high, np.int64)
    wide = x.astype(np.int64) if x.dtype.kind in "iu" else np.where(np.isnan(x), -np.inf, x)
    best = wide.argmax(-1)
    for i, length in enumerate(lengths.reshape(-1).astype(int)):
        row = best[i, : min(length, steps) if length > 0 else steps]
        keep = np.ones(len(row), bool)
        if merge:
            keep[1:] = row[1:] != row[:-1]
        labels = row[keep & (row != classes - 1)][:room]
        found[i, : len(labels)] = labels
    return found.reshape(layer.output.shape)


def hits_sizes(layer: Layer) -> tuple[int, int, int, int]:
    if len(layer.inputs) != 2 or len(layer.outputs) != 3 or len(layer.input.shape) != 2:
        raise LayerError("it has the inputs true classes [N, K] and sampled classes, and three outputs")
    room = layer.output.count
    if layer.outputs[1].count != room or layer.outputs[2].count != 1:
        raise LayerError(
            f"the outputs have {[t.count for t in layer.outputs]} elements, expected two of a size, and one"
        )
    return (*layer.input.shape, layer.inputs[1].count, room)


def accidental_hits(layer: Layer, classes: Array, sampled: Array) -> list[Array]:
    _, _, _, room = hits_sizes(layer)
    pairs = [(r, p) for r, row in enumerate(classes) for c in row for p in np.flatnonzero(sampled.reshape(-1) == c)][
        :room
    ]
    rows, places = np.zeros(room, np.int64), np.zeros(room, np.int64)
    for at, (r, p) in enumerate(pairs):
        rows[at], places[at] = r, p
    results = (rows, places, np.asarray([len(pairs)]))
    return [v.reshape(t.shape) for v, t in zip(results, layer.outputs, strict=True)]
