"""What is said of bodies whose nodes cannot be imported, and what would have to be known for it."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from compassc import onnx_backend
from compassc.importers.onnx import import_model
from compassc.importers.refusals import RefusedModel


def branch(name, *nodes):
    outputs = [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)]
    return helper.make_graph(list(nodes), name, [], outputs)


def model(*branches):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    node = helper.make_node("If", ["c"], ["y"], name="choice", then_branch=branches[0], else_branch=branches[1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", [x, c], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_a_refused_branch_is_told_once_by_its_own_nodes():
    bad = branch("bad", helper.make_node("RandomNormalLike", ["x"], ["r"], name="dice"))
    good = branch("good", helper.make_node("Abs", ["x"], ["a"]))
    with pytest.raises(RefusedModel) as caught:
        import_model(model(bad, good))
    assert [r.node for r in caught.value.refusals] == ["dice"]


def test_branches_of_other_shapes_want_to_know_the_condition():
    total = branch("total", helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0))
    whole = branch("whole", helper.make_node("Abs", ["x"], ["a"]))
    given = model(total, whole)
    with pytest.raises(RefusedModel) as caught:
        import_model(given)
    assert caught.value.inputs == ("c",)
    x = np.float32([[1, -2, 3], [4, 5, -6]])
    for condition, want in ((True, x.sum()), (False, np.abs(x))):
        found = onnx_backend.run_model(given, [x, np.asarray(condition)], onnx_backend.REFERENCE)
        np.testing.assert_array_equal(found[0], want)


@pytest.mark.parametrize(
    ("operator", "inputs", "want"),
    [
        ("NonZero", [np.int64([0, 3, 0, 5])], np.int64([[1, 3]])),
        ("Unique", [np.float32([3, 1, 3])], np.float32([1, 3])),
        ("Compress", [np.float32([1, 2, 3]), np.asarray([True, False, True])], np.float32([1, 3])),
    ],
)
def test_results_whose_size_follows_from_constants_are_computed_at_import(operator, inputs, want):
    names = [f"i{k}" for k in range(len(inputs))]
    constants = [numpy_helper.from_array(a, n) for n, a in zip(names, inputs, strict=True)]
    nodes = [helper.make_node(operator, names, ["found"]), helper.make_node("Cast", ["found"], ["f"], to=1)]
    nodes.append(helper.make_node("Add", ["f", "x"], ["y"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (found,) = onnx_backend.run_model(made, [np.float32([0.5])], onnx_backend.REFERENCE)
    np.testing.assert_array_equal(found, want.astype(np.float32) + np.float32(0.5))
