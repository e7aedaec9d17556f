"""Equations of Einsum that name no axes are refused with the reason."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper

from compassc.importers.onnx import import_model
from compassc.importers.refusals import RefusedModel

REFUSED = {
    "i->ii": ([3], "has the axis 'i' twice"),
    "ij->iij": ([2, 3], "has the axis 'i' twice"),
    "ij->ik": ([2, 3], "has the axis 'k', which no operand has"),
    "ii->i": ([3, 4], "the axis 'i' of 'ii' has 3 and 4 elements"),
    "i.j->i": ([2, 3], "'i.j' in 'i.j->i' is no list of axes"),
    "1i->i": ([2, 3], "'1i' in '1i->i' is no list of axes"),
    "ij->i->j": ([2, 3], "'i->j' in 'ij->i->j' is no list of axes"),
    "ij": ([2, 3, 4], "'ij' does not name the 3 axes"),
    "i,j": ([2], "has 2 operands, the node 1"),
}


@pytest.mark.parametrize("equation", REFUSED)
def test_an_equation_without_meaning_is_refused(equation):
    shape, why = REFUSED[equation]
    start = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    end = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Einsum", ["x"], ["y"], equation=equation)], "g", [start], [end])
    with pytest.raises(RefusedModel) as caught:
        import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8))
    assert why in caught.value.refusals[0].reason
