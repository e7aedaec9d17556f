"""The text form of Compass IR: values are classified as the grammar says, and text and structure are inverse."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compassc.graph.dtypes import IR_DTYPES
from compassc.graph.sections import WORDS, CompassIR, Section, SubgraphIR, format_ir, parse
from compassc.graph.values import IRDType, parse_value
from tests.words import word

VALUES = [
    ("12", 12),
    ("-3", -3),
    ("+3", 3),
    ("1.", 1.0),
    ("1.5e-3", 1.5e-3),
    ("2e3", 2000.0),
    (".5", 0.5),
    ("inf", math.inf),
    ("-INF", -math.inf),
    ("nan", "nan"),
    ("True", True),
    ("FALSE", False),
    ("", ""),
    ("NONE", "NONE"),
    ("None", "None"),
    ("[]", []),
    ("[1, 2]", [1, 2]),
    ("[[1,2],[3]]", [[1, 2], [3]]),
    ("['a', b,,]", ["a", "b"]),
    ("[1,[2,]", "[1,[2,]"),
    ("[1],[2]", "[1],[2]"),
    ("[int8,FLOAT16]", ["int8", "float16"]),
    ("1_000", "1_000"),
    ("0x10", "0x10"),
    ("1 2", "1 2"),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_values(text, value):
    parsed = parse_value(text)
    assert parsed == value
    assert isinstance(parsed, type(value))


@pytest.mark.parametrize("text", ["int8", "INT8", "dtype.int8", "dtype.Int8"])
def test_data_types(text):
    assert parse_value(text) == "int8"
    assert isinstance(parse_value(text), IRDType)


SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False),
    st.sampled_from(sorted(IR_DTYPES)).map(IRDType),
    word(r"[A-Z][A-Z_]{2,6}X"),
)
TREES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=8)
KEYS = word(r"[a-z][a-z0-9_]{0,8}").filter(lambda key: not key.startswith("ds_") and key not in WORDS)
"""Keys with values of every kind; those of `ds_` keys are expressions, so words."""
SECTIONS = st.dictionaries(KEYS, TREES, min_size=1, max_size=5).map(Section)


@given(st.dictionaries(KEYS, TREES, max_size=4), st.lists(SECTIONS, max_size=3), st.lists(SECTIONS, max_size=2))
def test_text_and_structure_are_inverse(header, layers, sub_layers):
    head = Section({"model_name": "UNKNOWNX", **header})
    sub = Section({"subgraph_name": "BODYX", "input_tensors": [], "layer_number": len(sub_layers)})
    ir = CompassIR(head, layers, [SubgraphIR(sub, sub_layers)] if sub_layers else [])
    text = format_ir(ir)
    assert parse(text) == ir
    assert format_ir(parse(text)) == text


@pytest.mark.parametrize("key", ["ds_begin", min(WORDS)])
def test_values_that_are_words_stay_words(key):
    ir = parse(f"model_name=a\n{key}=[1,[2,false]]")
    assert ir.header.values[key] == ["1", ["2", "false"]]
    assert parse(format_ir(ir)) == ir


def test_a_repeated_key_overrides_and_blank_lines_separate():
    ir = parse("model_name = a\nmodel_name=b\n  \n\nlayer_id=0\n\nlayer_id=1")
    assert ir.header.values == {"model_name": "b"}
    assert [layer.values["layer_id"] for layer in ir.layers] == [0, 1]
    assert [layer.line for layer in ir.layers] == [5, 7]


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("model_name=a\nb", "ir.txt:2", "found 0 '='"),
        ("model_name=a=b", "ir.txt:1", "found 2 '='"),
        ("layer_id=1", "ir.txt:1", "no model_name"),
        ("", "", "file is empty"),
        ("model_name=a\nx=" + "[" * 40 + "]" * 40, "ir.txt:2", "levels deep"),
        ("model_name=a\n\nsubgraph_name=s\ninput_tensors=[]\nlayer_number=2", "ir.txt:3", "layer_number"),
    ],
)
def test_malformed_text_names_its_line(text, where, message):
    with pytest.raises(CompassError, match=message) as caught:
        parse(text, "ir.txt")
    assert where in str(caught.value)


@pytest.mark.parametrize("value", ["a=b", "a\nb"])
def test_what_cannot_be_read_back_is_not_written(value):
    with pytest.raises(CompassError, match="key=value"):
        format_ir(CompassIR(Section({"model_name": value}), []))
