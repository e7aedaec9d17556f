"""What programs compute: the interpreter against Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compassc import relay
from compassc.ir.errors import ExpressionError
from compassc.relay import interpreter
from compassc.relay.errors import DiagnosticError
from compassc.relay.interpreter import ConstructorValue, Interpreter, RefValue
from compassc.relay.loops import while_loop
from compassc.relay.scope_builder import ScopeBuilder

VERSION = '#[version = "0.0.5"]\n'
PRELUDE = relay.Prelude()
_, CONS, NIL = PRELUDE.mod.get_type("List")
INTS = st.lists(st.integers(-50, 50), max_size=6)


def run(text: str, *args: object, module: relay.IRModule | None = None) -> object:
    """The value of an expression in text, of arguments where it is a function."""
    run_in = Interpreter(module or PRELUDE.mod)
    made = run_in.evaluate(relay.parse_expr(text, init_module=run_in.module))
    return made(*args) if args else made


def listed(values: list[object]) -> ConstructorValue:
    made = ConstructorValue(NIL.tag, [], NIL)
    for value in reversed(values):
        made = ConstructorValue(CONS.tag, [interpreter.value_of(value), made], CONS)
    return made


def plain(value: object) -> object:
    """A value as Python has it."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if not isinstance(value, ConstructorValue):
        return value.numpy().tolist()  # type: ignore[attr-defined]
    found = []
    while value.fields:
        found.append(plain(value.fields[0]))
        value = value.fields[1]
    return found


def applied(text: str, *args: object) -> object:
    return plain(run(text, *args))


@given(INTS, INTS)
def test_lists(xs, ys):
    a, b = listed(xs), listed(ys)
    inc = "fn (%x: int32) { %x + 1 }"
    assert applied(f"fn (%xs) {{ @map({inc}, %xs) }}", a) == [x + 1 for x in xs]
    assert applied("fn (%xs) { @filter(fn (%x: int32) { %x > 0 }, %xs) }", a) == [x for x in xs if x > 0]
    assert applied("@concat", a, b) == xs + ys
    assert applied("@rev", a) == xs[::-1]
    assert applied("@length", a) == len(xs)
    assert applied("@sum", a) == sum(xs)
    assert applied("@zip", a, b) == list(zip(xs, ys))
    minus = "fn (%x: int32, %y: int32) { %x - %y }"
    total = 1
    for x in xs:
        total -= x
    assert applied(f"fn (%xs) {{ @foldl({minus}, 1, %xs) }}", a) == total
    total = 1
    for x in reversed(xs):
        total = x - total
    assert applied(f"fn (%xs) {{ @foldr({minus}, 1, %xs) }}", a) == total
    step = "fn (%s: int32, %x: int32) { (%s + %x, %s * %x) }"
    state, made = 2, []
    for x in reversed(xs):
        made.append(state * x)
        state += x
    assert applied(f"fn (%xs) {{ @map_accumr({step}, 2, %xs) }}", a) == (state, made[::-1])
    state, made = 2, []
    for x in xs:
        made.append(state * x)
        state += x
    assert applied(f"fn (%xs) {{ @map_accuml({step}, 2, %xs) }}", a) == (state, made[::-1])
    if xs:
        assert applied("@hd", a) == xs[0]
        assert applied("@tl", a) == xs[1:]
        assert applied("@nth", a, len(xs) - 1) == xs[-1]
        assert applied("@update", a, 0, 7) == [7, *xs[1:]]
        assert applied("fn (%xs) { @foldr1(fn (%x: int32, %y: int32) { %x - %y }, %xs) }", a) == _foldr1(xs)


def _foldr1(xs: list[int]) -> int:
    return xs[0] if len(xs) == 1 else xs[0] - _foldr1(xs[1:])


def test_functions_of_functions():
    assert applied("fn (%x: int32) { @iterate(fn (%y: int32) { %y * 2 }, 5)(%x) }", 3) == 96
    assert applied("fn (%x: int32) { @compose(fn (%a: int32) { %a + 1 }, fn (%a: int32) { %a * 3 })(%x) }", 5) == 16
    assert applied("fn (%x: int32) { @flip(fn (%a: int32, %b: int32) { %a - %b })(%x, 1) }", 5) == -4
    count = "fn (%n: int32) { if (%n == 0) { None } else { Some((%n - 1, %n)) } }"
    assert applied(f"fn (%n: int32) {{ @unfoldr({count}, %n) }}", 4) == [4, 3, 2, 1]
    assert applied(f"fn (%n: int32) {{ @unfoldl({count}, %n) }}", 4) == [1, 2, 3, 4]
    tree = "Rose(1, Cons(Rose(2, Nil), Cons(Rose(3, Nil), Nil)))"
    assert applied(f"@size({tree})") == 3
    assert applied(f"match (@tmap(fn (%x: int32) {{ %x * 10 }}, {tree})) {{ Rose(%x, _) => {{ %x }} }}") == 10


def test_naturals():
    module = relay.IRModule()
    module.import_from_std("prelude.rly")
    module.import_from_std("nat.rly")

    def count(text: str) -> int:
        value = run(text, module=module)
        steps = 0
        while value.fields:
            value, steps = value.fields[0], steps + 1
        return steps

    two, three = "succ(succ(zero))", "succ(succ(succ(zero)))"
    assert count(f"@nat_add({two}, {three})") == 5
    assert count(f"@nat_double({three})") == 6
    assert count(f"@nat_iterate(fn (%n: nat) {{ succ(%n) }}, {three})({two})") == 5
    assert plain(run(f"@nat_nth(Cons(1, Cons(2, Cons(3, Nil))), {two})", module=module)) == 3
    one = "succ(zero)"
    assert plain(run(f"@nat_update(Cons(1, Cons(2, Nil)), {one}, 3)", module=module)) == [1, 3]


def test_gradient_cells():
    module = relay.IRModule().import_from_std("gradient.rly")
    cells = {"Raw(3f)": 3.0, "One(fn () { 1f })": 1.0, "Zero(fn () { 0f })": 0.0}
    for a, x in cells.items():
        for b, y in cells.items():
            times = f"@MultiplyGradCell(fn (%a: float32, %b: float32) {{ %a * %b }}, {a}, {b})"
            plus = f"@AddGradCell(fn (%a: float32, %b: float32) {{ %a + %b }}, {a}, {b})"
            assert plain(run(f"@FromGradCell({times})", module=module)) == x * y
            assert plain(run(f"@FromGradCell({plus})", module=module)) == x + y


@given(st.integers(0, 30))
def test_loops(n):
    i, total = relay.var("i", "int32"), relay.var("total", "int32")
    one, limit = relay.const(1), relay.const(n)
    loop = while_loop(lambda i, _: i < limit, [i, total], lambda i, t: [i + one, t + i])
    call = loop(relay.const(0), relay.const(0))
    assert plain(Interpreter().evaluate(call)) == (n, sum(range(n)))


def test_steps_of_a_scope_builder():
    x = relay.var("x", "int32")
    sb = ScopeBuilder()
    y = sb.let("y", x + x)
    with sb.if_scope(y > relay.const(5)):
        z = sb.let(("z", "int32"), y * y)
        sb.ret(z)
    with sb.else_scope():
        sb.ret(relay.const(-1))
    f = relay.Function([x], sb.get())
    assert [plain(Interpreter().evaluate(f)(v)) for v in (2, 3)] == [-1, 36]


def test_only_one_branch_is_computed():
    text = "let %r = ref(0); if ({}) {{ ref_write(%r, 1) }} else {{ ref_write(%r, ref_read(%r) + 2) }}; ref_read(%r)"
    assert applied(text.format("True")) == 1
    assert applied(text.format("False")) == 2


def test_shared_expressions_are_computed_once():
    assert (
        applied("let %r = ref(0); %0 = fn () { ref_write(%r, ref_read(%r) + 1) }; %1 = %0(); (%1, %1); ref_read(%r)")
        == 1
    )
    value = run("%0 = ref(1); (%0, %0, fn () { %0 })")
    assert isinstance(value[0], RefValue)
    assert value[0] is value[1] is value[2]()


def test_a_call_of_a_function_computes_its_own():
    text = "let %f = fn (%x: int32) { %0 = %x + 1; %1 = fn (%y: int32) { %0 + %y }; (%0, %1(%x)) }; (%f(1), %f(10))"
    assert applied(text) == ((2, 3), (11, 21))


def test_recursion():
    fib = "let %f = fn (%n: int32) { if (%n < 2) { %n } else { %f(%n - 1) + %f(%n - 2) } }; %f(12)"
    assert applied(fib) == 144
    even = (
        VERSION
        + """
def @even(%n: int32) -> bool { if (%n == 0) { True } else { @odd(%n - 1) } }
def @odd(%n: int32) -> bool { if (%n == 0) { False } else { @even(%n - 1) } }
def @main(%n: int32) { @even(%n) }"""
    )
    main = Interpreter(relay.parse(even)).evaluate()
    assert plain(main(10)) is True
    assert plain(main(n=1_001)) is False


def test_recursion_may_be_deep():
    count = "let %f = fn (%n: int32) { if (%n == 0) { 0 } else { 1 + %f(%n - 1) } }; %f"
    assert plain(run(count, 3_000)) == 3_000
    deep = listed(list(range(3_000)))
    assert applied("@length", deep) == 3_000
    assert repr(deep).startswith("Cons(")
    assert len(repr(deep)) < 300
    chain = relay.const(0)
    for _ in range(3_000):
        chain = chain + relay.const(1)
    assert plain(Interpreter().evaluate(chain)) == 3_000


def test_recursion_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(interpreter, "MOST_WAITING", 5_000)
    with pytest.raises(ExpressionError, match="the program recurses"):
        run("let %f = fn (%n: int32) { 1 + %f(%n) }; %f(1)")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("@hd(Nil)", "no clause takes Nil"),
        ("@nothing(1)", "no function @nothing"),
        ("1(2)", "is no function"),
        ("(1, 2).2", "no item 2"),
        ("ref_read(1)", "is no reference"),
        ("if ((1, 2)) { 1 } else { 2 }", "a condition is a scalar"),
        ("@hd(1, 2)", "1 parameters is called with 2 values"),
        ("Cons(1)", "Cons takes 2 values, not 1"),
        ("1 + 2f", "do not match"),
        ("reshape(1, newshape=[3])", "reshape"),
    ],
)
def test_mistakes_are_told_with_their_place(text, words):
    with pytest.raises(CompassError, match=words) as raised:
        run(text)
    if isinstance(raised.value, DiagnosticError):
        assert raised.value.span is not None


def test_arguments():
    x, y = relay.var("x", shape=(2, relay.Any())), relay.var("y", "int64")
    f = Interpreter().evaluate(relay.Function([x, y], relay.Tuple([y, x])))
    array = np.ones((2, 3), "float32")
    assert plain(f(array, 5)) == plain(f(y=5, x=array)) == plain(f(array, y=np.int64(5))) == (5, array.tolist())
    for args, named, words in [
        ((array,), {"x": array}, r"position: 0\), and keyword argument \(with name: x"),
        ((array,), {}, "insufficient arguments, expected 2, provided 1"),
        ((array, 1, 2), {}, "insufficient arguments, expected 2, provided 3"),
        ((array,), {"z": 1}, "no parameter 'z'"),
        ((array[0], 1), {}, r"x is Tensor\[\(3,\), float32\]"),
        ((array.astype("float64"), 1), {}, "float64"),
        ((array, "1"), {}, "y is a str"),
    ]:
        with pytest.raises(CompassError, match=words):
            f(*args, **named)
    with pytest.raises(ExpressionError, match="free variables: y"):
        Interpreter().evaluate(y)
    assert plain(Interpreter().evaluate(relay.Tuple([y]), {y: 3})) == (3,)
