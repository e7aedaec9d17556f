"""Attributes that are words: those that ONNX has, and no others."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from compassc.importers.onnx import import_model
from compassc.importers.onnx.words import WORDS
from compassc.importers.refusals import RefusedModel

NAMED = [(name, operator) for name, listed in WORDS.items() for operator in listed if operator]


@pytest.mark.parametrize(("name", "operator"), [("auto_pad", "Conv"), ("reduction", "SoftmaxCrossEntropyLoss")])
def test_a_word_without_meaning_is_refused(name, operator):
    """Also where ONNX defines the operator by others, which know a word less."""
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4, 4, 4]) for n in "xy"]
    node = helper.make_node(operator, ["x", "x"], ["y"], **{name: "nonsense"})
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    with pytest.raises(RefusedModel) as caught:
        import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8))
    assert f"its attribute '{name}' is 'nonsense', expected one of " in caught.value.refusals[0].reason


@pytest.mark.parametrize(("name", "operator"), NAMED)
def test_the_words_are_attributes_of_onnx_whose_defaults_are_among_them(name, operator):
    attribute = onnx.defs.get_schema(operator).attributes[name]
    default = helper.get_attribute_value(attribute.default_value) if attribute.default_value.name else b""
    assert default.decode() in ("", *WORDS[name][operator])
