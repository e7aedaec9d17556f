"""Modules: functions and data types by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from compassc import relay
from compassc.ir import IRModule as Kernels
from compassc.ir import PrimFunc
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.relay.module import IRModule
from compassc.relay.text.program import parse_module

VERSION = '#[version = "0.0.5"]\n'
DATA = "type List[A] { Cons(A, List[A]), Nil, }\ntype nat { zero, succ(nat), }\n"
X = relay.var("x", shape=(2,))
IDENTITY = relay.Function([X], X)


def test_functions_are_looked_up_by_name_and_variable():
    module = IRModule({"f": IDENTITY})
    f = module.get_global_var("f")
    assert module["f"] is module[f] is module[relay.GlobalVar("f")] is IDENTITY
    assert module.get_global_vars() == [f]
    assert "f" in module
    assert "g" not in module
    with pytest.raises(ValueError, match="Cannot find global var g"):
        module["g"]
    module["f"] = relay.Function([], relay.Tuple([]))
    assert module.get_global_var("f") is f
    assert module["f"] is not IDENTITY


def test_what_is_put_into_a_module():
    module = IRModule()
    module["f"] = IDENTITY
    module["again"] = module.get_global_var("f")
    assert str(module["again"]) == "fn (%x: Tensor[(2,), float32]) {\n  @f(%x)\n}"
    module["value"] = relay.const(1)
    assert str(module["value"]) == "fn () {\n  1\n}"
    for free in (X, relay.Function([], X), relay.Function([], relay.Tuple([]), relay.TypeVar("A"))):
        with pytest.raises(ExpressionError, match="contains free variables"):
            module["bad"] = free
    with pytest.raises(ExpressionError, match="another GlobalVar"):
        module[relay.GlobalVar("f")] = IDENTITY
    with pytest.raises(ExpressionError, match="two globals"):
        IRModule({relay.GlobalVar("f"): IDENTITY, relay.GlobalVar("f"): IDENTITY})
    with pytest.raises(ExpressionTypeError):
        module["bad"] = relay.scalar_type("int8")
    with pytest.raises(ExpressionTypeError):
        module["bad"] = 3


def test_modules_of_expressions():
    y = relay.Var("y")
    module = IRModule.from_expr(relay.GlobalVar("g")(y, X, y))
    assert list(module["main"].params) == [y, X]
    assert IRModule.from_expr(IDENTITY)["main"] is IDENTITY
    named = IDENTITY.with_attr("global_symbol", "f")
    assert [v.name_hint for v in IRModule.from_expr(named).functions] == ["f"]
    both = IRModule.from_expr(IDENTITY, {"main": named})
    assert both["main"] is named
    assert both["main_1"] is IDENTITY


def test_constructors_have_tags():
    one, two = parse_module(VERSION + DATA), parse_module(VERSION + DATA)
    for name in ("List", "nat"):
        _, *constructors = one.get_type(name)
        tags = [c.tag for c in constructors]
        assert tags == list(range(tags[0], tags[0] + len(tags)))
        assert tags[0] >> 24 > 0
        for c in constructors:
            assert one.get_constructor(c.tag) is c
            assert two.get_constructor(c.tag).name_hint == c.name_hint
    assert one[one.get_global_type_var("List")].header is one.get_global_type_var("List")
    with pytest.raises(ValueError, match="tag 5"):
        one.get_constructor(5)
    many = IRModule()
    for i in range(100):
        header = relay.GlobalTypeVar(f"T{i}")
        many[header] = relay.TypeData(header, [], [relay.Constructor(f"C{i}", [], header)])
    tags = {many.get_type(f"T{i}")[1].tag for i in range(100)}
    assert len(tags) == 100
    assert all(tag >> 24 > 0 for tag in tags)


def test_update_takes_all_functions_and_names_globals_of_here():
    one = IRModule({"f": IDENTITY, "g": relay.Function([], relay.Tuple([]))})
    f = one.get_global_var("f")
    two = parse_module(VERSION + DATA + "def @g() { @f(@h()) }\ndef @h() { () }")
    one.update(two)
    assert {v.name_hint for v in one.functions} == {"f", "g", "h"}
    assert one["g"].body.op is f
    assert one["g"].body.args[0].op is one.get_global_var("h")
    assert one.get_type("nat")[1].name_hint == "zero"
    one.update({"f": relay.Function([], relay.Tuple([]))})
    assert not one["f"].params


def test_attributes():
    module = IRModule({"f": IDENTITY}, attrs={"a": 1})
    more = module.with_attr("b", [1, 2])
    assert more.attrs == {"a": 1, "b": (1, 2)} == {**module.with_attrs({"b": (1, 2)}).attrs}
    assert module.get_attr("b") is None
    assert more.without_attr("a").get_attr("a") is None
    assert more.shallow_copy()["f"] is IDENTITY


def kernel(name: str) -> PrimFunc:
    from compassc import te

    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    return te.create_prim_func([a, b]).replace(name=name)


def test_what_a_module_shows_is_its_script(capsys):
    module = IRModule({"main": IDENTITY})
    module.show()
    assert capsys.readouterr().out == f"{module.script()}\n"
    assert relay.structural_equal(parse_module(VERSION + module.script()), module)


def test_modules_hold_kernels():
    module = IRModule({"main": IDENTITY, "k": kernel("other")})
    with pytest.raises(ExpressionError, match="@main is a function of graphs"):
        module.kernels()
    kernels = IRModule({"k": kernel("other")}).kernels()
    assert isinstance(kernels, Kernels)
    assert [f.name for f in kernels.functions] == ["k"]
    again = parse_module(module.astext())
    relay.assert_structural_equal(module, again)
    assert relay.structural_hash(module) == relay.structural_hash(again)
    assert not relay.structural_equal(module, IRModule({"main": IDENTITY}))
    assert IRModule.from_expr(kernel("k"))["k"].name == "k"


def test_equality_of_modules():
    text = VERSION + DATA + "def @a(%x: List[nat]) { @b(%x) }\ndef @b(%y: List[nat]) { %y }"
    swapped = VERSION + "def @b(%y: List[nat]) { %y }\n" + DATA + "def @a(%x: List[nat]) { @b(%x) }"
    one, two = parse_module(text), parse_module(swapped)
    relay.assert_structural_equal(one, two)
    assert relay.structural_hash(one) == relay.structural_hash(two)
    assert not relay.structural_equal(one, two.with_attr("a", 1))
    two["a"] = two["b"]
    assert not relay.structural_equal(one, two)
    assert not relay.structural_equal(one["a"], two["a"])


def test_modules_are_there_without_an_import_of_their_own():
    names = ["transform", "analysis", "dataflow_pattern", "frontend", "testing"]
    program = f"from compassc import relay; print(*(getattr(relay, name).__name__ for name in {names}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"compassc.relay.{name}" for name in names]
