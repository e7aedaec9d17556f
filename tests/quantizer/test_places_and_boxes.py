"""Layers that take places in images, and boxes, in integers: near the floats, and the simulator computes the same."""

from __future__ import annotations

import numpy as np
import pytest

from compass_runtime import Program
from compassc.gbuilder.build import GraphOptions, build_model
from compassc.graph import Graph, GraphBuilder, files, verify
from compassc.graph.run import run_graph
from compassc.layers.real_values import to_raw
from compassc.quantizer import Settings, quantize_model
from compassc.quantizer.compare import run_quantised
from compassc.quantizer.model import Outcome

Arrays = dict[str, np.ndarray]
F = "float32"
BOXES = 24


def smooth(random: np.random.Generator, *shape: int) -> np.ndarray:
    """An image without jumps, so that a little beside it is a little wrong."""
    y, x, c = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij")
    return np.sin(0.3 * y + random.random() * 3 + c).astype(np.float32)[None] + np.cos(0.2 * x).astype(np.float32)


def grid_sample() -> tuple[Graph, Arrays]:
    random, g = np.random.default_rng(1), GraphBuilder("net")
    x, grid = g.input("x", (1, 20, 24, 4), F), g.input("grid", (1, 6, 7, 2), F)
    ends = g.layer("GridSample", [x, grid], name="last", outputs=[((1, 6, 7, 4), F)], attributes={"method": "BILINEAR"})
    return g.finish(list(ends)), {
        "x": smooth(random, 20, 24, 4),
        "grid": random.uniform(-1.1, 1.1, (1, 6, 7, 2)).astype(np.float32),
    }


def affine() -> tuple[Graph, Arrays]:
    random, g = np.random.default_rng(2), GraphBuilder("net")
    x, maps = g.input("x", (1, 20, 24, 4), F), g.input("maps", (1, 6), F)
    (shaped,) = g.layer("Reshape", [maps], name="shaped", outputs=[((1, 2, 3), F)], attributes={"shape": [1, 2, 3]})
    (grid,) = g.layer("AffineGrid", [shaped], name="grid", outputs=[((1, 6, 7, 2), F)])
    ends = g.layer("GridSample", [x, grid], name="last", outputs=[((1, 6, 7, 4), F)], attributes={"method": "BILINEAR"})
    maps = np.asarray([[0.9, 0.1, 0.05, -0.1, 0.8, 0.1]], np.float32)
    return g.finish(list(ends)), {
        "x": smooth(random, 20, 24, 4),
        "maps": maps + random.normal(0, 0.02, (1, 6)).astype(np.float32),
    }


def roi_align() -> tuple[Graph, Arrays]:
    return _regions("RoiAlign", {"pooled_shape": [3, 3], "sample": [2, 2], "spatial_scale_value": [0.125, 0.125],
                                 "method": "AVG", "coordinate_transformation_mode": "HALF_PIXEL"})  # fmt: skip


def adaptive_roi_align() -> tuple[Graph, Arrays]:
    return _regions("RoiAlign", {"pooled_shape": [3, 3], "sample": [0], "spatial_scale_value": [0.125, 0.125]})


def roi_align_max() -> tuple[Graph, Arrays]:
    return _regions("RoiAlign", {"pooled_shape": [3, 3], "sample": [2, 2], "spatial_scale_value": [0.125, 0.125],
                                 "method": "MAX", "coordinate_transformation_mode": "HALF_PIXEL"})  # fmt: skip


def max_roi_pool() -> tuple[Graph, Arrays]:
    return _regions("MaxRoiPool", {"pooled_shape": [3, 3], "spatial": [0.125, 0.125]})


def _regions(kind: str, attributes: dict[str, object]) -> tuple[Graph, Arrays]:
    random, g = np.random.default_rng(3), GraphBuilder("net")
    x, rois = g.input("x", (1, 20, 24, 4), F), g.input("rois", (5, 5), F)
    ends = g.layer(kind, [x, rois], name="last", outputs=[((5, 3, 3, 4), F)], attributes=attributes)
    first = random.integers(0, 80, (5, 2))
    rows = np.concatenate([np.zeros((5, 1)), first, first + random.integers(30, 80, (5, 2))], 1)
    return g.finish(list(ends)), {"x": smooth(random, 20, 24, 4), "rois": (rows // 8 * 8).astype(np.float32)}


def _parts(random: np.random.Generator, many: int) -> np.ndarray:
    """Boxes in parts of the image."""
    first = random.uniform(0, 0.4, (many, 2))
    return np.concatenate([first, first + random.uniform(0.2, 0.55, (many, 2))], 1).astype(np.float32)


def crops() -> tuple[Graph, Arrays]:
    random, g = np.random.default_rng(7), GraphBuilder("net")
    x, boxes, index = g.input("x", (2, 20, 24, 4), F), g.input("boxes", (5, 4), F), g.input("index", (5,), "int32")
    given = {"crop_size": [6, 5], "method": "BILINEAR", "extrapolation_value": 0.5}
    ends = g.layer("CropAndResize", [x, boxes, index], name="last", outputs=[((5, 6, 5, 4), F)], attributes=given)
    maps = np.concatenate([smooth(random, 20, 24, 4), smooth(random, 20, 24, 4)])
    return g.finish(list(ends)), {"x": maps, "boxes": _parts(random, 5), "index": np.asarray([0, 1, 1, 0, 1], np.int32)}


def roi_pooling() -> tuple[Graph, Arrays]:
    random, g = np.random.default_rng(8), GraphBuilder("net")
    x, boxes = g.input("x", (1, 20, 24, 4), F), g.input("boxes", (1, 5, 4), F)
    ends = g.layer("ROIPooling", [x, boxes], name="last", outputs=[((5, 3, 4, 4), F)])
    return g.finish(list(ends)), {"x": smooth(random, 20, 24, 4), "boxes": _parts(random, 5)[None]}


def pyramid() -> tuple[Graph, Arrays]:
    return _pyramid(1.0, True)


def pyramid_of_pixels() -> tuple[Graph, Arrays]:
    return _pyramid(640.0, False)


def _pyramid(image: float, normalised: bool) -> tuple[Graph, Arrays]:
    random, g = np.random.default_rng(9), GraphBuilder("net")
    sizes = (40, 20, 10, 5)
    boxes, maps = g.input("boxes", (1, 8, 4), F), [g.input(f"x{n}", (1, n, n, 4), F) for n in sizes]
    given = {"resize_height": 3, "resize_width": 4, "sample": [2, 2], "proposal_normalized": normalised,
             "spatial_scale_value": [n / 640 for n in sizes], "coordinate_transformation_mode": "HALF_PIXEL"}  # fmt: skip
    ends = g.layer("PyramidROIAlign", [boxes, *maps], name="last", outputs=[((8, 3, 4, 4), F)], attributes=given)
    data = {t.name: smooth(random, *t.shape[1:]) * (1 + i) for i, t in enumerate(maps)}
    return g.finish(list(ends)), {
        **data,
        "boxes": image * _parts(random, 8)[None] ** np.asarray([1, 1, 2, 1], np.float32),
    }


def generate_proposals() -> tuple[Graph, Arrays]:
    random, g = np.random.default_rng(10), GraphBuilder("net")
    scores, offsets = g.input("scores", (1, 4, 6, 2), F), g.input("offsets", (1, 4, 6, 8), F)
    info = g.input("info", (1, 3), F)
    y, x, size = np.meshgrid(np.arange(4) * 40 + 20, np.arange(6) * 40 + 20, [48, 80], indexing="ij")
    anchors = np.stack([size, size * 0.75, x, y], -1).reshape(-1, 4).astype(np.float32)
    given = {"pre_nms_topn": 40, "post_nms_topn": 12, "iou_threshold": 0.3, "min_size": 16}
    outputs = [((1, 12), F), ((1, 12, 4), F), ((1, 12), "int32"), ((1, 1), "int32")]
    ends = g.layer("GenerateProposals", [scores, offsets, info], name="last", outputs=outputs, attributes=given,
                   constants={"weights": anchors})  # fmt: skip
    return g.finish(list(ends)), {
        "scores": (random.permutation(48) / 48 + 0.01).reshape(1, 4, 6, 2).astype(np.float32),
        "offsets": random.normal(0, 0.15, (1, 4, 6, 8)).astype(np.float32),
        "info": np.asarray([[160, 240, 1]], np.float32),
    }


def _grid_anchors() -> Arrays:
    y, x = np.meshgrid(np.linspace(40, 260, 4), np.linspace(40, 260, 6), indexing="ij")
    found = {"ycenter": y.reshape(-1), "xcenter": x.reshape(-1), "ha": np.full(BOXES, 50.0), "wa": np.full(BOXES, 70.0)}
    return {key: v.astype(np.float32) for key, v in found.items()}


def proposal() -> tuple[Graph, Arrays]:
    random, g = np.random.default_rng(11), GraphBuilder("net")
    scores, offsets = g.input("scores", (1, BOXES, 2), F), g.input("offsets", (1, BOXES, 4), F)
    given = {"score_threshold": 0.4, "height": 300, "width": 300}
    outputs = [((1, 20), F), ((1, 20, 4), F), ((1, 1), "int32"), ((1, 1), "int32")]
    ends = g.layer(
        "Proposal", [scores, offsets], name="last", outputs=outputs, attributes=given, constants=_grid_anchors()
    )
    both = np.stack([1 - _scores(random)[0], _scores(random)[0]], -1)[None]
    return g.finish(list(ends)), {"scores": both, "offsets": random.normal(0, 2, (1, BOXES, 4)).astype(np.float32)}


def detection_output() -> tuple[Graph, Arrays]:
    random, g = np.random.default_rng(12), GraphBuilder("net")
    scores, offsets = g.input("scores", (1, BOXES, 3), F), g.input("offsets", (1, BOXES, 3, 4), F)
    rois = g.input("rois", (1, BOXES, 4), F)
    given = {"score_threshold": 0.4, "image_height": 320, "image_width": 320, "anchor_mode": "caffe_detection"}
    outputs = [((1, 40), F), ((1, 40, 4), F), ((1, 3), "int32"), ((1, 3), "int32"), ((1, 1), "int32")]
    ends = g.layer("DetectionOutput", [scores, offsets, rois], name="last", outputs=outputs, attributes=given)
    given_scores = np.stack([_scores(np.random.default_rng(s))[0] for s in range(3)], -1)[None]
    offsets_of = random.normal(0, 2, (1, BOXES, 3, 4)).astype(np.float32)
    return g.finish(list(ends)), {"scores": given_scores, "offsets": offsets_of, "rois": _boxes(random)}


def bounding_box() -> tuple[Graph, Arrays]:
    random, g = np.random.default_rng(13), GraphBuilder("net")
    rois, offsets = g.input("rois", (1, BOXES, 4), F), g.input("offsets", (1, BOXES, 4), F)
    ends = g.layer("BoundingBox", [rois, offsets], name="last", outputs=[((1, BOXES, 4), F)])
    data = {"rois": _parts(random, BOXES)[None], "offsets": random.normal(0, 1, (1, BOXES, 4)).astype(np.float32)}
    return g.finish(list(ends)), data


def heads() -> tuple[Graph, Arrays]:
    """Two heads, whose lists are joined; the second one's grid is compensated."""
    random, g = np.random.default_rng(14), GraphBuilder("net")
    lists, data = [], {}
    for n, (grid, anchors) in enumerate((((3, 5), [1.5, 0.75, 2.5, 3.25]), ((2, 4), [0.5, 1.0, 0.75, 0.5]))):
        x = g.input(f"x{n}", (1, *grid, 2, 9), F)
        given = {"grid_height": grid[0], "grid_width": grid[1], "box_per_grid": 2, "class_num": 4, "obj_thresh": 0.3,
                 "anchors": anchors}  # fmt: skip
        outputs = [((1, 30), F), ((1, 30, 4), F), ((1, 4), "int32"), ((1, 4), "int32"), ((1, 1), "int32")]
        lists.append(g.layer("Region", [x], name=f"head{n}", outputs=outputs, attributes=given))
        values = random.uniform(-1.5, 1, x.shape)
        # scores are well above or below the threshold
        values[..., 4] = random.choice([-4, 4], x.shape[:-1])
        np.put_along_axis(values[..., 5:], random.integers(0, 4, (*x.shape[:-1], 1)), 5.0, -1)
        data[x.name] = values.astype(np.float32)
    outputs = [((1, 50), F), ((1, 50, 4), F), ((1, 4), "int32"), ((1, 4), "int32"), ((1, 1), "int32")]
    both = [t for pair in zip(*lists, strict=True) for t in pair]
    return g.finish(list(g.layer("RegionFuse", both, name="last", outputs=outputs, attributes={"class_num": 4}))), data


def nms() -> tuple[Graph, Arrays]:
    return _nms(method="HARD", iou_threshold=0.5)


def soft_nms() -> tuple[Graph, Arrays]:
    return _nms(method="GAUSSIAN", soft_nms_sigma=0.5)


def _nms(**method: object) -> tuple[Graph, Arrays]:
    random, g = np.random.default_rng(4), GraphBuilder("net")
    boxes, scores = g.input("boxes", (1, BOXES, 4), F), g.input("scores", (1, BOXES), F)
    counts, classes = g.input("counts", (1, 2), "int32"), g.input("classes", (1, 1), "int32")
    outputs = [((1, 10, 4), F), ((1, 2), "int32"), ((1, 10), F), ((1, 10), "int32")]
    given = {**method, "score_threshold": 0.2, "max_output_size": 5}
    ends = g.layer("NMS", [boxes, counts, classes, scores], name="last", outputs=outputs, attributes=given)
    return g.finish(list(ends)), {"boxes": _boxes(random), "scores": _scores(random), **_counts()}


def filter_boxes() -> tuple[Graph, Arrays]:
    random, g = np.random.default_rng(5), GraphBuilder("net")
    boxes, scores = g.input("boxes", (1, BOXES, 4), F), g.input("scores", (1, BOXES), F)
    counts, labels, classes = (
        g.input(n, s, "int32") for n, s in (("counts", (1, 2)), ("labels", (1, 2)), ("classes", (1, 1)))
    )
    outputs = [((1, 10, 4), F), ((1, 10), F), ((1, 2), "int32"), ((1, 2), "int32"), ((1, 1), "int32")]
    given = {"score_threshold": 0.4, "min_size": [30.0, 20.0], "maxnum": 9}
    ends = g.layer(
        "FilterBoxes", [boxes, scores, counts, labels, classes], name="last", outputs=outputs, attributes=given
    )
    more = {"labels": np.asarray([[3, 7]], np.int32)}
    return g.finish(list(ends)), {"boxes": _boxes(random), "scores": _scores(random), **_counts(), **more}


def decode_box() -> tuple[Graph, Arrays]:
    random, g = np.random.default_rng(6), GraphBuilder("net")
    scores, offsets = g.input("scores", (1, BOXES, 3), F), g.input("offsets", (1, BOXES, 4), F)
    outputs = [((1, 60, 4), F), ((1, 3), "int32"), ((1, 1), "int32"), ((1, 60), F), ((1, 3), "int32")]
    y, x = np.meshgrid(np.linspace(0.1, 0.9, 4), np.linspace(0.1, 0.9, 6), indexing="ij")
    anchors = {"ycenter": y.reshape(-1), "xcenter": x.reshape(-1), "ha": np.full(BOXES, 0.2), "wa": np.full(BOXES, 0.3)}
    given = {"score_threshold": 0.4, "class_num": 3, "image_height": 300, "image_width": 300}
    ends = g.layer("DecodeBox", [scores, offsets], name="last", outputs=outputs, attributes=given,
            constants={k: v.astype(np.float32) for k, v in anchors.items()})  # fmt: skip
    given_scores = np.stack([_scores(np.random.default_rng(s))[0] for s in range(3)], -1)[None]
    return g.finish(list(ends)), {
        "scores": given_scores,
        "offsets": random.normal(0, 2, (1, BOXES, 4)).astype(np.float32),
    }


def _scores(random: np.random.Generator) -> np.ndarray:
    """Apart from each other and from thresholds by more than a step of 8 bits."""
    return (random.permutation(BOXES)[None] / BOXES + 0.013).astype(np.float32)


def _boxes(random: np.random.Generator) -> np.ndarray:
    first = random.uniform(0, 250, (1, BOXES, 2))
    return np.concatenate([first, first + random.uniform(15, 60, (1, BOXES, 2))], -1).astype(np.float32)


def _counts() -> Arrays:
    return {"counts": np.asarray([[14, 10]], np.int32), "classes": np.asarray([[2]], np.int32)}


CASES = {
    f.__name__: f
    for f in (
        grid_sample, affine, roi_align, adaptive_roi_align, roi_align_max, max_roi_pool, crops, roi_pooling, pyramid, pyramid_of_pixels, generate_proposals, proposal, detection_output,
        bounding_box, heads, nms, soft_nms, filter_boxes,
        decode_box,
    )
}  # fmt: skip
ERRORS = {"grid_sample": 0.03, "affine": 0.03, "roi_align": 0.08, "adaptive_roi_align": 0.08, "roi_align_max": 0.08, "max_roi_pool": 0.02, "crops": 0.02, "roi_pooling": 0.02, "pyramid": 0.02,
          "pyramid_of_pixels": 0.02, "soft_nms": 0.02}  # fmt: skip
"""Of the range of values, where these lie between others; of boxes a part of the image."""


def made(name: str, preset: str = "int8") -> tuple[Graph, Arrays, Outcome]:
    graph, data = CASES[name]()
    outcome = quantize_model(graph, [data], preset)
    verify.check(outcome.graph, verify.Stage.QUANTISED)
    return graph, data, outcome


@pytest.mark.parametrize("preset", ["int8", "w8a16"])
@pytest.mark.parametrize("name", CASES)
def test_they_are_integers_near_the_floats(name, preset):
    graph, data, outcome = made(name, preset)
    assert not outcome.floats
    want, got = run_quantised(graph, data), run_quantised(outcome.graph, data)
    for t in graph.outputs:
        if t.dtype != F:
            np.testing.assert_array_equal(got[t.name], want[t.name])
        else:
            reach = float(np.abs(want[t.name]).max())
            np.testing.assert_allclose(got[t.name], want[t.name], atol=ERRORS.get(name, 0.01) * reach)


@pytest.mark.parametrize("name", ["affine", "roi_align", "nms", "filter_boxes", "decode_box", "heads"])
def test_the_simulator_gives_the_same_integers(name, tmp_path):
    _, data, outcome = made(name)
    weights = files.save(outcome.graph, tmp_path / "quant.txt")
    build_model(tmp_path / "quant.txt", weights, tmp_path / "aipu.bin", "X2_1204", GraphOptions(work_dir=tmp_path))
    inputs = {t.name: to_raw(t, data[t.name]) for t in outcome.graph.inputs}
    want = run_graph(outcome.graph, inputs)
    got = Program.load(tmp_path / "aipu.bin").create_job().run(inputs)
    for t in outcome.graph.outputs:
        np.testing.assert_array_equal(got[t.name], want[t.name])


def test_places_have_16_bits_unless_somebody_says_otherwise():
    graph, data, outcome = made("affine")
    assert {t.dtype for t in outcome.graph.inputs} == {"int8", "int16"}
    assert outcome.graph.tensors()["grid_0"].dtype == "int16"
    narrow = quantize_model(graph, [data], Settings.preset("int8").overridden({"grid": {"activation_bits": 8}}))
    assert narrow.floats == {"last": "its coordinates have 8 bits, expected 16"}
    assert {t.dtype for layer in narrow.graph.layers if layer.name == "last" for t in layer.inputs} == {F}


def test_regions_that_are_cut_too_coarsely_stay_floats():
    graph, data = _regions("RoiAlign", {"pooled_shape": [3, 3], "sample": [2, 2], "spatial_scale_value": [1.0, 1.0],
                                    "method": "AVG", "coordinate_transformation_mode": "HALF_PIXEL"})  # fmt: skip
    outcome = quantize_model(graph, [data], "int8")
    assert "too coarse" in outcome.floats["last"]


def test_zeros_are_counted():
    g = GraphBuilder("net")
    (y,) = g.layer("ZeroFraction", [g.input("x", (1, 50), F)], name="last", outputs=[((1,), F)])
    graph, data = g.finish([y]), {"x": np.where(np.arange(50) % 5 == 0, 0, 1 + np.arange(50))[None].astype(np.float32)}
    outcome = quantize_model(graph, [data], "int8")
    assert not outcome.floats
    np.testing.assert_allclose(run_quantised(outcome.graph, data)[y.name], [0.2], atol=0.002)
