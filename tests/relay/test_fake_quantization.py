"""Regions between dequantisation and quantisation in whole numbers: within a step of what they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compassc import relay
from compassc.relay.backend.executors import create_executor
from compassc.relay.builders import build, call, results
from compassc.relay.passes import make
from compassc.relay.qnn.affine import TensorAffineType
from compassc.relay.transform import InferType
from compassc.relay.visit import post_order
from tests.choosing import some
from tests.relay.relay_values import evaluate, module

RNG = np.random.default_rng(3)
SHAPE = (1, 4, 6, 6)
X, Y = (relay.var(n, shape=SHAPE, dtype="int8") for n in "xy")
A, B = (RNG.integers(-128, 128, SHAPE).astype("int8") for _ in "xy")
M = relay.var("m", shape=(3, 8), dtype="int8")
BYTES = RNG.integers(-128, 128, (3, 8)).astype("int8")


def real(e: relay.Expr, scale: Any = 0.05, zero: Any = 3, axis: int = -1) -> relay.Expr:
    scales, zeros = relay.const(np.asarray(scale, "float32")), relay.const(np.asarray(zero, "int32"))
    return build("qnn.dequantize", e, scales, zeros, axis=axis)


def whole(e: relay.Expr, scale: float = 0.1, zero: int = -5, dtype: str = "int8") -> relay.Expr:
    return build("qnn.quantize", e, relay.const(np.float32(scale)), relay.const(zero, "int32"), out_dtype=dtype)


def constant(*shape: int, scale: Any = 0.02, axis: int = -1, zero: Any = 0) -> relay.Expr:
    return real(relay.const(RNG.integers(-128, 128, shape).astype("int8")), scale, zero, axis)


def floats(*shape: int) -> relay.Constant:
    return relay.const(RNG.normal(0, 2, shape).astype("float32"))


CHANNELS = [0.01, 0.02, 0.005, 0.03, 0.015]
CONV = {"kernel_size": (3, 3), "channels": 5, "padding": (1, 1)}
_biased = build(
    "nn.bias_add", build("nn.conv2d", real(X), constant(5, 4, 3, 3, scale=CHANNELS, axis=0), **CONV), floats(5)
)
_int_bias = real(
    relay.const(RNG.integers(-999, 999, 5).astype("int32")), np.float32(0.05) * np.array(CHANNELS, "float32"), 0, 0
)
REGIONS: dict[str, relay.Expr] = {
    "conv2d": whole(build("nn.conv2d", real(X), constant(5, 4, 3, 3, zero=4), **CONV), 0.9),
    "channels": whole(build("clip", _biased, 0.0, 6.0), 0.03, -128),
    "relu": whole(build("nn.relu", _biased), 0.4, -128),
    "int32 bias": whole(build("nn.bias_add", build("nn.conv2d", real(X), constant(5, 4, 3, 3, scale=CHANNELS, axis=0), **CONV), _int_bias), 0.4),
    "transposed": whole(build("nn.conv2d_transpose", real(X), constant(4, 2, 3, 3), kernel_size=(3, 3), channels=2), 0.9),
    "dense": whole(build("nn.bias_add", build("nn.dense", real(M), constant(4, 8, scale=CHANNELS[:4], axis=0)), floats(4)), 0.2),
    "batches": whole(build("nn.batch_matmul", build("expand_dims", real(M), 0), build("expand_dims", real(M, 0.01), 0)), 0.2),
    "moves": whole(build("transpose", build("reshape", build("strided_slice", real(X), [0, 0, 1], [1, 4, 5]), (4, -1)), (1, 0))),
    "pools": whole(build("nn.max_pool2d", build("nn.pad", real(X), ((0, 0), (0, 0), (1, 1), (1, 0)), 0.0), (2, 2), (2, 2))),
    "mean pool": whole(build("nn.avg_pool2d", real(X), (3, 3), (2, 2), padding=(1, 1)), 0.05, 3),
    "whole mean": whole(build("nn.global_avg_pool2d", real(X)), 0.05, 3),
    "mean": whole(build("mean", real(X), axis=[2, 3]), 0.05),
    "add": whole(build("add", real(X), real(Y, 0.03, -7)), 0.07), "add a number": whole(build("add", real(X), relay.const(1.5))),
    "subtract": whole(build("subtract", real(X), real(Y, 0.03, -7)), 0.07),
    "sum of products": whole(build("add", build("nn.conv2d", real(X), constant(4, 4, 1, 1), kernel_size=(1, 1), channels=4), real(Y)), 0.3),
    "multiply": whole(build("multiply", real(X), real(Y, 0.03, -7)), 0.2), "scale": whole(build("multiply", real(X), floats(4, 1, 1)), 0.2),
    "concatenate": whole(build("concatenate", [real(X), real(Y, 0.03, -7)], 1)),
    "split": whole(results("split", real(X), 2, 1)[1]),
    "choice": whole(build("maximum", real(X), build("minimum", real(Y, 0.03), relay.const(1.0)))),
    **{name: whole(build(name, real(X)), 0.02) for name in ("tanh", "sigmoid", "erf", "abs")},
    "exp": whole(build("exp", real(X, 0.02)), 0.1, -128), "leaky": whole(build("nn.leaky_relu", real(X), 0.2)),
    "unsigned": whole(build("nn.relu", real(X)), 0.05, 0, "uint8"),
    "two": whole(build("nn.relu", real(whole(build("nn.conv2d", real(X), constant(4, 4, 1, 1), kernel_size=(1, 1), channels=4), 0.4), 0.4, -5)), 0.3),
}  # fmt: skip
INPUTS = {"x": A, "y": B, "m": BYTES}


def program(e: relay.Expr) -> tuple[relay.IRModule, list[np.ndarray]]:
    m = InferType()(module(relay.Function(relay.analysis.free_vars(e), e)))
    return m, [INPUTS[v.name_hint] for v in m["main"].params]


def names(m: relay.IRModule) -> set[str]:
    return {e.op.name for e in post_order(m["main"]) if isinstance(e, relay.Call)}


def integers(m: relay.IRModule) -> relay.IRModule:
    found = make("FakeQuantizationToInteger", hard_fail=True)(m)
    assert not names(found) & {"qnn.dequantize", "qnn.quantize"}
    return found


def close(a: np.ndarray, b: np.ndarray, steps: int = 1) -> None:
    assert a.dtype == b.dtype and a.shape == b.shape
    assert np.abs(a.astype("int64") - b.astype("int64")).max() <= steps
    assert len(np.unique(b)) > 2, "the test sees nothing"


STEPS = {"scale": 2}
"""Products with a constant that is quantised, too."""


@pytest.mark.parametrize("name", REGIONS)
def test_regions(name):
    m, arrays = program(REGIONS[name])
    for a, b in some(zip(evaluate(integers(m), *arrays), evaluate(m, *arrays), strict=True)):
        close(a, b, STEPS.get(name, 1))


def test_the_host_runs_them():
    body = relay.Tuple([REGIONS[n] for n in ("channels", "int32 bias", "add", "pools", "two")])
    m, arrays = program(body)
    m = integers(m)
    wanted = evaluate(relay.qnn.transform.CanonicalizeOps()(m), *arrays)
    for a, b in some(zip(create_executor("graph").evaluate(m["main"])(*arrays), wanted, strict=True)):
        np.testing.assert_array_equal(a.numpy(), b)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_chains(data):
    """Chains of moves, bounds and one sum, in any order: what is bounded early would show."""
    e: relay.Expr = real(X)
    steps = data.draw(st.permutations(["relu", "clip", "pool", "move", "add", "conv", "choice"]))
    for step in steps[: data.draw(st.integers(1, 4))]:
        e = {
            "relu": lambda v: build("nn.relu", v), "clip": lambda v: build("clip", v, -2.0, 3.0),
            "pool": lambda v: build("nn.max_pool2d", v, (2, 2), (1, 1), padding=(0, 0, 1, 1)),
            "move": lambda v: build("transpose", v, (0, 1, 3, 2)),
            "add": lambda v: build("add", v, real(Y, 0.03, -7)), "choice": lambda v: build("maximum", v, real(Y, 0.03, -7)),
            "conv": lambda v: build("nn.conv2d", v, constant(4, 4, 1, 1), kernel_size=(1, 1), channels=4),
        }[step](e)  # fmt: skip
    m, arrays = program(whole(e, data.draw(st.sampled_from([0.05, 0.3]))))
    found = make("FakeQuantizationToInteger")(m)
    (a,), (b,) = evaluate(found, *arrays), evaluate(m, *arrays)
    assert np.abs(a.astype("int64") - b).max() <= 1


REFUSED = {
    "no rule": (whole(build("cos", real(X))), "cos has no rule"),
    "an input": (whole(build("add", real(X), relay.var("f", shape=SHAPE))), "Var has no rule"),
    "nothing quantised": (whole(build("nn.relu", floats(3))), "nothing is dequantised"),
    "bounded before a product": (
        whole(build("nn.conv2d", build("add", real(X), real(Y)), constant(4, 4, 1, 1), kernel_size=(1, 1), channels=4)),
        "what follows it is no mere move"),
    "zeros around": (whole(build("nn.avg_pool2d", real(X), (3, 3), padding=(1, 1), count_include_pad=True)), "are no zeros here"),
    "float weights": (whole(build("nn.dense", real(M), floats(4, 8))), "parameters are not known"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_suit_stays(name):
    e, message = REFUSED[name]
    m = InferType()(module(relay.Function(relay.analysis.free_vars(e), e)))
    assert make("FakeQuantizationToInteger")(m) is m
    with pytest.raises(CompassError, match=message):
        make("FakeQuantizationToInteger", hard_fail=True)(m)


def test_rules_can_be_registered():
    e = whole(build("negative", real(X, zero=0)))
    m, arrays = program(e)

    def negative(given: relay.Call, types: Any) -> Any:
        t = types.tensor(given.args[0])
        wide = call("negative", call("cast", given.args[0], dtype="int32"))
        return wide, TensorAffineType(t.scale, t.zero_point, "int32")

    with relay.op.temporary("negative", "FTVMFakeQuantizationToInteger", negative):
        close(evaluate(integers(m), *arrays)[0], evaluate(m, *arrays)[0])


def alone(name: str) -> relay.Expr:
    """A region without the quantisation of its result."""
    e = REGIONS[name]
    return (
        relay.TupleGetItem(e.args[0].tuple_value, e.args[0].index) if isinstance(e, relay.TupleGetItem) else e.args[0]
    )


ALONE = [
    "conv2d",
    "channels",
    "relu",
    "int32 bias",
    "transposed",
    "dense",
    "batches",
    "moves",
    "pools",
    "mean pool",
    "whole mean",
    "split",
]
PRODUCTS = {"nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.batch_matmul"}


@pytest.mark.parametrize("name", ALONE)
def test_operators_without_a_quantisation_behind_them(name):
    """They compute with whole numbers, within a step of what they are given, and what they give is dequantised."""
    m, arrays = program(alone(name))
    assert relay.structural_equal(make("FakeQuantizationToInteger")(m), m)
    found = make("FakeQuantizationToInteger", use_qat=True)(m)
    assert not names(found) & PRODUCTS and "qnn.dequantize" in names(found)
    for a, b in some(zip(evaluate(found, *arrays), evaluate(m, *arrays), strict=True)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=0.051)


def test_what_follows_them_stays_in_floats():
    sums = build("nn.conv2d", real(X), constant(4, 4, 1, 1), kernel_size=(1, 1), channels=4)
    m, arrays = program(build("exp", build("negative", build("nn.relu", sums))))
    found = make("FakeQuantizationToInteger", use_qat=True)(m)
    assert names(found) == {"qnn.conv2d", "maximum", "qnn.dequantize", "negative", "exp"}
    np.testing.assert_allclose(evaluate(found, *arrays)[0], evaluate(m, *arrays)[0], rtol=1e-4, atol=1e-6)
    mixed, _ = program(build("nn.dense", real(M), floats(4, 8)))
    assert relay.structural_equal(make("FakeQuantizationToInteger", use_qat=True)(mixed), mixed)
