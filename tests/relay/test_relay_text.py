"""Relay programs from text: what was printed is read back as the same program, and damaged text is refused with its place."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass_core.errors import CompassError, render
from compassc import relay, te
from compassc.relay.errors import DiagnosticError
from compassc.relay.expr import Expr
from compassc.relay.operators import get as OP
from compassc.relay.text import lexer, metadata
from compassc.relay.text.program import parse_module
from compassc.relay.variables import free_vars

from .programs import RECIPES, Builder

VERSION = '#[version = "0.0.5"]\n'
FIVES = '{"relay.Constant": [{"constant": {"dtype": "float32", "shape": [5], "data": "AACgQAAAoEAAAKBAAACgQAAAoEA="}}]}'
FREE = [relay.var("x", shape=(2,)), relay.Var("y"), relay.Var("0.weird name")]
LIST = """type List[A] {
  Cons(A, List[A]),
  Nil,
}
"""


def read(text: str, **options: object) -> Expr:
    return relay.parse_expr(text, **options)


def program(recipe) -> Expr:
    return Builder("x", FREE).make(recipe)


@given(RECIPES)
def test_printed_programs_are_read_back(recipe):
    first = program(recipe)
    again = read(first.astext())
    relay.assert_structural_equal(first, again, map_free_vars=True)
    plain = again.astext(annotate=lambda e: "")
    assert plain == first.astext(annotate=lambda e: "")


@given(RECIPES, st.integers(0, 3))
def test_printed_modules_are_read_back(recipe, count):
    bodies = [program(recipe) for _ in range(count)]
    functions = {f"f{i}": relay.Function(free_vars(e), e) for i, e in enumerate(bodies)}
    module = relay.IRModule(functions, attrs={"note": "a", "list": [1, 2.5, None]})
    module.update(parse_module(VERSION + LIST))
    again = parse_module(module.astext())
    relay.assert_structural_equal(module, again)
    assert relay.structural_hash(module) == relay.structural_hash(again)
    assert again.attrs == module.attrs


@given(RECIPES)
def test_expressions_know_their_places(recipe):
    text = program(recipe).astext(annotate=lambda e: "")
    again = read(text, source_name="here")
    lines = text.splitlines()
    if isinstance(again, (relay.Call, relay.Tuple, relay.Function, relay.If, relay.Match, relay.Let)):
        span = again.span
        assert span is not None
        assert span.file == "here"
        assert 1 <= span.line <= span.end_line <= len(lines)
        assert 1 <= span.col <= len(lines[span.line - 1])
        assert lines[span.end_line - 1][span.end_col - 2] in ")}]%abcdefghijklmnopqrstuvwxyz0123456789@_\"'"


DAMAGED = {
    "": (1, "version"),
    '#[version = "0.0.4"]': (1, "version 0.0.4"),
    "#[other]": (1, "no such attribute"),
    VERSION + "def @f() { %x }": (2, "%x has not been previously declared"),
    VERSION + "def @f() { %0 }": (2, "%0 has not yet been defined"),
    VERSION + "def @f() { () }\ndef @f() { () }": (3, "defined twice"),
    VERSION + "fn () { () }": (2, "expected a definition"),
    VERSION + "def @f() { no.such.op() }": (2, "no.such.op"),
    VERSION + "def @f() { () ": (2, "expected '}'"),
    VERSION + "def @f() -> Tensor[(1, -2), float32] { () }": (2, "no less than 0"),
    VERSION + "def @f() -> Tensor[(1, 2), flot32] { () }": (2, "flot32"),
    VERSION + LIST + LIST: (7, "Cons was previously defined"),
    VERSION + "extern type A\nextern type A": (3, "type A is defined twice"),
    VERSION + "extern type A { B }": (2, "has constructors"),
    VERSION + "def @f() { match (()) { No(_) => { () } } }": (2, "no constructor No"),
    VERSION + "def @f() { @g(a=1) }": (2, "attrs_type_key"),
    VERSION + "def @f() { 1.5 }": (2, "no whole number"),
    VERSION + "def @f() { 1-2 }": (2, "no whole number"),
    VERSION + "def @f() { 40000i16 }": (2, "unrepresentable in width 16"),
    VERSION + "def @f() { 99999999999999999999 }": (2, "unrepresentable"),
    VERSION + "def @f() { 1e39f }": (2, "unrepresentable in width 32"),
    VERSION + "def @f() { 1f8 }": (2, "no 8 bits"),
    VERSION + "def @f() { /* }": (2, "no end"),
    VERSION + 'def @f() { @g(a="b) }': (2, "no end"),
    VERSION + "def @f() { meta[relay.Constant][0] }": (2, "no number 0"),
    VERSION + "def @f() { ().1.2 }": (2, "no whole number"),
    VERSION + "def @f() { () }\n#[metadata]\n{\n  1": (5, "no JSON"),
    VERSION + "def @f() { () }\n#[metadata]\n[]": (3, "damaged"),
    VERSION + "def @f() { () }\r": (2, "no meaning"),
}


@pytest.mark.parametrize("text", DAMAGED)
def test_damaged_text_is_refused_with_its_place(text):
    line, words = DAMAGED[text]
    with pytest.raises(DiagnosticError, match=words) as raised:
        relay.parse(text, "bad.txt")
    assert raised.value.span is not None
    assert (raised.value.span.file, raised.value.span.line) == ("bad.txt", line)
    shown = text.split("\n")[line - 1].strip()
    assert shown in render(raised.value)
    assert not shown or "^" in render(raised.value)


@pytest.mark.parametrize("text", ["def @f() { () }", LIST, VERSION + "()()) "])
def test_expressions_are_no_definitions(text):
    with pytest.raises(DiagnosticError):
        read(text)


@given(RECIPES, st.randoms(use_true_random=False))
def test_noise_is_refused_or_read(recipe, chance: random.Random):
    text = VERSION + LIST + f"def @f() {{\n{program(recipe).astext(annotate=lambda e: '').partition(chr(10))[2]}\n}}"
    characters = list(text)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(characters))
        if chance.random() < 0.5:
            characters[at] = chance.choice("(){}[],;:.=<>?+-*/%@#\"'abcn0123456789 \n\x00é")
        else:
            del characters[at : at + chance.randint(1, 5)]
    try:
        relay.parse("".join(characters), "noise")
    except CompassError as error:
        assert error.span is not None


@given(st.text('(){}[],;:.=<>?+-*/%@#"abefin0123 \n', max_size=60))
def test_any_text_is_refused_or_read(text):
    try:
        relay.parse(VERSION + text)
    except DiagnosticError as error:
        assert error.span is not None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", np.int32(3)),
        ("-3", np.int32(-3)),
        ("---3", np.int32(-3)),
        ("3i64", np.int64(3)),
        ("4294967296", np.int64(2**32)),
        ("-2147483648", np.int32(-(2**31))),
        ("3f", np.float32(3)),
        ("1e-05f", np.float32(1e-5)),
        ("2.5f16", np.float16(2.5)),
        ("-0f64", np.float64(-0.0)),
        ("inff", np.float32("inf")),
        ("-inff64", np.float64("-inf")),
        ("True", np.bool_(True)),
    ],
)
def test_numbers(text, value):
    made = read(text)
    assert isinstance(made, relay.Constant)
    assert made.array.dtype == value.dtype
    assert made.array.tobytes() == value.tobytes()


def test_scopes():
    shadowed = read("let %x = 1; let %y = { let %x = %x; %x }; let %x = 3; (%x, %y)")
    x, y, inner, last = (relay.Var(n) for n in "xyxx")
    body = relay.Let(y, relay.Let(inner, inner, inner), relay.Let(last, relay.const(3), relay.Tuple([last, y])))
    relay.assert_structural_equal(shadowed, relay.Let(x, relay.const(1), body))
    recursive = read("let %f = fn () { %f() }; %f")
    assert isinstance(recursive, relay.Let)
    assert free_vars(recursive) == []
    assert [v.name_hint for v in free_vars(read("free_var %a; (%a, { free_var %b; %b }, %b)"))] == ["a", "b"]
    with pytest.raises(DiagnosticError, match="%y"):
        read("let %x = { let %y = 1; %y }; %y")
    sequence = read("@f(); 3")
    assert isinstance(sequence, relay.Let)
    assert sequence.var.name_hint == "_"


def test_signs_are_operators():
    x, y, z = (relay.Var(n) for n in "xyz")
    made = read("free_var %x; free_var %y; free_var %z; %x + %y * %z - %x / %y <= %z == %x")
    left = relay.Call(OP("less_equal"), [x + y * z - x / y, z])
    relay.assert_structural_equal(made, relay.Call(OP("equal"), [left, x]), map_free_vars=True)


def test_attributes_of_operators():
    conv = read('nn.conv2d(@x, @w, strides=[2, 2], data_layout="NHWC", out_dtype="int32")')
    assert isinstance(conv, relay.Call)
    assert conv.attrs is not None
    assert (conv.attrs.strides, conv.attrs.data_layout, conv.attrs.out_dtype) == ((2, 2), "NHWC", "int32")
    assert conv.attrs.groups == 1
    again = read(conv.astext())
    relay.assert_structural_equal(conv, again, map_free_vars=True)
    for text, words in {
        "nn.conv2d(@x, @w, stride=1)": "no field 'stride'",
        "add(@x, @y, a=1)": "add has no attribute 'a'",
        "cast(@x)": "dtype",
        "nn.conv2d(@x, @w, strides=)": "the value of an attribute",
    }.items():
        with pytest.raises(DiagnosticError, match=words) as raised:
            read(text)
        assert raised.value.span is not None
    foreign = relay.Call(relay.GlobalVar("f"), [], conv.attrs)
    relay.assert_structural_equal(foreign, read(foreign.astext()), map_free_vars=True)
    other = relay.Call(OP("add"), [], conv.attrs)
    relay.assert_structural_equal(other, read(other.astext()))


def test_shared_expressions_stay_shared():
    made = read("%0 = @f(); (%0, %0)")
    assert isinstance(made, relay.Tuple)
    assert made.fields[0] is made.fields[1]


def test_texts_of_modules_have_types():
    module = relay.parse(VERSION + "def @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) + 1f }")
    assert module["main"].ret_type == relay.TensorType((2, 3))
    again = relay.parse(module.astext())
    relay.assert_structural_equal(module, again)
    with pytest.raises(DiagnosticError) as raised:
        relay.parse(
            VERSION
            + "def @main(%x: Tensor[(2, 3), float32]) {\n  %x + meta[relay.Constant][0]\n}\n#[metadata]\n"
            + FIVES
        )
    assert raised.value.span is not None
    assert raised.value.span.line == 3
    assert "^" in render(raised.value)


def test_comments_and_commas():
    made = read("/* a /* b */ c */ fn (%x: int32,) { // to the end }\n (1, 2,) }")
    assert isinstance(made, relay.Function)
    assert isinstance(made.body, relay.Tuple)
    assert len(made.body.fields) == 2


def test_types_may_stand_behind_their_use():
    module = relay.parse(VERSION + "def @f(%x: List[int32]) { match (%x) { Nil => { 1 }, _ => { 2 } } }\n" + LIST)
    assert [c.name_hint for c in module.get_type("List")[1:]] == ["Cons", "Nil"]
    again = relay.parse(module.astext())
    relay.assert_structural_equal(module, again)


def test_functions_and_types_of_another_module_are_known():
    module = parse_module(VERSION + LIST + "def @g() { () }")
    made = parse_module(VERSION + "def @f() { (@g(), Nil) }", init_module=module)
    assert made is module
    assert [v.name_hint for v in module.functions] == ["g", "f"]
    before = str(module)
    with pytest.raises(DiagnosticError):
        parse_module(VERSION + "def @h() { () }\ndef @i() { %x }", init_module=module)
    assert str(module) == before


def test_objects_by_key_come_after_those_of_the_text():
    mine = relay.const([1.0, 2.0])
    text = VERSION + "def @f() { meta[relay.Constant][0] }"
    module = relay.parse(text, init_meta_table={metadata.CONSTANT: [mine]})
    assert module["f"].body is mine
    own = text + '\n#[metadata]\n{"relay.Constant": [{"constant": {"dtype": "int8", "shape": [1], "data": "BQ=="}}]}'
    first = relay.parse(own, init_meta_table={metadata.CONSTANT: [mine]})["f"].body
    assert first.array.tolist() == [5]


def test_types_round_trip():
    a = relay.TypeVar("A")
    n = te.size_var("n")
    types = [
        relay.FuncType([a, relay.RefType(a)], relay.TupleType([]), [a]),
        relay.TupleType([relay.TensorType((n, relay.Any(), 3), "bool")]),
        relay.TensorType((), "uint8"),
        relay.TensorType((4,), "bool"),
    ]
    for t in types:
        v = relay.Var("x", t)
        first = relay.Function([v], v)
        again = read(first.astext())
        relay.assert_structural_equal(first, again)


def test_depth_is_no_matter():
    e: Expr = relay.Tuple([])
    for _ in range(300):
        e = relay.Function([], relay.If(relay.const(True), relay.Tuple([e]), relay.Tuple([])))
    relay.assert_structural_equal(e, read(e.astext()))
    chain: Expr = relay.Tuple([])
    f = relay.GlobalVar("f")
    for i in range(3_000):
        chain = relay.Let(relay.Var("x"), relay.const(i), chain) if i % 2 else f(chain)
    relay.assert_structural_equal(chain, read(chain.astext()), map_free_vars=True)
    with pytest.raises(DiagnosticError, match="nests deeper"):
        read("fn (%x: " + "(" * 5_000)
    assert isinstance(read("(" * 5_000 + "1" + ")" * 5_000), relay.Constant)


def test_a_text_with_many_weights_is_read_where_the_budget_allows_it(monkeypatch):
    text = relay.IRModule.from_expr(relay.Function([], relay.const(np.arange(1000.0, dtype="float32")))).astext()
    monkeypatch.setattr(lexer, "TEXT_BYTES", lexer.TEXT_BYTES._replace(most=len(text) // 4 + 1))
    with pytest.raises(CompassError, match="a text that is read") as caught:
        relay.fromtext(text)
    assert "COMPASS_BUDGET=4" in caught.value.help
    monkeypatch.setenv("COMPASS_BUDGET", "4")
    np.testing.assert_array_equal(relay.fromtext(text)["main"].body.array, np.arange(1000.0))
