"""Quantised operators lowered to plain ones compute what their references do, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compassc import relay
from compassc.relay import declared
from compassc.relay.backend.executors import create_executor
from compassc.relay.builders import call
from compassc.relay.operators import OPERATORS
from compassc.relay.ops.fixed_point import TWICE, requantize_config
from compassc.relay.transform import InferType
from compassc.relay.visit import post_order
from tests.choosing import some
from tests.relay.relay_values import evaluate, module
from tests.relay.trying_operators import cases, type_of

declared.load()
NAMES = [name for name, op in OPERATORS.items() if op.get_attr("FTVMQnnCanonicalize")]
SAMPLED = [name for name in NAMES if OPERATORS[name].samples]
REALS = [name for name in SAMPLED if OPERATORS[name].get_attr("FTVMQnnLegalize")]


def constants(given: Any) -> relay.Expr:
    """The constant of an array, the tuple of a list of them."""
    return relay.Tuple([*map(relay.const, given)]) if isinstance(given, list) else relay.const(given)


def program(name: str, arrays: list[Any], attrs: Any, inputs: int) -> tuple[relay.IRModule, list[Any]]:
    """A call of an operator whose first arguments are parameters and whose others are constants, and the parameters' arrays."""
    params = [relay.Var(f"x{n}", type_of(a)) for n, a in enumerate(arrays[:inputs])]
    made = relay.Call(OPERATORS[name], [*params, *map(constants, arrays[inputs:])], attrs)
    return InferType()(module(relay.Function(params, made))), arrays[:inputs]


def lowered(m: relay.IRModule, *passes: Any) -> relay.IRModule:
    for p in passes or (relay.qnn.transform.CanonicalizeOps(),):
        m = p(m)
    names = [e.op.name for e in post_order(m["main"]) if isinstance(e, relay.Call)]
    assert names and not [n for n in names if n.startswith("qnn.")]
    return m


def inputs_of(name: str) -> int:
    """How many arguments are no scales and zero points."""
    return sum("scale" not in a.name and "zero" not in a.name for a in OPERATORS[name].arguments)


def agrees(name: str, arrays: list[Any], *passes: Any, inputs: int | None = None, **attributes: Any) -> relay.IRModule:
    """That an operator of arrays and what it is lowered to give the same bits; the lowered module."""
    record = OPERATORS[name].record
    given_arrays = [a if isinstance(a, list) else np.asarray(a) for a in arrays]
    m, values = program(name, given_arrays, record(**attributes) if record else None, inputs or inputs_of(name))
    found = lowered(m, *passes)
    for a, b in some(zip(evaluate(found, *values), evaluate(m, *values), strict=True)):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    return found


Z = [np.array(z, "int32") for z in (3, -5)]
S = [np.array(s, "float32") for s in (0.1, 0.7)]
VECTOR = np.array([0.1, 3.0, 17.5], "float32")
WIDE, EDGES = (
    np.array([[7, -7, 2**31 - 1], [-(2**31), 35, -35]], "int32"),
    np.array([1e30, -np.inf, np.nan, -0.05], "float32"),
)
HOST: list[tuple[str, list[Any], dict[str, Any]]] = [
    *(("qnn.requantize", [WIDE, scale, Z[0], S[1], Z[1]], {"out_dtype": dtype, "rounding": rounding, "compute_dtype": compute})
      for scale, dtype in ((S[0], "int32"), (VECTOR, "uint8"))
      for rounding in ("UPWARD", "TONEAREST") for compute in ("int64", "float32")),
    *(("qnn.requantize", [WIDE // 64, scale.astype(kind), Z[0], S[1], Z[1]], {"out_dtype": "int8", "rounding": rounding})
      for scale, kind, rounding in ((S[0] / 9, "float64", "TWICE_UPWARD"), (VECTOR / 40, "float32", "TWICE_TONEAREST"))),
    ("qnn.quantize", [EDGES, S[0], Z[1]], {"out_dtype": "int32"}), ("qnn.quantize", [EDGES, S[0], Z[1]], {"out_dtype": "uint8"}),
    ("qnn.concatenate", [[WIDE, WIDE[:1]], [S[0], S[1]], [Z[0], Z[1]], S[1], Z[1]], {"axis": 0}),
]  # fmt: skip
"""Operators, arrays and attributes beside the samples."""


@pytest.mark.parametrize("case", range(len(HOST)), ids=lambda n: HOST[n][0])
def test_further_numbers(case):
    name, arrays, attributes = HOST[case]
    agrees(name, arrays, **attributes)


@pytest.mark.parametrize("name", SAMPLED)
def test_samples(name):
    for case in some(cases(OPERATORS[name])):
        agrees(name, case.arrays, **dict(case.attrs or {}))
        if name in REALS:
            tables = relay.qnn.transform.Legalize(), relay.qnn.transform.CanonicalizeOps()
            agrees(name, case.arrays, *tables, **dict(case.attrs or {}))


def test_the_host_runs_lowered_programs():
    everything = [(name, case.arrays, dict(case.attrs or {})) for name in SAMPLED for case in cases(OPERATORS[name])]
    params, calls, values, wanted = [], [], [], []
    for name, arrays, attributes in [*everything, *HOST]:
        op, own = OPERATORS[name], inputs_of(name)
        attrs = op.record(**attributes) if op.record else None
        params += [relay.Var(f"x{len(params) + i}", type_of(a)) for i, a in enumerate(arrays[:own])]
        values += [tuple(a) if isinstance(a, list) else a for a in arrays[:own]]
        calls.append(relay.Call(op, [*params[len(params) - own :], *map(constants, arrays[own:])], attrs))
        t = InferType()(module(relay.Function(params[len(params) - own :], calls[-1])))["main"].ret_type
        wanted.append(op.reference(attrs, arrays, t))
    found = create_executor("graph").evaluate(relay.Function(params, relay.Tuple(calls)))(*values)
    for made, a, b in some(zip(calls, found, wanted, strict=True)):
        np.testing.assert_array_equal(a.numpy(), b, err_msg=f"{made.op.name} {made.attrs}")


# ------------------------------------------------------------------------------------------------------------------ draws

SCALES = st.floats(2**-12, 8.0, width=32)
INTS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1)}
SEEDS = st.integers(0, 2**31)


def numbers(seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    low, high = INTS[dtype]
    drawn = np.random.default_rng(seed).integers(low, high, shape, endpoint=True)
    return drawn.astype(dtype)


@st.composite
def parameters(draw: Any, size: int = 0) -> list[np.ndarray]:
    """A scale and a zero point, scalars or of some size each."""
    sized = size and draw(st.booleans())
    scale = draw(st.lists(SCALES, min_size=size, max_size=size)) if sized else draw(SCALES)
    whole = st.integers(-140, 260) if draw(st.booleans()) else st.just(0)
    zero = draw(st.lists(whole, min_size=size, max_size=size)) if size and draw(st.booleans()) else draw(whole)
    return [np.array(scale, "float32"), np.array(zero, "int32")]


@settings(max_examples=60, deadline=None)
@given(data=st.data(), seed=SEEDS, how=st.sampled_from(
    [(r, c) for r in ("UPWARD", "TONEAREST") for c in ("int64", "float32", "float64")] + [(r, "int64") for r in TWICE]))  # fmt: skip
def test_requantize(data, how, seed):
    rounding, compute = how
    source, dtype = data.draw(st.sampled_from(list(INTS))), data.draw(st.sampled_from(list(INTS)))
    axis = data.draw(st.sampled_from([0, 1, -1]))
    shape = (3, 4, 5)
    own, out = data.draw(parameters(shape[axis])), data.draw(parameters())
    arrays = [numbers(seed, shape, source), *own, *out]
    agrees("qnn.requantize", arrays, axis=axis, out_dtype=dtype, rounding=rounding, compute_dtype=compute)


@settings(max_examples=25, deadline=None)
@given(data=st.data(), seed=SEEDS)
def test_quantize_and_back(data, seed):
    dtype, axis = data.draw(st.sampled_from([*INTS, "uint16"])), data.draw(st.sampled_from([0, 1, -1]))
    own = data.draw(parameters((3, 4)[axis]))
    x = np.random.default_rng(seed).normal(0, 300, (3, 4)).astype("float32")
    x[0, :3] = 1e30, -np.inf, np.nan
    agrees("qnn.quantize", [x, *own], axis=axis, out_dtype=dtype)
    back = np.arange(12).reshape(3, 4).astype(dtype)
    agrees("qnn.dequantize", [back, *own], axis=axis, out_dtype=data.draw(st.sampled_from(["float32", "float16"])))


LAYOUTS = {"NCHW": "OIHW OHWI".split(), "NHWC": "HWIO HWOI OHWI".split()}


@settings(max_examples=50, deadline=None)
@given(data=st.data(), seed=SEEDS)
def test_conv2d(data, seed):
    layout = data.draw(st.sampled_from(list(LAYOUTS)))
    kernel = data.draw(st.sampled_from(LAYOUTS[layout]))
    groups, own, each = data.draw(st.sampled_from([(1, 3, 4), (1, 1, 2), (4, 1, 1), (4, 1, 2), (2, 2, 2)]))
    sizes = dict(zip("OIHW", (groups * each, own, data.draw(st.sampled_from([1, 3])), 2)))
    if groups > 1 and own == 1:
        sizes["O"], sizes["I"] = groups, each  # windows for each channel
    kinds = st.sampled_from(["int8", "uint8", "int16"])
    x = numbers(seed, tuple({"N": 1, "C": groups * own, "H": 6, "W": 5}[c] for c in layout), data.draw(kinds))
    w = numbers(seed + 1, tuple(sizes[c] for c in kernel), data.draw(kinds))
    zx, zw = data.draw(parameters())[1], data.draw(parameters(sizes["O"]))[1]
    scale, pads = np.float32(0.5), data.draw(st.sampled_from([[0, 0, 0, 0], [1, 1, 0, 1]]))
    agrees(
        "qnn.conv2d", [x, w, zx, zw, scale, scale], padding=pads, data_layout=layout, kernel_layout=kernel, groups=groups,
        strides=data.draw(st.sampled_from([[1, 1], [2, 1]])), dilation=data.draw(st.sampled_from([[1, 1], [1, 2]])),
        out_dtype=data.draw(st.sampled_from(["int32", "int64", "int16"])),
    )  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(data=st.data(), seed=SEEDS)
def test_matrices(data, seed):
    kinds = st.sampled_from(["int8", "uint8", "int16"])
    a, b = data.draw(kinds), data.draw(kinds)
    zx, zw = data.draw(parameters())[1], data.draw(parameters(4))[1]
    tail, kind = [zx, zw, np.float32(1), np.float32(1)], data.draw(st.sampled_from(["int32", "int64"]))
    agrees("qnn.dense", [numbers(seed, (3, 5), a), numbers(seed + 1, (4, 5), b), *tail], units=None, out_dtype=kind)
    tail[1] = zw.reshape(-1)[:1].reshape(())
    pair = [numbers(seed, (2, 3, 5), a), numbers(seed + 1, (2, 4, 5), b)]
    agrees("qnn.batch_matmul", [*pair, *tail], transpose_b=True, out_dtype=kind)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), seed=SEEDS, name=st.sampled_from(["add", "subtract", "mul"]),
       rounding=st.sampled_from(["UPWARD", "TONEAREST"]))  # fmt: skip
def test_pairs(data, seed, name, rounding):
    dtype = data.draw(st.sampled_from(["int8", "uint8", "int16"]))
    left, other, out = data.draw(parameters(4)), data.draw(parameters(4)), data.draw(parameters())
    if name == "mul" and data.draw(st.booleans()):
        left = [np.full(4, 0.5, "float32"), left[1]]
    arrays = [numbers(seed, (3, 4), dtype), numbers(seed + 1, (2, 3, 4), dtype)]
    with requantize_config(rounding):
        agrees(f"qnn.{name}", [*arrays, *left, *other, *out], lhs_axis=1, rhs_axis=2)


# ----------------------------------------------------------------------------------------------------------- what is shown


def ops(m: relay.IRModule) -> list[str]:
    return [e.op.name for e in post_order(m["main"]) if isinstance(e, relay.Call)]


X, W = numbers(1, (1, 3, 5, 5), "uint8"), numbers(2, (4, 3, 3, 3), "int8")


@pytest.mark.parametrize(
    ("zx", "zw", "wanted"),
    [(0, 0, {}), (0, 3, {"subtract": 1, "nn.avg_pool2d": 1}), (3, 0, {"subtract": 1, "reshape": 1, "nn.pad": 1}),
     (3, -4, {"add": 1, "subtract": 2, "nn.avg_pool2d": 1, "nn.pad": 1})],
)  # fmt: skip
def test_terms_of_convolutions_that_are_zero_are_not_there(zx, zw, wanted):
    scale = np.float32(1)
    zeros = [np.array(z, "int32") for z in (zx, zw)]
    m = agrees("qnn.conv2d", [X, W, *zeros, scale, scale], padding=[1, 1, 1, 1], out_dtype="int32")
    names = ops(m)
    assert names.count("nn.conv2d") == 1
    for name in ("add", "subtract", "nn.avg_pool2d"):
        assert names.count(name) == wanted.get(name, 0), names


def test_sums_that_leave_their_type_and_zero_points_that_are_computed():
    w, x = numbers(3, (1, 120, 5, 5), "int8"), numbers(4, (1, 120, 5, 5), "int16")
    tail = [np.array(3, "int32"), np.array(5, "int32"), np.float32(1), np.float32(1)]
    assert "nn.avg_pool2d" not in ops(agrees("qnn.conv2d", [x, w, *tail], out_dtype="int32"))
    agrees("qnn.conv2d", [X, W, *tail], inputs=4, out_dtype="int32", padding=[1, 1, 1, 1])
    agrees("qnn.dense", [X[0, 0], X[0, 1], *tail], inputs=4, units=None, out_dtype="int32")


def test_numbers_with_equal_parameters_are_not_multiplied():
    same = [np.float32(0.5), np.array(3, "int32")]
    m = agrees("qnn.requantize", [X, *same, *same], out_dtype="uint8")
    assert "fixed_point_multiply" not in ops(m)


def test_tiny_factors_give_zero():
    tail = [np.float32(1e-9), np.array(0, "int32"), np.float32(1e9), np.array(7, "int32")]
    for rounding in ("UPWARD", "TONEAREST"):
        m = agrees("qnn.requantize", [numbers(1, (5,), "int32"), *tail], out_dtype="int8", rounding=rounding)
        np.testing.assert_array_equal(evaluate(m, numbers(1, (5,), "int32"))[0], 7)


def test_what_cannot_be_lowered_is_refused():
    zero, one = np.array(0, "int32"), np.float32(1)
    m, _ = program("qnn.requantize", [np.zeros(3, "int32"), one.reshape(()), zero, one.reshape(()), zero],
                   OPERATORS["qnn.requantize"].record(out_dtype="int8"), 2)  # fmt: skip
    with pytest.raises(CompassError, match="the scale of the input must be a constant"):
        relay.qnn.transform.CanonicalizeOps()(m)
    for scales, message in (((1.0, 0.0), "is 0"), ((1e30, 1e-5), "cannot multiply by 1e[+]35")):
        given_scales = [np.asarray(s, "float32") for s in scales]
        m, _ = program("qnn.requantize", [np.zeros(3, "int32"), given_scales[0], zero, given_scales[1], zero],
                       OPERATORS["qnn.requantize"].record(out_dtype="int8"), 1)  # fmt: skip
        with pytest.raises(CompassError, match=message):
            relay.qnn.transform.CanonicalizeOps()(m)


def test_builders_and_registrars():
    assert {"conv2d", "op", "transform"} <= set(dir(relay.qnn)) and "add" in dir(relay.qnn.op)
    assert relay.qnn.op.requantize is relay.qnn.requantize
    with pytest.raises(CompassError, match="already registered"):
        relay.qnn.op.register_qnn_canonicalize("qnn.add", lambda *_: None)
    x = relay.var("x", shape=(2,), dtype="int8")
    m = InferType()(module(relay.Function([x], call("abs", x))))
    assert relay.qnn.transform.CanonicalizeOps()(m) is m
