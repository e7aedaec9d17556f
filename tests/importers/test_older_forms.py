"""Operators in the forms of older opsets: both roads, layers and expressions, compute what the package onnx does."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from compassc import onnx_backend, relay
from compassc.importers.onnx.versions import OLDER, REDUCTIONS
from compassc.relay import frontend
from tests.choosing import some

SCALES = np.asarray([1, 1, 2, 2], np.float32)
CASES = {
    "Clip": (10, [1, 2, 4, 4], [], {"min": -0.25, "max": 0.5}),
    "DFT": (17, [2, 4, 3, 1], [], {"axis": 2}),
    "Dropout": (10, [2, 3], [], {"ratio": 0.25}),
    "Pad": (10, [2, 3], [], {"pads": [0, 1, 2, 0], "value": 1.5}),
    "ReduceSum": (12, [2, 3, 4], [], {"axes": [1, -1], "keepdims": 0}),
    "Resize": (10, [1, 2, 4, 4], [SCALES], {}),
    "RoiAlign": (10, [1, 2, 8, 8], [np.asarray([[1, 1, 5, 6]], np.float32), np.zeros(1, np.int64)], {"output_width": 2}),
    "Scatter": (10, [3, 4], [np.asarray([[1, 0, 2, 0]]), np.asarray([[7, 8, 9, 6]], np.float32)], {}),
    "Slice": (9, [4, 5, 6], [], {"starts": [1, -3], "ends": [3, 99], "axes": [0, 2]}),
    "Split": (11, [2, 5], [], {"split": [2, 3], "axis": 1}),
    "Squeeze": (12, [1, 2, 1, 3], [], {"axes": [0, -2]}),
    "TopK": (9, [3, 5], [], {"k": 2}),
    "Unsqueeze": (12, [2, 3], [], {"axes": [0, 3]}),
    "Upsample": (9, [1, 2, 4, 4], [SCALES], {}),
    "Upsample of attributes": (8, [1, 2, 4, 4], [], {"scales": [1.0, 1.0, 2.0, 2.0]}),
    **{f"Reduce{name}": (17, [2, 3, 4], [], {"axes": [1]}) for name in REDUCTIONS},
}  # fmt: skip
"""By operator: the opset, the shape of the first input, the content of the others, and the attributes."""


def twice(x: np.ndarray) -> np.ndarray:
    return x.repeat(2, 2).repeat(2, 3)


def scattered(x: np.ndarray) -> np.ndarray:
    made = x.copy()
    np.put_along_axis(made, *CASES["Scatter"][2], axis=0)
    return made


def regions(x: np.ndarray) -> np.ndarray:
    """By the newest form, which says how coordinates are counted."""
    newest = model_of("RoiAlign", 16, coordinate_transformation_mode="output_half_pixel")
    return ReferenceEvaluator(newest).run(None, {"x": x})[0]


WANTED = {
    "RoiAlign": regions,
    "Resize": twice,
    "Upsample": twice,
    "Upsample of attributes": twice,
    "Scatter": scattered,
}
"""What the package does not compute in these forms."""


def model_of(name: str, newer: int = 0, **more: str) -> onnx.ModelProto:
    opset, shape, constants, attributes = CASES[name]
    outputs = ["y", "z"] if name in ("Split", "TopK") else ["y"]
    node = helper.make_node(
        name.split()[0], ["x", *(f"c{i}" for i in range(len(constants)))], outputs, **attributes, **more
    )
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(o, TensorProto.INT64 if (name, o) == ("TopK", "z") else TensorProto.FLOAT, None) for o in outputs],
        [numpy_helper.from_array(c, f"c{i}") for i, c in enumerate(constants)],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", newer or opset)], ir_version=8)


@pytest.mark.parametrize("name", CASES)
def test_an_older_form_is_what_onnx_computes(name):
    model = model_of(name)
    x = np.random.default_rng(5).random(CASES[name][1], np.float32) + 0.25
    wanted = [WANTED[name](x)] if name in WANTED else ReferenceEvaluator(model).run(None, {"x": x})
    by_layers = onnx_backend.prepare(model, "REFERENCE").run([x])
    module, params = frontend.from_onnx(model)
    found = relay.create_executor("debug", mod=module).evaluate()(x, **params)
    by_program = [found] if len(wanted) == 1 else list(found)
    for made in (by_layers, [np.asarray(v.numpy()) for v in by_program]):
        for got, want in some(zip(made, wanted, strict=True)):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("limits", [{}, {"min": 0.0}, {"max": 1.0}])
def test_limits_that_older_clips_are_not_given_are_the_largest_floats(limits):
    model = model_of("Clip")
    del model.graph.node[0].attribute[:]
    model.graph.node[0].attribute.extend(helper.make_attribute(k, v) for k, v in limits.items())
    x = np.resize(np.asarray([-np.inf, -1, 0.5, 2, np.inf], np.float32), CASES["Clip"][1])
    module, params = frontend.from_onnx(model)
    found = relay.create_executor("debug", mod=module).evaluate()(x, **params).numpy()
    np.testing.assert_array_equal(found, ReferenceEvaluator(model).run(None, {"x": x})[0])


def test_every_older_form_is_tried():
    assert {name.split()[0] for name in CASES} == set(OLDER)
    late = [name for name, case in CASES.items() if case[0] >= OLDER[name.split()[0]][-1].before]
    assert late == []
