"""Passes that write programs in another form: dilation, concatenations in steps, means, batches and types."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import relay
from compassc.relay.builders import build
from compassc.relay.operators import op_name
from compassc.relay.passes import make
from compassc.relay.transform import recast
from compassc.relay.visit import post_order
from tests.relay.relay_values import evaluate, module

RNG = np.random.default_rng(2)


def typed(f: relay.Function):
    return make("InferType")(module(f))


def calls(f: relay.Expr, name: str) -> list[relay.Call]:
    return [e for e in post_order(f) if op_name(e) == name]


def atrous(paddings, crops, size=6, kernel=3, block=2, layout="HWIO", pad_value=0.0):
    x = relay.var("x", shape=(1, size, size, 2))
    w = relay.const(RNG.integers(-3, 4, (kernel, kernel, 2, 2)).astype("float32"))
    inner = build("nn.space_to_batch_nd", x, [block] * 2, [paddings] * 2, pad_value)
    conv = build("nn.conv2d", inner, w, data_layout="NHWC", kernel_layout=layout)
    return typed(relay.Function([x], build("nn.batch_to_space_nd", conv, [block] * 2, [crops] * 2)))


@pytest.mark.parametrize(
    ("paddings", "crops", "size", "kernel", "block"),
    [
        ([2, 2], [0, 0], 6, 3, 2),
        ([2, 3], [0, 1], 5, 3, 2),
        ([0, 0], [0, 0], 6, 3, 2),
        ([3, 3], [0, 0], 6, 3, 3),
        ([4, 4], [1, 1], 6, 3, 2),
    ],
)
def test_space_in_batches_is_dilation(paddings, crops, size, kernel, block):
    f = atrous(paddings, crops, size, kernel, block)
    made = make("FlattenAtrousConv")(f)
    (conv,) = calls(made["main"], "nn.conv2d")
    assert not calls(made["main"], "nn.space_to_batch_nd") and list(conv.attrs.dilation) == [block] * 2
    x = RNG.integers(-3, 4, (1, size, size, 2)).astype("float32")
    np.testing.assert_array_equal(evaluate(made, x)[0], evaluate(f, x)[0])


@pytest.mark.parametrize(
    "f", [atrous([0, 0], [1, 1], 8), atrous([2, 2], [0, 0], pad_value=1.0)], ids=["crops", "pad value"]
)
def test_what_dilation_cannot_do_stays(f):
    assert make("FlattenAtrousConv")(f) is f


@pytest.mark.parametrize(("count", "most", "parts"), [(10, 4, 3), (8, 4, 2), (4, 4, 0), (10, 0, 0)])
def test_concatenations_in_steps(count, most, parts):
    xs = [relay.var(f"x{i}", shape=(1, 2)) for i in range(count)]
    f = typed(relay.Function(xs, build("concatenate", xs, 1)))
    made = make("SplitArgs", most)(f)
    assert len(calls(made["main"], "annotation.stop_fusion")) == parts
    arrays = [np.full((1, 2), i, "float32") for i in range(count)]
    np.testing.assert_array_equal(evaluate(made, *arrays)[0], evaluate(f, *arrays)[0])


def test_variances_are_means():
    x = relay.var("x", shape=(3, 4))
    f = typed(relay.Function([x], build("variance", x, axis=1, keepdims=True)))
    made = make("DecomposeVariance")(f)
    assert not calls(made["main"], "variance")
    array = RNG.random((3, 4), "float32")
    np.testing.assert_allclose(evaluate(made, array)[0], array.var(1, keepdims=True), rtol=1e-5)


def test_batches_change_with_all_that_follows():
    x, w = relay.var("x", shape=(1, 4)), relay.var("w", shape=(3, 4))
    f = typed(relay.Function([x, w], build("nn.relu", build("nn.dense", x, w))))
    for key in (x, "x"):
        made = make("ChangeBatch", {key: 0}, 5)(f)["main"]
        assert made.ret_type == relay.TensorType((5, 3)) and made.params[0].checked_type == relay.TensorType((5, 4))
    pair = typed(relay.Function([p := relay.var("p", relay.TupleType([]))], p))
    with pytest.raises(CompassError, match="p is no tensor"):
        make("ChangeBatch", {"p": 0})(pair)


def test_operators_are_cast_by_name():
    x, w = relay.var("x", shape=(1, 2, 4, 4)), relay.const(np.ones((2, 2, 3, 3), "float32"))
    e = build("nn.relu", build("nn.conv2d", build("nn.conv2d", x, w, padding=1), w))
    made = typed(recast(relay.Function([x], e), "int8", "int32"))["main"]
    assert [c.checked_type.dtype for c in calls(made, "nn.conv2d")] == [
        "int32",
        "int32",
    ] and made.ret_type.dtype == "float32"
    array = np.full((1, 2, 4, 4), 1, "float32")
    np.testing.assert_array_equal(evaluate(module(made), array)[0], evaluate(typed(relay.Function([x], e)), array)[0])
    second = typed(relay.Function([x], recast(e, "int8", "int32", skip_layers=[0])))["main"]
    assert [c.checked_type.dtype for c in calls(second, "nn.conv2d")] == [
        "float32",
        "int32",
    ]
    both = recast(module(relay.Function([x], build("concatenate", [x, x], 1))), "int8", "int8", ops=["concatenate"])
    assert len(calls(both["main"], "cast")) == 3 and both["main"].ret_type.dtype == "float32"
