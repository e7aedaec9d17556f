"""Partial evaluation: programs compute what they did, what is known is gone, and doing it again changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compassc import relay
from compassc.relay.analysis import well_formed
from compassc.relay.expr import Call, Constant, Constructor, Function, GlobalVar, If, Let, Match, RefRead, Var
from compassc.relay.interpreter import Interpreter
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.passes import make
from compassc.relay.visit import children, post_order
from tests.choosing import some

LIBRARY = """#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil, }
def @map[A, B](%f: fn(A) -> B, %xs: List[A]) -> List[B] {
  match (%xs) { Cons(%x, %rest) => { Cons(%f(%x), @map(%f, %rest)) }, Nil => { Nil }, }
}
def @sum(%l: List[int32]) -> int32 { match (%l) { Cons(%x, %rest) => { %x - @sum(%rest) }, Nil => { 0 }, } }
def @same[A](%x: A) -> A { %x }
def @twice[A](%f: fn(A) -> A, %x: A) -> A { %f(%f(%x)) }
def @power(%n: int32, %x: int32) -> int32 { if (%n < 1) { 1 } else { %x * @power(%n - 1, %x) } }
def @swap(%x: int32, %y: int32) -> int32 { @swap(%y, %x) }
def @forever(%x: int32) -> int32 { @forever(%x + 1) }
def @times(%n: int32, %c: ref(int32)) -> () {
  if (%n < 1) { () } else { let %u = ref_write(%c, ref_read(%c) * 2); @times(%n - 1, %c) }
}
def @make(%n: int32) -> List[int32] { if (%n < 1) { Nil } else { Cons(%n, @make(%n - 1)) } }
"""
BODY = """
  let %p = ({b}, {a});
  let %r = ref({a});
  let %s = ref(2);
  let %l = Cons({a}, Cons(3, Nil));
  let %count = fn () { ref_write(%r, ref_read(%r) + 1) };
  let %f = fn (%n: int32) -> int32 { if (%n < 1) { ref_read(%s) } else { {b} - %f(%n - 2) } };
  let %result = { {body} };
  %result * 100 + ref_read(%r) * 10 + ref_read(%s)
"""
NUMBERS = [
    "{a}",
    "{b}",
    "3",
    "-2",
    "%p.0",
    "ref_read(%r)",
    "ref_read(%s)",
    "@sum(%l)",
    "%f({b})",
    "%f(3)",
    "@power({a}, 2)",
]
LISTS = ["%l", "@make(3)", "Cons({0}, %l)", "@map(fn (%c: int32) { %c + {0} }, %l)", "Cons({0}, Cons({1}, Nil))"]
GROWN = [
    "({0} - {1})", "@same({0})", "@twice(%f, {0})", "if ({0} < {1}) { {2} } else { {0} }",
    "{ let %g = fn (%c: int32) { %c - {0} }; @sum(@map(%g, {list})) }",
    "{ let %q = ({0}, {1}); let %p = %q; {2} }",
    "match ({list}) { Cons(%x, Cons(%y, %t)) => { %y - @sum(%t) }, Cons(%x, %t) => { {1} }, _ => { {0} } }",
    "{ let %o = ref(fn (%z: int32) { %z }); let %w = ref_write(%o, fn (%z: int32) { {1} - %z }); ref_read(%o)({0}) }",
    "{ let %o = ref({0}); let %u = ref_write(%o, {1}); ref_read(%o) }",
]  # fmt: skip
EFFECTS = [
    "ref_write({cell}, {0})", "%count()", "ref_write(if ({0} < {b}) { %r } else { %s }, {1})",
    "if ({0} < {a}) { ref_write({cell}, {1}) } else { %count() }",
    "match ({list}) { Cons(%x, Nil) => { ref_write({cell}, %x) }, _ => { %count() } }",
    "@times({b}, {cell})", "@times(2, {cell})",
]  # fmt: skip


@st.composite
def bodies(draw) -> str:
    """The rest of a body, in which the numbers {a} and {b} are known: values get names, cells are written."""
    known, text = list(NUMBERS), ""
    for i in range(draw(st.integers(1, 6))):
        number = draw(st.booleans())
        made = draw(st.sampled_from(GROWN if number else EFFECTS))
        fill = {"{list}": draw(st.sampled_from(LISTS)), "{cell}": draw(st.sampled_from(["%r", "%s"]))}
        fill |= {f"{{{k}}}": draw(st.sampled_from(known)) for k in range(3)}
        for old, new in fill.items():
            made = made.replace(old, new)
        text += f"let %v{i} = {made}; "
        known = [f"%v{i}", *known] if number else known
    return text + draw(st.sampled_from(known))


def program(body: str, a: str = "%a", b: str = "%b") -> IRModule:
    params = ", ".join(f"{v}: int32" for v in (a, b) if v.startswith("%"))
    filled = BODY.replace("{body}", body).replace("{a}", a).replace("{b}", b)
    return relay.parse(f"{LIBRARY}def @main({params}) -> int32 {{ {filled} }}")


def evaluated(m: IRModule) -> IRModule:
    """The module after the pass, which has the form that it promises, and which doing it again leaves."""
    after = make("PartialEvaluate")(m)
    again = make("PartialEvaluate")(after)
    for v, f in some(after.functions.items()):
        assert well_formed(f) and in_form(f)
        assert relay.structural_equal(f, again[v]), f"{f}\n{again[v]}"
    return after


def in_form(f: Function) -> bool:
    """Whether arguments, fields, conditions and results are atoms."""
    atoms = (Var, GlobalVar, Op, Constructor, Constant)
    for e in post_order(f):
        if isinstance(e, (Let, Function)):
            continue
        inner = {id(c) for c in children(e)[1:]} if isinstance(e, (If, Match)) else set()
        if not all(isinstance(c, atoms) for c in children(e) if id(c) not in inner):
            return False
    return True


def value(m: IRModule, *args: int) -> str:
    return repr(Interpreter(m).evaluate()(*map(np.int32, args)))


@settings(max_examples=40, deadline=None)
@example(body="let %w = ref_write(if ({a} < {b}) { %r } else { %s }, 7); {a}", a=1, b=2)
@example(body="let %w = if ({a} < {b}) { @swap(1, 2) } else { { let %u = @times({b}, %s); 1 } }; {a}", a=2, b=1)
@given(body=bodies(), a=st.integers(-3, 4), b=st.integers(-3, 4))
def test_programs_compute_what_they_did(body, a, b):
    m = program(body)
    assert value(evaluated(m), a, b) == value(m, a, b)


@settings(max_examples=20, deadline=None)
@given(body=bodies(), a=st.integers(-3, 4), b=st.integers(-3, 4))
def test_programs_of_constants_are_constants(body, a, b):
    m = program(body, str(a), str(b))
    after = make("DeadCodeElimination", ignore_impurity=True)(evaluated(m))["main"]
    assert isinstance(after.body, Constant) and repr(after.body.data) == value(m)


def main(text: str) -> Function:
    after = evaluated(relay.parse(f"{LIBRARY}def @main(%k: int32) {{ {text} }}"))
    return make("DeadCodeElimination", inline_once=True)(after)["main"]


SIMPLER = {
    "a tuple": ("(4, %k).1", "%k"),
    "a call": ("{ let %double = fn (%x: int32) { %x + %x }; %double(4) }", "8"),
    "a cell": ("{ let %r = ref(%k); let %u = ref_write(%r, ref_read(%r) * ref_read(%r)); let %v = ref_read(%r); %v }", None),
    "data": ("@map(fn (%x: int32) { %x * 2 }, Cons(1, Cons(2, Nil)))", "Cons(2, Cons(4, Nil))"),
    "a polymorphic function as a value": ("@twice(@same, %k)", "%k"),
    "calls in calls of one function": ("@twice(fn (%x: int32) { @twice(fn (%y: int32) { %y + 1 }, %x) }, 1)", "5"),
    "recursion that ends": ("@power(3, %k)", "%k * (%k * (%k * 1))"),
    "recursion on what is not known": ("@power(%k, 3)", "@power(%k, 3)"),
    "recursion without progress": ("@swap(1, 2)", "@swap(1, 2)"),
    "recursion without an end": ("@forever(1)", "@forever(1)"),
    "a list with an end that is not known": ("@sum(Cons(1, Cons(2, @make(%k))))", "1 - (2 - @sum(@make(%k)))"),
}  # fmt: skip


@pytest.mark.parametrize("case", SIMPLER)
def test_what_is_known_is_gone(case):
    text, expected = SIMPLER[case]
    made = main(text)
    if expected is None:
        assert not any(isinstance(e, (RefRead, If, Match)) for e in post_order(made))
        return
    wanted = make("ToGraphNormalForm")(relay.parse(f"{LIBRARY}def @main(%k: int32) {{ {expected} }}"))["main"]
    assert relay.structural_equal(made.body, wanted.body, map_free_vars=True), made


def test_functions_that_stay_are_evaluated_and_what_they_capture_is_kept():
    f = main("fn (%y: int32) { let %t = (%k, 2); %t.1 * 3 + %t.0 + %y }").body
    assert isinstance(f, Function)
    calls = [e for e in post_order(f) if isinstance(e, Call)]
    assert len(calls) == 2 and any(isinstance(a, Constant) and a.array == 6 for c in calls for a in c.args)


def test_kernels_and_functions_of_others_are_left_alone():
    x = relay.var("x", shape=(2,))
    inner = relay.Function([x], relay.exp(x))
    for attrs in ({"Primitive": 1}, {"Compiler": "other"}):
        y = relay.var("y", shape=(2,))
        m = make("InferType")(IRModule({"main": relay.Function([y], inner.replace(attrs=attrs)(y))}))
        after = evaluated(m)["main"]
        named = make("ToANormalForm")(m)["main"]
        kept = [[e for e in post_order(f.body) if isinstance(e, Function)] for f in (after, named)]
        assert len(kept[0]) == 1 and relay.structural_equal(*kept[0], *kept[1])
