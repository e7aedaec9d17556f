"""Samples of layers on rows and labels."""

from __future__ import annotations

from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
from compassc.layers.samples.draw import Draw, layer_of, sample


def _scaled(x: Tensor) -> dict[str, Value]:
    return {"scale_value": 150, "shift_value": 8} if x.is_integer else {}


@sample("OverlapAdd")
def _overlap(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) < 2:
        return None
    step = draw.integer(1, x.shape[-1])
    size = (x.shape[-2] - 1) * step + x.shape[-1]
    return layer_of(draw, kind, [x], draw.requantised(x, (*x.shape[:-2], size)), None, frame_step=step, **_scaled(x))


@sample("SegmentReduce")
def _segments(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    ids = draw.indices((x.shape[0],), 3)
    return layer_of(draw, kind, [x, ids], draw.requantised(x, (3, *x.shape[1:])), None, method="SUM", **_scaled(x))


@sample("EmbeddingLookupSparse")
def _lookup(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape or x.is_integer:
        return None
    weights = Tensor(draw.tensor((1,), x.dtype).name, (4,), x.dtype)
    inputs = [x, draw.indices((4, 1), 2), draw.indices((4,), x.shape[0]), weights]
    return layer_of(draw, kind, inputs, draw.like(x, (2, *x.shape[1:])), None, combiner="SUM")


@sample("SlotUpdate", "QueryRebatch")
def _slots(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if kind == "QueryRebatch":
        if len(x.shape) != 3:
            return None
        n, rows, width = x.shape
        lists = [draw.indices((2,), rows), draw.indices((3,), rows)]
        return layer_of(draw, kind, [x, *lists], draw.like(x, (n, 2, 3, width)), None)
    if len(x.shape) != 4 or x.shape[1] > 6:
        return None
    n, many, length, width = x.shape
    lists = [draw.indices((min(length, 2),), 4) for _ in range(many)]
    return layer_of(draw, kind, [x, *lists], draw.requantised(x, (n, 4, width)), None, **_scaled(x))


@sample("CollapseRepeated", "AccidentalHits", "CTCGreedyDecoder")
def _labels(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if kind == "CTCGreedyDecoder":
        if len(x.shape) != 3:
            return None
        y = Tensor(draw.tensor((1,), "int32").name, (x.shape[0], 4, 1, 1), "int32")
        return layer_of(draw, kind, [x, draw.indices((x.shape[0],), x.shape[1] + 1)], y, None, merge_repeated=True)
    if len(x.shape) != 2 or not x.is_integer:
        return None
    if kind == "CollapseRepeated":
        lengths = draw.indices((x.shape[0],), x.shape[1] + 1)
        many = Tensor(draw.tensor((1,), "int32").name, (x.shape[0],), "int32")
        return layer_of(draw, kind, [x, lengths], [draw.like(x), many], None)
    outputs = [Tensor(draw.tensor((1,), "int32").name, shape, "int32") for shape in ((5,), (5,), (1,))]
    return layer_of(draw, kind, [x, draw.other(x, (4,))], outputs, None)
