"""TFLite files: shapes that are open, what is refused and how, damaged files, and a build of one."""

import numpy as np
import pytest

from compass_core.errors import CompassError
from compass_core.reading.budget import Budget
from compassc.importers import import_model
from compassc.importers.refusals import RefusedModel
from compassc.importers.tflite import import_bytes
from compassc.importers.tflite.convert import Conversion
from compassc.importers.tflite.source import Model as ModelRead
from compassc.importers.tflite.source import Node, TensorInfo
from compassc.onnx_backend.running import on_simulator
from tests.importers import tflite_cases, tflite_quantised, tflite_reference
from tests.importers.tflite_models import Model


def test_a_quantised_network_on_the_simulator_equals_its_references(tmp_path, chained):
    content = tflite_quantised.build("network")
    (tmp_path / "net.tflite").write_bytes(content)
    graph = import_model(tmp_path / "net.tflite")
    x = np.random.default_rng(0).integers(-128, 128, graph.inputs[0].shape).astype(np.int8)
    (found,) = on_simulator("X2_1204")(graph)([x])
    (reference,) = chained(graph, x)
    np.testing.assert_array_equal(found, reference)
    (expected,) = tflite_reference.run(content, [x])
    assert np.abs(reference.astype(int) - expected).max() <= 1


def test_an_open_batch_is_one_and_other_sizes_are_asked_for():
    net = Model()
    x = net.input("x", (1, 1, 3))
    net.tensors[x].signature = (-1, -1, 3)
    content = net.bytes(net("ABS", [x], (1, 1, 3)))
    with pytest.raises(CompassError, match="open") as caught:
        import_bytes(content)
    assert "--shape x=1x?x3" in caught.value.help
    assert import_bytes(content, {"x": (4, 5, 3)}).outputs[0].shape == (4, 5, 3)
    with pytest.raises(CompassError, match="no input 'y'"):
        import_bytes(content, {"y": (1,)})


def test_everything_that_is_not_supported_is_named_at_once():
    net = Model()
    x = net.input("x", (4,))
    y = net("MyOperator", [net("UNIQUE", [x], (4,))], (4,))
    z = net("STRIDED_SLICE", [x, *[net.constant([1], np.int32)] * 3], (1,), offset=True)
    v = net("ABS", [net("RESHAPE", [x, net.input("s", (1,), "int32")], (4,))], (4,))
    with pytest.raises(RefusedModel) as caught:
        import_bytes(net.bytes(y, z, v))
    listed = "\n".join(n.message for n in caught.value.notes)
    assert len(caught.value.refusals) == 3
    assert "(UNIQUE): how many results it gives" in listed
    assert "(STRIDED_SLICE): its attribute 'offset' is not supported" in listed
    assert "(RESHAPE): its input 'shape' must be known at import" in listed


def test_what_the_model_says_of_its_tensors_must_be_true():
    net = Model()
    with pytest.raises(RefusedModel) as caught:
        import_bytes(net.bytes(net("ABS", [net.input("x", (4,))], (5,))))
    assert "it makes [4], its output 't1' is [5]" in str(caught.value.notes[0].message)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "TFL3"),
        (b"\0" * 64, "TFL3"),
        (b"\xff\xff\xff\x7fTFL3" + b"\0" * 40, "no TFLite model"),
        (tflite_cases.build("conv")[:200], "no TFLite model"),
    ],
)
def test_damaged_files_are_refused(content, why, tmp_path):
    (tmp_path / "m.tflite").write_bytes(content)
    with pytest.raises(CompassError, match=why):
        import_model(tmp_path / "m.tflite")


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan, 1e-45])
def test_scales_that_are_none_are_refused(scale):
    net = Model()
    x = net.input("x", (4,), "int8", scale=scale, zero=0)
    with pytest.raises(CompassError):
        import_bytes(net.bytes(net("ABS", [x], (4,), "int8", scale=1.0, zero=0)))


def test_constants_that_nobody_could_hold_are_refused():
    net = Model()
    filled = net("FILL", [net.constant([1 << 15, 1 << 15, 1 << 15], np.int32), net.constant(np.float32(1))], (1, 1, 1))
    with pytest.raises(CompassError, match=r"\d+ bytes, but what is computed") as caught:
        import_bytes(net.bytes(net("ADD", [net.input("x", (1,)), filled], (1, 1, 1))))
    assert caught.value.code == "limit-exceeded"


@pytest.mark.parametrize(("kind", "why"), [("sparse FLOAT32", "without its zeros"), ("STRING", "is of STRING")])
def test_inputs_that_are_no_plain_numbers_are_refused(kind, why):
    none = np.zeros(0)
    tensors = [TensorInfo(n, t, (4,), None, none, none, 0, False) for n, t in (("x", kind), ("y", "FLOAT32"))]
    model = ModelRead("m", tuple(tensors), (0,), (1,), (Node(0, "ABS", 1, (0,), (1,)),))
    b = Conversion(model, strict=True, budget=Budget("m"))
    b.input(0, tensors[0], (4,))
    b.run([1])
    assert [why in r.reason for r in b.refusals] == [True]


def test_inner_tensors_may_be_outputs():
    net = Model()
    x = net.input("x", (4,))
    y = net("ABS", [x], (4,))
    content = net.bytes(net("TFLite_Detection_PostProcess", [y], (4,)))
    with pytest.raises(RefusedModel) as caught:
        import_bytes(content)
    assert "--output-tensor" in caught.value.notes[0].message
    graph = import_bytes(content, outputs=[net.tensors[y].name])
    assert [layer.type for layer in graph.layers] == ["Input", "Abs"]
    with pytest.raises(CompassError, match="no tensor 'z'"):
        import_bytes(content, outputs=["z"])


def test_a_limit_that_a_cell_may_reach_is_refused(monkeypatch):
    from tests.importers import tflite_models

    given = tflite_models.Model.__call__
    with monkeypatch.context() as patch:
        patch.setattr(tflite_models.Model, "__call__", lambda net, *a, **k: given(net, *a, **{**k, "cell_clip": 3.0}))
        content = tflite_cases.build("lstm")
    with pytest.raises(RefusedModel) as caught:
        import_bytes(content)
    assert "limited to 3.0, which 4 steps may reach" in caught.value.notes[0].message
