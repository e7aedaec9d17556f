"""Programs in other forms: continuations, first order, copies for shapes, tensors that are made late."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from compass_core.errors import CompassError
from compassc import relay
from compassc.relay import transform
from compassc.relay.backend.executors import create_executor
from compassc.relay.builders import build, call
from compassc.relay.module import IRModule
from compassc.relay.passes import make
from compassc.relay.types import FuncType
from compassc.relay.visit import post_order
from tests.choosing import some
from tests.relay.relay_values import SHAPE, evaluate, functions, module

X, Y = np.arange(6, dtype="float32").reshape(SHAPE) - 2, np.full(SHAPE, 1.5, "float32")
LISTS = """#[version = "0.0.5"]
type List[A] {
  Cons(A, List[A]),
  Nil,
}
def @id[A](%x: A) -> A { %x }
def @map[A, B](%f: fn(A) -> B, %xs: List[A]) -> List[B] {
  match (%xs) { Cons(%x, %rest) => { Cons(%f(%x), @map(%f, %rest)) }, Nil => { Nil }, }
}
def @foldr[A, B](%f: fn(A, B) -> B, %b: B, %xs: List[A]) -> B {
  match (%xs) { Cons(%x, %rest) => { %f(%x, @foldr(%f, %b, %rest)) }, Nil => { %b }, }
}
def @sum(%l: List[int32]) -> int32 { @foldr(fn(%x: int32, %y: int32) { %x + %y }, 0, %l) }
def @twice[A](%f: fn(A) -> A, %x: A) -> A { %f(%f(%x)) }
"""
PROGRAMS = {
    "a name is passed": "def @main(%k: int32) -> int32 { @twice(@id, %k) }",
    "a function captures": "def @main(%k: int32) -> int32 { @sum(@map(fn (%x: int32) { %x * %k }, Cons(1, Cons(%k, Nil)))) }",
    "a bound function is passed on": """def @main(%k: int32) -> int32 {
      let %add = fn (%x: int32) { %x + %k };
      @sum(@map(%add, @map(%add, Cons(%k, Nil))))
    }""",
    "a constructor is passed": "def @main(%k: int32) -> int32 { @sum(@foldr(Cons, Nil, Cons(%k, Cons(2, Nil)))) }",
    "functions that pass functions": "def @main(%k: int32) -> int32 { @twice(fn (%x: int32) { @twice(fn (%y: int32) { %x + %y }, %k) }, 1) }",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_first_order_pass_no_functions(name):
    program = relay.parse(LISTS + PROGRAMS[name])
    k = np.int32(3)
    expected = create_executor("debug", program).evaluate()(k).numpy()
    program["main"] = transform.Defunctionalization(program["main"], program)
    after = make("RemoveUnusedFunctions")(make("InferType")(program))
    for f in after.functions.values():
        for e in post_order(f):
            assert not isinstance(e, relay.Call) or not any(isinstance(a.checked_type, FuncType) for a in e.args)
    assert create_executor("debug", after).evaluate()(k).numpy() == expected
    assert create_executor("vm", after).evaluate()(k).numpy() == expected


@pytest.mark.parametrize(
    "text, why",
    [
        ("def @f(%x: int32) -> fn (int32) -> int32 { fn (%y: int32) { %x + %y } }\ndef @main() { @f(1)(2) }", "gives a function"),
        ("def @main(%f: fn (int32) -> int32) { @twice(%f, 1) }", "not known"),
        (
            "def @grow(%f: fn (int32) -> int32, %n: int32) -> int32 { @grow(fn (%x: int32) { %f(%f(%x)) }, %n) }"
            + "def @main() { @grow(@id, 1) }",
            "copy for each call",
        ),
    ],
)  # fmt: skip
def test_what_is_of_higher_order_is_refused(text, why, monkeypatch):
    monkeypatch.setattr("compassc.relay.defunctionalization.MOST_COPIES", 4)
    program = relay.parse(LISTS + text)
    with pytest.raises(CompassError, match=why):
        transform.Defunctionalization(program["main"], program)


def styled(f: relay.Function, program: IRModule) -> relay.Function:
    """A typed function in continuation-passing style, typed."""
    own = IRModule(dict(program.functions.items()), program.type_definitions)
    own["main"] = transform.to_cps(f, own)
    return make("InferType")(own)


@settings(max_examples=15, deadline=None)
@given(f=functions(branches=True))
def test_continuations_keep_what_a_function_computes(f):
    before = make("InferType")(module(f))
    after = styled(before["main"], before)
    t, kind = before["main"].checked_type, after["main"].checked_type
    *arguments, last = kind.arg_types
    assert arguments == list(t.arg_types) and last == FuncType([t.ret_type], kind.ret_type)
    after["main"] = transform.un_cps(after["main"])
    back = make("InferType")(after)
    assert back["main"].checked_type == t
    for a, b in some(zip(evaluate(before, X, Y), evaluate(back, X, Y), strict=True)):
        np.testing.assert_array_equal(a, b)


def test_continuations_of_recursive_and_polymorphic_functions():
    program = relay.parse(LISTS + PROGRAMS["a function captures"])
    expected = create_executor("debug", program).evaluate()(np.int32(3)).numpy()
    after = styled(program["main"], program)
    assert {v.name_hint for v in after.functions} >= {"map_cps", "sum_cps", "foldr_cps"}
    after["main"] = transform.un_cps(after["main"])
    assert create_executor("debug", make("InferType")(after)).evaluate()(np.int32(3)).numpy() == expected
    assert len(after["map_cps"].params) == 3
    with pytest.raises(CompassError, match="no continuation"):
        transform.un_cps(program["main"])
    with pytest.raises(CompassError, match="without types"):
        transform.to_cps(relay.Function([], relay.const(1)))


d, w = relay.var("data", shape=(4, 3)), relay.var("w", shape=(5, 3))


@pytest.mark.parametrize("auto_pad", [False, True])
def test_copies_for_shapes_compute_any_shape(auto_pad):
    body = build("nn.relu", build("nn.dense", d, w))
    both = relay.Function([d, w], relay.Tuple([body, build("nn.softmax", body)]))
    program = make("InferType")(module(both))
    wide = make("FlexibleShapeDispatch", buckets=[2, 4], auto_pad=auto_pad, input_indices=[0])(program)
    assert {v.name_hint for v in wide.functions} == {"main", "main_2", "main_4", "main_any"}
    assert [p.name_hint for p in wide["main"].params] == ["data", "w"]
    weight = np.random.default_rng(0).normal(0, 1, (5, 3)).astype("float32")
    for n in (1, 2, 3, 4, 7):
        data = np.random.default_rng(n).normal(0, 1, (n, 3)).astype("float32")
        found = create_executor("debug", wide).evaluate()(data, weight)
        expected = np.maximum(data @ weight.T, 0)
        np.testing.assert_allclose(found[0].numpy(), expected, rtol=1e-5, atol=1e-6)
        e = np.exp(expected - expected.max(-1, keepdims=True))
        np.testing.assert_allclose(found[1].numpy(), e / e.sum(-1, keepdims=True), rtol=1e-5)
    for wrong in ({"buckets": []}, {"buckets": [1], "axis": 3}):
        with pytest.raises(CompassError, match="axis 3|among nothing"):
            make("FlexibleShapeDispatch", **wrong)(program)


def test_results_that_do_not_follow_an_extent_are_refused():
    fixed = make("InferType")(module(relay.Function([d], build("reshape", d, (12,)))))
    with pytest.raises(CompassError, match="other extents on axis 0"):
        make("FlexibleShapeDispatch", buckets=[2])(fixed)


def test_tensors_of_gradients_are_made_late():
    x, y = relay.var("x", shape=SHAPE), relay.var("y", shape=SHAPE)
    f = relay.Function([x, y], x * y + call("zeros_like", x) * y)
    typed = make("InferType")(module(f))
    backward = make("InferType")(module(transform.gradient(typed["main"])))
    late = make("LazyGradientInit")(backward)
    assert late["main"].checked_type == backward["main"].checked_type
    value, gradients = create_executor("debug", late).evaluate()(X, Y)
    np.testing.assert_array_equal(value.numpy(), X * Y)
    np.testing.assert_array_equal(gradients[0].numpy(), Y)
    np.testing.assert_array_equal(gradients[1].numpy(), X)
    listed = relay.parse(LISTS + PROGRAMS["a name is passed"])
    assert make("LazyGradientInit")(listed)["sum"] is not None  # of data types: as it is


def test_places_are_those_of_the_text():
    program = make("AnnotateSpans")(module(relay.Function([d], build("nn.relu", d))))
    assert str(program["main"].body.span).startswith("GeneratedSource:")
