"""Quantised operators as layers: the same numbers as the lowered program gives, to the bit, or refused with a reason."""

from __future__ import annotations

import numpy as np
import pytest

from compass_runtime.compass_module import CompassModule
from compass_runtime.devices import cpu
from compass_runtime.graph_executor import GraphModule
from compassc import relay
from compassc.graph.run import run_graph
from compassc.relay.backend.build import build, partition
from compassc.relay.backend.layers import graph_of
from compassc.relay.builders import build as built
from compassc.relay.builders import results
from compassc.relay.module import IRModule
from compassc.relay.transform import InferType
from tests.choosing import some
from tests.importers import tflite_quantised
from tests.importers.test_tflite_models import arrays_for
from tests.relay.relay_values import evaluate
from tests.relay.test_qnn_lowering import REALS
from tests.relay.test_relay_contributed import network

TARGET = "X2_1204"


def scales(rng, count):
    return (rng.random(count) / 40 + 0.01).astype("float32")


def sums(seed: int, requantise: bool = True, **other: object) -> relay.Function:
    """A convolution or product of random form, with and without a bias, requantised per channel or as a whole."""
    rng, c = np.random.default_rng(seed), relay.const
    kind, dtype = ("conv", "depthwise", "nhwc", "dense")[seed % 4], ("int8", "uint8")[seed % 2]
    outputs = 3 if kind == "depthwise" else 5
    weight_scale = scales(rng, outputs if seed % 3 else 1)
    known = [
        c(np.int32(rng.integers(0, 9))),
        c(np.int32(seed % 5 and 2)),
        c(np.float32(0.02)),
        c(weight_scale.reshape(-1 if seed % 3 else ())),
    ]
    if kind == "dense":
        x = relay.var("x", shape=(3, 9), dtype=dtype)
        y = built("qnn.dense", x, c(rng.integers(-99, 99, (outputs, 9)).astype("int8")), *known, units=outputs)
    else:
        layout, kernel = ("NHWC", "HWIO") if kind == "nhwc" else ("NCHW", "OIHW")
        x = relay.var("x", shape=(1, 6, 5, 3) if kind == "nhwc" else (1, 3, 6, 5), dtype=dtype)
        shape = {"conv": (outputs, 3, 3, 2), "depthwise": (3, 1, 3, 2), "nhwc": (3, 2, 3, outputs)}[kind]
        w = c(rng.integers(-20, 20, shape).astype("int8"))
        more = {
            "padding": (1, 0),
            "groups": 3 if kind == "depthwise" else 1,
            "data_layout": layout,
            "kernel_layout": kernel,
        }
        y = built("qnn.conv2d", x, w, *known, kernel_size=(3, 2), channels=outputs, strides=(1, 1 + seed % 2), **more)
    axis = 1 if kind not in ("nhwc", "dense") else -1
    if seed % 2:
        y = built("nn.bias_add", y, c(rng.integers(-99, 99, outputs).astype("int32")), axis=axis)
    ends = [
        c((weight_scale * np.float32(0.02)).reshape(-1 if seed % 3 else ())),
        c(np.int32(0)),
        c(np.float32(0.4)),
        c(np.int32(-3 + seed % 2 * 90)),
    ]
    given = {"axis": axis, "out_dtype": dtype, **other}
    return relay.Function([x], built("qnn.requantize", y, *ends, **given) if requantise else y)


def data(f: relay.Function) -> np.ndarray:
    t = f.params[0].type_annotation
    info = np.iinfo(t.dtype)
    return np.random.default_rng(1).integers(info.min, info.max + 1, t.concrete_shape).astype(t.dtype)


def exact(f: relay.Function, x: np.ndarray) -> np.ndarray:
    return evaluate(InferType()(IRModule({"main": f})), x)[0]


@pytest.mark.parametrize("seed", range(12))
def test_layers_give_the_same_numbers(seed):
    f = sums(seed)
    placement = partition(IRModule({"main": f}), TARGET)
    (row,) = placement.rows
    assert (row.place, row.why) == ("NPU", "")
    region = placement.module[row.region]
    graph, x = graph_of(region, "net"), data(f)
    made = run_graph(graph, {graph.inputs[0].name: x})[graph.outputs[0].name]
    np.testing.assert_array_equal(made.reshape(-1), exact(f, x).reshape(-1))
    assert len(np.unique(made)) > 10


def test_programs_give_the_same_numbers_beside_the_host():
    """Two layers, with a function of the host between them that needs the lowered operators."""
    rng, c = np.random.default_rng(4), relay.const
    first = sums(0)
    y = built("qnn.tanh", first.body, c(np.float32(0.02)), c(np.int32(0)), c(np.float32(0.01)), c(np.int32(0)))
    w = c(rng.integers(-20, 20, (4, 5, 1, 1)).astype("int8"))
    y = built(
        "qnn.conv2d",
        y,
        w,
        c(np.int32(0)),
        c(np.int32(0)),
        c(np.float32(0.01)),
        c(np.float32(0.02)),
        kernel_size=(1, 1),
        channels=4,
    )
    y = built(
        "qnn.requantize",
        y,
        c(np.float32(0.0002)),
        c(np.int32(0)),
        c(np.float32(0.007)),
        c(np.int32(1)),
        axis=1,
        out_dtype="int8",
    )
    f = relay.Function(first.params, y)
    library = build(IRModule({"main": f}), TARGET)
    assert {row.place for row in library.placement.rows} == {"NPU"}
    assert len([m for m in library.get_lib().imported_modules if isinstance(m, CompassModule)]) == 1
    graph, x = GraphModule(library["default"](cpu())), data(f)
    graph.run(x=x)
    np.testing.assert_array_equal(graph.get_output(0).numpy(), exact(f, x))


def requantised(y: relay.Expr, scale: object, out: float, **more: object) -> relay.Expr:
    c = relay.const
    given = (c(np.asarray(scale, "float32")), c(np.int32(0)), c(np.float32(out)), c(np.int32(0)))
    return built("qnn.requantize", y, *given, axis=1, out_dtype="int8", **more)


def wide_sums() -> tuple[relay.Var, relay.Expr]:
    """Products whose sums have no multiplier of 24 bits."""
    rng, c = np.random.default_rng(0), relay.const
    x = relay.var("x", shape=(2, 640), dtype="int8")
    zeros = [c(np.int32(3)), c(np.int32(0)), c(np.float32(0.02)), c(np.float32(0.03))]
    return x, built("qnn.dense", x, c(rng.integers(-127, 128, (32, 640)).astype("int8")), *zeros, units=32)


def test_what_one_layer_does_not_compute_alike_is_multiplied_by_31_bits():
    """Sums, halves and roundings that fused layers have not, as layers of int32."""
    x, dense = wide_sums()
    scale = scales(np.random.default_rng(1), 32) / 50
    ended = [
        requantised(dense, scale, 2.5), requantised(dense, 0.5, 1.0),
        *(requantised(dense, scale, 2.5, rounding=way) for way in ("TWICE_UPWARD", "TWICE_TONEAREST")),
    ]  # fmt: skip
    f = relay.Function([x], relay.Tuple(ended))
    library = build(IRModule({"main": f}), TARGET)
    assert {row.place for row in library.placement.rows} == {"NPU"}
    graph, given = GraphModule(library["default"](cpu())), data(f)
    graph.run(x=given)
    for i, want in enumerate(some(evaluate(InferType()(IRModule({"main": f})), given))):
        np.testing.assert_array_equal(graph.get_output(i).numpy(), want)


def on_layers(f: relay.Function, x: np.ndarray) -> np.ndarray:
    """What the one region of a program gives, by the definitions of its layers."""
    placement = partition(IRModule({"main": f}), TARGET)
    assert {row.place for row in placement.rows} == {"NPU"}, placement.rows
    (region,) = {row.region for row in placement.rows}
    graph = graph_of(placement.module[region], "net")
    return run_graph(graph, {graph.inputs[0].name: x})[graph.outputs[0].name].reshape(x.shape)


@pytest.mark.parametrize("seed", range(16))
def test_reals_become_the_same_numbers_at_every_border(seed):
    """At the floats between which numbers change, beyond all numbers, and of what is no number."""
    rng, c = np.random.default_rng(seed), relay.const
    dtype, rounding = ("int8", "uint8")[seed % 2], ("None", "TIES_TO_EVEN")[seed // 2 % 2]
    scale = np.float32(2.0 ** -(seed // 4) if seed % 4 == 3 else rng.uniform(0.5, 1) * 10.0 ** rng.integers(-6, 3))
    info = np.iinfo(dtype)
    zero = int(rng.integers(info.min, info.max + 1)) if seed % 3 else 0
    halves = (np.arange(info.min - 1, info.max + 2) - zero + 0.5) * np.float64(scale)
    near = halves.astype("float32")
    up, down = (np.nextafter(near, np.float32(way)) for way in (np.inf, -np.inf))
    x = np.concatenate([near, up, down, [np.nan, np.inf, -np.inf, 3e38, -3e38, 0, -0.0]]).astype("float32")[None]
    v = relay.var("x", shape=x.shape)
    f = relay.Function([v], built("qnn.quantize", v, c(scale), c(np.int32(zero)), out_dtype=dtype, rounding=rounding))
    np.testing.assert_array_equal(on_layers(f, x), exact(f, x))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_numbers_become_reals_by_channel(dtype):
    rng, c = np.random.default_rng(0), relay.const
    v = relay.var("x", shape=(2, 3, 5), dtype=dtype)
    zeros = c(rng.integers(0, 99, 3).astype("int32"))
    f = relay.Function([v], built("qnn.dequantize", v, c(scales(rng, 3)), zeros, axis=1))
    np.testing.assert_array_equal(on_layers(f, data(f)), exact(f, data(f)))


@pytest.mark.parametrize("name", [*REALS, "qnn.leaky_relu"])
def test_functions_of_bytes_are_looked_up(name):
    c, alpha = relay.const, (0.3,) * (name == "qnn.leaky_relu")
    for dtype, zero in some([("int8", -7), ("uint8", 99)]):
        v = relay.var("x", shape=(4, 64), dtype=dtype)
        levels = [c(np.float32(0.03)), c(np.int32(zero)), c(np.float32(0.02)), c(np.int32(zero + 2))]
        f = relay.Function([v], built(name, v, *alpha, *levels))
        x = (np.arange(256) + np.iinfo(dtype).min).astype(dtype).reshape(4, 64)
        np.testing.assert_array_equal(on_layers(f, x), exact(f, x))


def test_what_would_be_other_numbers_stays_on_the_host_with_the_reason():
    _, dense = wide_sums()
    y = relay.var("y", shape=(2, 32), dtype="int32")
    huge = relay.const(np.int32(2**31 - 1))
    whys = {
        "layers do not round TONEAREST": requantised(dense, 0.0006, 3.7, rounding="TONEAREST"),
        "beyond 32 bits": built("add", dense, huge),
        "it is not of float32 or int8 or uint8 or int32": built("maximum", built("cast", y, "int64"), relay.const(3, "int64")),
        "layers do not cast int32 to int64": built("cast", y, "int64"),
        "too many numbers of int16": built("qnn.quantize", relay.var("r", shape=(1, 4)), relay.const(np.float32(0.1)), relay.const(0), out_dtype="int16"),
        "numbers of 32 bits have a zero point": built("qnn.requantize", y, relay.const(0.1), relay.const(1), relay.const(0.2), relay.const(0), out_dtype="int8"),
    }  # fmt: skip
    for why, e in whys.items():
        rows = partition(IRModule({"main": relay.Function(relay.analysis.free_vars(e), e)}), TARGET).rows
        assert rows[-1].place == "host" and why in rows[-1].why, rows[-1].why


def test_choices_of_the_user_hold_for_them():
    from compassc.pass_manager.context import PassContext

    with PassContext(config={"relay.ext.compass.options": {"host": ["qnn.conv2d"]}}):
        rows = partition(IRModule({"main": sums(0)}), TARGET).rows
    assert {(row.place, row.why) for row in rows} == {("host", "it is asked to run on the host")}


X = relay.var("x", shape=(1, 4, 6, 6), dtype="int8")
Y = relay.var("y", shape=(1, 4, 6, 6), dtype="int8")
MOVES: dict[str, relay.Expr] = {
    "reshape": built("reshape", X, (4, -1)), "squeeze": built("squeeze", X, [0]), "expand_dims": built("expand_dims", X, 0),
    "flat": built("nn.batch_flatten", X), "transpose": built("transpose", X, (0, 2, 3, 1)),
    "concatenate": built("concatenate", [X, Y], 2), "split": results("split", X, 2, 1)[1],
    "strided_slice": built("strided_slice", X, [0, 1], [1, 4], [1, 2]), "tile": built("tile", X, (1, 2, 1, 1)),
    "pad": built("nn.pad", X, ((0, 0), (0, 0), (1, 1), (0, 2)), relay.const(-7, "int8")), "clip": built("clip", X, -20, 30.5),
    "maximum": built("maximum", X, Y), "minimum": built("minimum", X, relay.const(np.int8(9))), "relu": built("nn.relu", X),
    "pool": built("nn.max_pool2d", X, (3, 2), (2, 2), padding=(1, 0)), "max": built("max", X, axis=[2, 3]),
    "min": built("min", X, axis=[1], keepdims=True), "broadcast_to": built("broadcast_to", built("min", X, axis=[2], keepdims=True), (1, 4, 6, 6)),
}  # fmt: skip


def test_whole_numbers_are_moved_and_chosen_by_layers():
    for name in some(sorted(MOVES)):
        f = relay.Function(relay.analysis.free_vars(MOVES[name]), MOVES[name])
        placement = partition(IRModule({"main": f}), TARGET)
        assert {row.place for row in placement.rows} == {"NPU"}, (name, placement.rows)
        (region,) = {row.region for row in placement.rows}
        graph = graph_of(placement.module[region], "net")
        given = [
            np.random.default_rng(n).integers(-128, 128, (1, 4, 6, 6)).astype("int8") for n in range(len(f.params))
        ]
        made = run_graph(graph, {t.name: v for t, v in zip(graph.inputs, given, strict=True)})
        want = evaluate(InferType()(IRModule({"main": f})), *given)
        np.testing.assert_array_equal(made[graph.outputs[0].name].reshape(-1), want[0].reshape(-1), err_msg=name)


def test_a_quantised_model_gives_the_same_numbers_everywhere():
    model, x = network()
    module = relay.transform.FakeQuantizationToInteger()(relay.frontend.from_onnx(model)[0])
    (want,) = evaluate(module, x)
    for target in ("llvm", TARGET):
        library = build(module, target)
        graph = GraphModule(library["default"](cpu()))
        graph.run(x=x)
        np.testing.assert_array_equal(graph.get_output(0).numpy(), want)
    assert {row.place for row in library.placement.rows} == {"NPU"}


def test_a_model_of_tflite_gives_the_same_numbers_everywhere():
    content = tflite_quantised.build("network")
    module, given = relay.frontend.from_tflite(content)[0], arrays_for(content, "network")
    (want,) = evaluate(module, *given)
    for target in ("llvm", TARGET):
        library = build(module, target)
        graph = GraphModule(library["default"](cpu()))
        graph.run(**{module["main"].params[0].name_hint: given[0]})
        np.testing.assert_array_equal(graph.get_output(0).numpy(), want)
    assert {row.place for row in library.placement.rows} == {"NPU"}
