"""Whole numbers of ONNX models: exact up to the last bit, or told."""

import warnings

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from compass_core.errors import CompassError
from compassc import onnx_backend
from compassc.graph.run import run_graph
from compassc.importers.onnx import import_model
from compassc.importers.refusals import RefusedModel

WORDS = ("int32", "int64", "uint32", "uint64")
SIGNED = WORDS[:2]
SMALL = ("int8", "int16", "uint8", "uint16")
HIGHEST = {"int32": 2**31 - 1, "int64": 2**31 - 1, "uint32": 2**32 - 1, "uint64": 2**32 - 1}
"""Of the numbers that a graph holds for a type."""


def model_of(operator, arrays, known=(), opset=22, **attributes):
    """A model of one node, whose inputs of numbers `known` are constants, and what ONNX says that it gives."""
    names = [f"x{i}" for i in range(len(arrays))]
    ends = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, arrays, strict=True)
    ]
    constants = [numpy_helper.from_array(arrays[i], names[i]) for i in known]
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], **attributes)],
        operator,
        [end for i, end in enumerate(ends) if i not in known],
        [helper.make_empty_tensor_value_info("y")],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    given = {n: a for i, (n, a) in enumerate(zip(names, arrays, strict=True)) if i not in known}
    with np.errstate(all="ignore"):
        (want,) = map(np.asarray, ReferenceEvaluator(model).run(None, given))
    model.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(want.dtype), want.shape)
    )
    return model, list(given.values()), want


def numbers(dtype, *shape, share=1.0):
    """Numbers of a type up to a share of the largest that graphs hold, so that 24 bits do not hold them."""
    most = int(HIGHEST.get(dtype, np.iinfo(dtype).max) * share)
    low = -most if dtype.startswith("int") else 0
    return np.random.default_rng(7).integers(low, most, shape, endpoint=True).astype(dtype)


def whole(dtype, *rows):
    return np.array(rows, dtype)


BASES, EXPONENTS = ([3, 5, 7, 2, 1, 0], [11, 2, 46340, 9, 0, 1]), ([19, 13, 11, 30, 40, 9], [8, 30, 2, 9, 0, 7])
CASES = {
    **{f"Pow {d}": ("Pow", [whole(d, *BASES), whole(d, *EXPONENTS)], (), {}) for d in SIGNED},
    **{f"Pow {d}, one known": ("Pow", [numbers(d, 40, share=2e-5), whole(d, 2)], (1,), {}) for d in SIGNED},
    **{f"Pow {d}, some known": ("Pow", [whole(d, *BASES), whole(d, *EXPONENTS)], (1,), {}) for d in SIGNED},
    **{f"Pow {d} of real": ("Pow", [whole(d, *BASES), whole("float32", *EXPONENTS)], (1,), {}) for d in SIGNED},
    **{f"Pow {d}, below 0": ("Pow", [whole(d, -3, -5, -1, -1, -2), whole(d, 19, 12, 77, 6, 31)], (), {}) for d in SIGNED},
    **{f"ReduceMean {d}": ("ReduceMean", [numbers(d, 3, 7, share=0.14), whole("int64", 1)], (1,), {}) for d in WORDS},
    **{f"ReduceL1 {d}": ("ReduceL1", [numbers(d, 3, 5, share=0.2), whole("int64", 1)], (1,), {}) for d in WORDS},
    **{f"ReduceProd {d}": ("ReduceProd", [whole(d, [3, 5, 7, 11, 13], [2, 3, 16777217, 1, 1]), whole("int64", 1)], (1,), {}) for d in WORDS},
    **{f"ReduceSum {d}": ("ReduceSum", [numbers(d, 3, 5, share=0.2), whole("int64", 0)], (1,), {}) for d in WORDS},
    **{f"Relu {d}": ("Relu", [numbers(d, 40)], (), {}) for d in SIGNED},
    **{f"Clip {d}": ("Clip", [numbers(d, 40), np.array(16777217, d), np.array(np.iinfo(d).max)], (1, 2), {}) for d in WORDS},
    **{f"Clip {d} below": ("Clip", [numbers(d, 40), np.array(np.iinfo(d).min), np.array(16777217, d)], (1, 2), {}) for d in WORDS},
    **{f"{o} {d}": (o, [numbers(d, 40), numbers(d, 40)[::-1].copy()], (), {}) for o in ("Add", "Sub", "Mul") for d in SMALL},
    **{f"BitShift {d}": ("BitShift", [whole(d, 1, 3, 65535), whole(d, 31, 30, 16)], (), {"direction": "LEFT"}) for d in ("uint32", "uint64")},
    **{f"CumSum {d}": ("CumSum", [numbers(d, 3, 6, share=0.16), np.array(1)], (1,), {"reverse": int(d < "u")}) for d in WORDS},
    **{f"CumProd {d}": ("CumProd", [whole(d, [3, 5, 7, 11, 13, 17, 19]), np.array(1)], (1,), {"exclusive": 1, "opset": 26}) for d in WORDS},
    **{f"MatMul {d}": ("MatMul", [whole(d, [3] * 6), numbers(d, 6, 3, share=0.05)], (), {}) for d in WORDS},
}  # fmt: skip
"""An operator, its inputs, which of them are known, and attributes."""


@pytest.mark.parametrize("name", CASES)
def test_they_are_those_of_onnx(name):
    operator, arrays, known, attributes = CASES[name]
    model, given, want = model_of(operator, arrays, known, **attributes)
    if want.dtype.name in HIGHEST and want.max() > HIGHEST[want.dtype.name]:
        want = np.minimum(want, HIGHEST[want.dtype.name])
    (got,) = onnx_backend.prepare(model, onnx_backend.REFERENCE).run(given)
    assert got.dtype == want.dtype and np.array_equal(got, want)


@pytest.mark.parametrize(
    "name", ["Pow int32", "Pow int64, below 0", "ReduceMean int64", "ReduceProd int32", "Mul uint16", "CumSum int32"]
)
def test_they_are_those_of_onnx_on_a_target(name):
    operator, arrays, known, attributes = CASES[name]
    model, given, want = model_of(operator, arrays, known, **attributes)
    (got,) = onnx_backend.prepare(model, "X2_1204").run(given)
    assert np.array_equal(got, want)


def test_means_are_right_where_sums_do_not_fit():
    most, least = 2**31 - 1, -(2**31)
    x = np.array([[most, most, most - 3], [least, least, least + 1], [most, least, 5], [least, most, -7]], np.int32)
    model, given, _ = model_of("ReduceMean", [x], axes=[1], opset=13)
    (got,) = onnx_backend.prepare(model, onnx_backend.REFERENCE).run(given)
    assert got.reshape(-1).tolist() == [int(sum(map(int, row)) / 3) for row in x]


def test_exponents_below_0_make_quotients():
    x, y = np.array([2, -2, 1, -1, -1, 0], np.int32), np.array([-1, -3, -5, -2, -3, -1], np.int32)
    end = helper.make_tensor_value_info
    ends = [end(n, TensorProto.INT32, [6]) for n in ("x", "y", "z")]
    model = helper.make_model(helper.make_graph([helper.make_node("Pow", ["x", "y"], ["z"])], "g", ends[:2], ends[2:]))
    (got,) = onnx_backend.prepare(model, onnx_backend.REFERENCE).run([x, y])
    assert got.tolist() == [0, 0, 1, 1, -1, 0]


@pytest.mark.parametrize("operator", ["ReduceL2", "Shrink"])
def test_what_is_computed_in_floats_says_so(operator):
    model, _, _ = model_of(operator, [numbers("int32", 4)], opset=13)
    with pytest.warns(UserWarning, match=r"the node 'y' is computed in float32, as no layer does it in int32"):
        import_model(model)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_numbers_of_64_bits_that_are_computed_with_are_told_once(dtype):
    model, _, _ = model_of("Add", [whole(dtype, 1, 2), whole(dtype, 3, 4)])
    with pytest.warns(UserWarning, match=f"'y' computes {dtype} in u?int32.*--check overflow") as said:
        import_model(model)
    assert len(said) == 1


def test_those_that_only_move_or_are_chosen_are_not():
    model, _, _ = model_of("Max", [whole("int64", 1, 2), whole("int64", 3, 4)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        import_model(model)


def test_inversions_of_64_bits_are_refused():
    model, _, _ = model_of("BitwiseNot", [whole("uint64", 1)])
    with pytest.raises(RefusedModel, match="its results have 64 bits"):
        import_model(model)


def test_words_that_become_int64_are_limited_and_do_not_wrap():
    model, _, _ = model_of("Cast", [whole("uint32", 3 * 10**9, 7)], to=TensorProto.INT64)
    graph = import_model(model)
    made = run_graph(graph, {graph.inputs[0].name: whole("uint32", 3 * 10**9, 7)})
    assert made[graph.outputs[0].name].tolist() == [2**31 - 1, 7]


def test_inputs_beyond_32_bits_are_refused():
    model, _, _ = model_of("Max", [whole("int64", 1), whole("int64", 3)])
    with pytest.raises(CompassError, match="has 9223372036854775807, which does not fit 32 bits"):
        onnx_backend.prepare(model, onnx_backend.REFERENCE).run([whole("int64", 1), whole("int64", 2**63 - 1)])


def test_lists_of_different_lengths_are_no_input():
    model, _, _ = model_of("Identity", [whole("int64", 1)])
    with pytest.raises(CompassError, match="an input is no array"):
        onnx_backend.prepare(model, onnx_backend.REFERENCE).run([[[1], [2, 3]]])


def test_words_that_no_kernel_reduces_are_refused_by_their_type():
    model, given, _ = model_of("ReduceSum", [whole("uint32", 1, 2)], opset=12, axes=[0])
    with pytest.raises(CompassError) as caught:
        onnx_backend.prepare(model, "X2_1204").run(given)
    assert "kernels do not compute with uint32" in str([n.message for n in caught.value.notes])


def test_integers_that_are_moved_are_quantised_behind_it():
    """They are numbers, not what floats of another scale look like."""
    moved = helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0])
    known = [numpy_helper.from_array(np.float32(4), "scale"), numpy_helper.from_array(np.int8(1), "zero")]
    ends = [helper.make_tensor_value_info(n, t, s) for n, t, s in (("x", 6, [2, 3]), ("y", 3, [3, 2]))]
    node = helper.make_node("QuantizeLinear", ["t", "scale", "zero"], ["y"])
    model = helper.make_model(
        helper.make_graph([moved, node], "g", ends[:1], ends[1:], known),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=9,
    )
    x = np.int32([[4, 8, -12], [2000, 0, -2000]])
    graph = import_model(model)
    got = run_graph(graph, {graph.inputs[0].name: x})[graph.outputs[0].name]
    np.testing.assert_array_equal(got, ReferenceEvaluator(model).run(None, {"x": x})[0])
