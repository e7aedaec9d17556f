"""Attributes that are words, those that ONNX has and no others, and forms that operators of a definition must not have."""

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


def refused(operator, inputs, **attributes):
    ends = [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in inputs.items()]
    node = helper.make_node(operator, [*inputs], ["y"], **attributes)
    graph = helper.make_graph([node], "g", ends, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    with pytest.raises(RefusedModel) as caught:
        import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8))
    return caught.value.refusals[0].reason


@pytest.mark.parametrize("operator", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
@pytest.mark.parametrize(("targets", "weights"), [([1, 5], [4]), ([3, 1], [4]), ([3], [4]), ([3, 5], [1])])
def test_losses_repeat_neither_targets_nor_weights(operator, targets, weights):
    inputs = {"x": (1, [3, 4, 5]), "t": (TensorProto.INT64, targets), "w": (1, weights)}
    found = refused(operator, inputs)
    wrong = f"weights are {weights}" if targets == [3, 5] else f"targets are {targets}"
    assert found.startswith(f"its {wrong}, of scores [3, 4, 5] they are")


def test_an_index_of_several_n_grams_is_refused():
    grams = {"ngram_counts": [0], "ngram_indexes": [0, 1, 0], "pool_int64s": [4, 5, 6], "mode": "TF"}
    given = {"max_gram_length": 1, "min_gram_length": 1, "max_skip_count": 0}
    assert refused("TfIdfVectorizer", {"x": (TensorProto.INT64, [2, 6])}, **grams, **given) == (
        "several of its n-grams have one index"
    )
