"""The text of Relay programs: its forms, and what numbers and names it gives."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given

from compass_core.errors import Span
from compassc import relay, te
from compassc.ir.errors import ExpressionError
from compassc.relay.attributes import Attrs, Record
from compassc.relay.text import metadata

from .programs import RECIPES, Builder

F = relay.GlobalVar("f")
X = relay.var("x", shape=(1, 2))
FREE = [X, relay.Var("x"), relay.Var("0.weird name")]
A = relay.TypeVar("A")
LIST = relay.GlobalTypeVar("List")
CONS = relay.Constructor("Cons", [A, relay.TypeCall(LIST, [A])], LIST)
NIL = relay.Constructor("Nil", [], LIST)
RECORD = Record("relay.attrs.Example", {"units": None, "axis": -1, "strides": (1, 1), "scale": 1.0, "name": "a"})


def call_with(**fields: object) -> relay.Call:
    return relay.Call(F, [], RECORD(**fields))


TEXTS = {
    "x + a call": (F(F(X)), "free_var %x: Tensor[(1, 2), float32];\n%0 = @f(%x);\n@f(%0)"),
    "tuples": (relay.Tuple([relay.Tuple([]), relay.const(1)]), "%0 = ();\n(%0, 1)"),
    "tuple of one": (relay.Tuple([relay.const(1)]), "(1,)"),
    "item": (relay.TupleGetItem(F(), 3), "%0 = @f();\n%0.3"),
    "references": (
        relay.RefWrite(relay.RefCreate(relay.const(1)), relay.RefRead(F)),
        "%0 = ref(1);\n%1 = ref_read(@f);\nref_write(%0, %1)",
    ),
    "quoted": (relay.GlobalVar("a.b")(), '@"a.b"()'),
    "if": (relay.If(F(), F(F()), F), "%0 = @f();\nif (%0) {\n  %1 = @f();\n  @f(%1)\n} else {\n  @f\n}"),
    "let": (
        relay.Let(relay.Var("a"), F(), relay.Let(relay.Var("a"), F(F()), F)),
        "let %a = @f();\n%0 = @f();\nlet %a1 = @f(%0);\n@f",
    ),
    "let in a call": (F(relay.Let(relay.Var("a"), F(), F)), "%0 = (\n  let %a = @f();\n  @f\n);\n@f(%0)"),
    "function": (
        relay.Function([relay.var("x", relay.TypeCall(LIST, [A]))], F, A, [A], {"Primitive": 1, "name": "n"}),
        'fn [A](%x: List[A], Primitive=1, name="n") -> A {\n  @f\n}',
    ),
    "match": (
        relay.Match(
            F,
            [
                relay.Clause(
                    relay.PatternConstructor(CONS, [relay.PatternVar(relay.Var("h")), relay.PatternWildcard()]), F
                ),
                relay.Clause(relay.PatternConstructor(NIL), F()),
            ],
            False,
        ),
        "match? (@f) {\n  Cons(%h, _) => {\n    @f\n  },\n  Nil => {\n    @f()\n  },\n}",
    ),
    "constructors": (CONS(relay.const(True), NIL()), "%0 = Nil;\nCons(True, %0)"),
    "attributes": (
        call_with(units=8, axis=1, strides=[2, 1], scale=1e-5, name="b"),
        '@f(units=8, axis=1, strides=[2, 1], scale=1e-05f, name="b", attrs_type_key="relay.attrs.Example")',
    ),
    "defaults": (call_with(strides=[1, 1], axis=-1), '@f(attrs_type_key="relay.attrs.Example")'),
    "ADT": (relay.TypeData(LIST, [A], [CONS, NIL]), "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}"),
    "extern": (relay.TypeData(relay.GlobalTypeVar("Storage"), [], []), "extern type Storage"),
    "types": (
        relay.FuncType(
            [relay.TupleType([relay.scalar_type("bool")]), relay.RefType(A), relay.TypeCall(LIST)],
            relay.TensorType((1, relay.Any()), "int8"),
            [A],
        ),
        "fn [A]((bool,), ref(A), List[]) -> Tensor[(1, ?), int8]",
    ),
    "open extents": (relay.TensorType((te.size_var("n"),)), "Tensor[(meta[tir.SizeVar][0],), float32]"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_forms(name):
    given_, text = TEXTS[name]
    assert repr(given_) == text


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (True, "bool", "True"),
        (3, "int16", "3i16"),
        (-(2**31), "int32", "-2147483648"),
        (3, "int64", "3i64"),
        (0.5, "float16", "0.5f16"),
        (0.1, "float32", "0.1f"),
        (1 / 3, "float32", "0.33333334f"),
        (1 / 3, "float64", "0.3333333333333333f64"),
        (1e20, "float32", "1e+20f"),
        (-np.inf, "float32", "-inff"),
        (float("nan"), "float32", "meta[relay.Constant][0]"),
        (3, "uint8", "meta[relay.Constant][0]"),
    ],
)
def test_literals(value, dtype, text):
    assert str(relay.const(value, dtype)) == text


def test_remarks_tell_types_and_places():
    x = relay.Var("x", span=Span("model", 3, 5))
    call = relay.Call(F, [x], span=Span("a*/b", 4, 2)).typed(relay.scalar_type("int8"))
    assert str(call) == "free_var %x /* span=model:3:5 */;\n@f(%x) /* ty=int8 span=a* /b:4:2 */"
    assert call.astext(annotate=lambda e: " // here" if e is call else "").endswith("@f(%x) // here")


@given(RECIPES)
def test_names_and_numbers_are_given_once_in_order(recipe):
    text = str(Builder("x", FREE).make(recipe))
    declared = re.findall(r"(?:let |free_var |fn \(|, |^ *\()(%\w+)(?=[:,;) ])(?! =>)", text)
    bound = re.findall(r"(?:let|free_var) (%\w+)", text)
    assert len(bound) == len(set(bound)) <= len(declared) + len(bound)
    numbers = [int(n) for n in re.findall(r"^ *%(\d+) = ", text, re.MULTILINE)]
    assert sorted(numbers) == list(range(len(numbers)))


@given(RECIPES)
def test_metadata_is_read_back(recipe):
    text = Builder("x", FREE).make(recipe).astext()
    if metadata.SECTION in text:
        section = text.partition(metadata.SECTION)[2]
        for kept in metadata.read(section, "text").values():
            for value in kept:
                again = metadata.Metadata()
                again.reference(value)
                first = json.loads(again.section().partition("\n")[2])
                assert metadata.read(json.dumps(first), "text").keys() == first.keys()
    else:
        assert "meta[" not in text


DAMAGED = [
    "",
    "[]",
    '{"a": 1}',
    '{"a": [{"nothing": 1}]}',
    '{"a": [{}]}',
    '{"a": [{"constant": {"dtype": "int8", "shape": [3], "data": "AAA="}}]}',
    '{"a": [{"constant": {"dtype": "int8", "shape": [-1], "data": ""}}]}',
    '{"a": [{"constant": {"dtype": "object", "shape": [1], "data": "AAAAAAAAAAA="}}]}',
    '{"a": [{"array": {"dtype": "int8", "shape": [1], "data": "!"}}]}',
    '{"a": [{"attrs": "relay.attrs.None", "fields": {}}]}',
    '{"a": [{"open": 99}]}',
]


@pytest.mark.parametrize("text", DAMAGED)
def test_damaged_metadata_is_refused(text):
    from compass_core.errors import CompassError

    with pytest.raises(CompassError):
        metadata.read(text, "program.txt")


def test_metadata_can_be_left_out():
    program = F(relay.const([1, 2]))
    assert metadata.SECTION in program.astext()
    assert metadata.SECTION not in program.astext(show_meta_data=False)
    assert "show_meta_data=True" in program.astext(show_meta_data=False)


def test_what_has_no_text_is_refused():
    program = relay.Function([], F, attrs={"what": object()})
    assert str(program) == "fn (what=meta[Value][0]) {\n  @f\n}"
    with pytest.raises(ExpressionError, match="has no text"):
        program.astext()


def test_texts_with_quotes_and_line_ends_are_metadata():
    assert str(call_with(name='a"b')) == '@f(name=meta[Value][0], attrs_type_key="relay.attrs.Example")'
    assert isinstance(RECORD(), Attrs)


def test_depth_is_no_matter():
    e, lets, functions = F(), F(), F()
    for _ in range(3_000):
        e = F(e)
        lets = relay.Let(relay.Var("x"), F(), lets)
    for _ in range(300):
        functions = relay.Function([], functions)
    assert len(str(e).splitlines()) == 3_001
    assert len(str(lets).splitlines()) == 3_001
    assert str(functions).count("fn ()") == 300
