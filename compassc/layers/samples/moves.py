"""Samples of layers that move elements."""

from __future__ import annotations

from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
from compassc.layers.samples.draw import Draw, layer_of, sample


@sample("Reshape", "Flatten")
def _reshape(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    first = draw.choice([n for n in range(1, min(x.count, 12) + 1) if x.count % n == 0])
    shape = draw.choice(((first, x.count // first), (1, first, 1, x.count // first), (x.count,)))
    return layer_of(draw, kind, [x], draw.like(x, shape), shape=list(shape))


@sample("Squeeze")
def _squeeze(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    ones = [i for i, n in enumerate(x.shape) if n == 1]
    if not ones or len(x.shape) == 1:
        return None
    shape = x.shape[: ones[0]] + x.shape[ones[0] + 1 :]
    return layer_of(draw, kind, [x], draw.like(x, shape), axis=[ones[0]])


@sample("Transpose", "Permute")
def _transpose(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    perm = [int(i) for i in draw.source.permutation(len(x.shape))]
    return layer_of(draw, kind, [x], draw.like(x, [x.shape[i] for i in perm]), perm=perm)


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
    return layer_of(draw, kind, inputs, draw.tensor(shape, x.dtype), axis=axis, **(given if x.is_integer else {}))


@sample("Split")
def _split(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    axes = [i for i, n in enumerate(x.shape) if n > 1]
    if not axes:
        return None
    axis = draw.choice(axes)
    first = draw.integer(1, x.shape[axis] - 1)
    sizes = (first, x.shape[axis] - first)
    shapes = [[s if i == axis else n for i, n in enumerate(x.shape)] for s in sizes]
    return layer_of(draw, kind, [x], [draw.like(x, s) for s in shapes], axis=axis, splits=list(sizes))


@sample("Slice", "StridedSlice", "Crop")
def _slice(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    begin = [draw.integer(0, n - 1) for n in x.shape]
    end = [draw.integer(b + 1, n) for b, n in zip(begin, x.shape, strict=True)]
    shape = [e - b for b, e in zip(begin, end, strict=True)]
    given = {"crops": [list(p) for p in zip(begin, end, strict=True)]} if kind == "Crop" else {}
    return layer_of(draw, kind, [x], draw.like(x, shape), begin=begin, end=end, strides=[1] * len(begin), **given)


@sample("Tile")
def _tile(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if x.count > 2000 or not x.shape:
        return None
    repeats = [draw.choice((1, 1, 2)) for _ in x.shape]
    return layer_of(
        draw, kind, [x], draw.like(x, [n * r for n, r in zip(x.shape, repeats, strict=True)]), repeats=repeats
    )


@sample("Pad")
def _pad(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    pads = [[draw.integer(0, 1), draw.integer(0, 2)] for _ in x.shape]
    shape = [n + a + b for n, (a, b) in zip(x.shape, pads, strict=True)]
    value = draw.integer(-20, 20) if x.dtype != "uint8" else 3
    return layer_of(draw, kind, [x], draw.like(x, shape), pads=pads, mode="CONSTANT", constant_value=value)


@sample("ChannelShuffle")
def _shuffle(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape or x.shape[-1] % 2:
        return None
    return layer_of(draw, kind, [x], draw.like(x), group=2, splits=1)


@sample("DepthToSpace", "SpaceToDepth")
def _blocks(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4:
        return None
    n, h, w, c = x.shape
    if (kind == "DepthToSpace" and c % 4) or (kind == "SpaceToDepth" and (h % 2 or w % 2)):
        return None
    shape = (n, 2 * h, 2 * w, c // 4) if kind == "DepthToSpace" else (n, h // 2, w // 2, 4 * c)
    return layer_of(draw, kind, [x], draw.like(x, shape), block_size_x=2, block_size_y=2, mode="DCR")


@sample("Gather", "GatherElements", "GatherND")
def _gather(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    axis = 0 if kind == "GatherND" else draw.integer(0, len(x.shape) - 1)
    count = draw.integer(1, 5)
    if kind == "GatherElements":
        shape = tuple(count if i == axis else n for i, n in enumerate(x.shape))
        return layer_of(draw, kind, [x, draw.indices(shape, x.shape[axis])], draw.like(x, shape), axis=axis)
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    index = draw.indices((count, 1) if kind == "GatherND" else (count,), x.shape[axis])
    return layer_of(draw, kind, [x, index], draw.like(x, shape), axis=axis, batch_dims=0)


@sample("ReverseSequence")
def _reverse(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) < 2:
        return None
    lengths = draw.indices((x.shape[0],), x.shape[1] + 1)
    return layer_of(draw, kind, [x, lengths], draw.like(x), batch_axis=0, time_axis=1)


@sample("OneHot")
def _one_hot(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.is_integer or x.dtype in ("bool", "uint32"):
        return None
    y = draw.tensor((*x.shape, 6), x.dtype, 0)
    return layer_of(draw, kind, [x], y, depth=6, values=[0, 1], axis=-1)


@sample("ArgMinMax")
def _arg_min_max(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    axis = draw.integer(0, len(x.shape) - 1)
    y = draw.tensor([1 if i == axis else n for i, n in enumerate(x.shape)], "int32")
    return layer_of(draw, kind, [x], y, axis=axis, method=draw.choice(("MIN", "MAX")), select_last_index=False)


@sample("TopK", "Sort")
def _top(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    k = draw.integer(1, x.shape[-1]) if kind == "TopK" else x.shape[-1]
    shape = (*x.shape[:-1], k)
    outputs = [draw.like(x, shape), draw.tensor(shape, "int32")]
    return layer_of(draw, kind, [x], outputs, k=k, axis=len(x.shape) - 1, largest=True, sorted=True)


@sample("Cumulate")
def _cumulate(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    given = {"method": "SUM", "axis": len(x.shape) - 1, "exclusive": False, "reverse": draw.choice((True, False))}
    return layer_of(draw, kind, [x], draw.requantised(x), **given, **(draw.rescaling(8) if x.is_integer else {}))


@sample("ScatterElements", "ScatterND")
def _scatter(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    count = draw.integer(1, 4)
    given: dict[str, Value] = {"reduction": draw.choice(("NONE", "ADD", "MAX", "MIN"))}
    if kind == "ScatterND":
        index, updates = draw.indices((count, 1), x.shape[0]), draw.other(x, (count, *x.shape[1:]))
    else:
        axis = draw.integer(0, len(x.shape) - 1)
        shape = tuple(min(count, n) if i == axis else n for i, n in enumerate(x.shape))
        given["axis"], index, updates = axis, draw.indices(shape, x.shape[axis]), draw.other(x, shape)
    if x.is_integer:
        given |= {"scale_value": [draw.integer(128, 255), 9, 7], "shift_value": 10}
    return layer_of(draw, kind, [x, index, updates], draw.requantised(x), **given)
