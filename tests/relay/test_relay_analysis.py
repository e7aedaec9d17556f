"""What is said of programs: variables, well-formedness, features, counts; classes that walk them; expressions in place of variables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from compassc import relay
from compassc.ir.errors import ExpressionError
from compassc.relay import analysis, functor, variables
from compassc.relay.analysis import counts, features
from compassc.relay.analysis.call_graph import CallGraph
from compassc.relay.analysis.features import Feature
from compassc.relay.analysis.wellformed import check_constant, well_formed
from compassc.relay.bind import bind, bind_params_by_name
from compassc.relay.expr import Expr
from compassc.relay.operators import OPERATORS, get, op_name
from compassc.relay.scope_builder import ScopeBuilder
from compassc.relay.text.program import parse_module
from compassc.relay.visit import children, post_order

from .programs import RECIPES, Builder

FREE = [relay.var("x", shape=(2,)), relay.Var("y"), relay.Var("z")]
F = relay.GlobalVar("f")
VERSION = '#[version = "0.0.5"]\n'


def names(found: list[relay.Var]) -> str:
    return " ".join(v.name_hint for v in found)


def read(text: str) -> Expr:
    return relay.parse_expr(text)


@pytest.mark.parametrize(
    ("text", "all_", "bound", "free"),
    [
        ("free_var %a; free_var %b; @f(%b, %a, %b)", "b a", "", "b a"),
        ("fn (%p, %q) { free_var %a; (%q, %a) }", "p q a", "p q", "a"),
        ("free_var %a; let %l = %a; fn (%p) { (%l, %p) }", "l a p", "l p", "a"),
        ("free_var %a; if (%a) { free_var %b; %b } else { %a }", "a b", "", "a b"),
        ("free_var %a; match (%a) { (%p, (%q, _)) => { @f(%q) } }", "a p q", "p q", "a"),
    ],
)
def test_variables_in_order(text, all_, bound, free):
    e = read(text)
    assert names(variables.all_vars(e)) == all_
    assert names(variables.bound_vars(e)) == bound
    assert names(variables.free_vars(e)) == free


@given(RECIPES)
def test_random_programs_are_well_formed_and_know_their_variables(recipe):
    e = Builder("a", FREE).make(recipe)
    assert well_formed(e)
    used = [v for v in post_order(e) if v in FREE]
    assert set(variables.free_vars(e)) == set(used)
    assert set(variables.free_vars(e)) | set(variables.bound_vars(e)) == set(variables.all_vars(e))
    closed = relay.Function(variables.free_vars(e), e)
    assert variables.free_vars(closed) == []
    assert well_formed(closed)


def test_what_is_not_well_formed():
    x, y = relay.Var("x"), relay.Var("y")
    inner = relay.Let(x, relay.const(1), x)
    assert well_formed(relay.Let(x, relay.const(1), relay.Tuple([x])))
    assert not well_formed(relay.Let(x, relay.const(1), relay.Let(x, relay.const(2), x)))
    assert not well_formed(relay.Tuple([inner, relay.Let(x, relay.const(1), x)]))
    assert not well_formed(relay.Tuple([inner, x]))
    assert not well_formed(relay.Tuple([x, inner]))
    assert not well_formed(relay.Function([x, x], y))
    assert not well_formed(relay.Function([x], inner))
    assert well_formed(relay.Tuple([inner, inner]))


def test_type_variables():
    a, b = relay.TypeVar("A"), relay.TypeVar("B")
    x = relay.Var("x", relay.TupleType([a, b]))
    f = relay.Function([x], x, relay.FuncType([a], b), [a])
    assert variables.all_type_vars(f) == [a, b]
    assert variables.bound_type_vars(f) == [a]
    assert variables.free_type_vars(f) == [b]
    identity = relay.FuncType([a], a, [a])
    assert (variables.free_type_vars(identity), variables.bound_type_vars(identity)) == ([], [a])
    module = parse_module(VERSION + "type T[C] { One(C), }\ndef @f() { One(1) }")
    c = module.get_type("T")[1].inputs[0]
    assert variables.bound_type_vars(module["f"], module) == [c]
    assert variables.free_type_vars(module["f"]) == [c]


def test_constants():
    one = relay.const(1)
    on_device = relay.Call(get("on_device"), [one]) if "on_device" in OPERATORS else one
    assert check_constant(relay.Tuple([on_device, relay.Tuple([one])]))
    assert not check_constant(relay.Tuple([one, relay.Var("x")]))


@given(RECIPES)
def test_features(recipe):
    e = Builder("a", FREE).make(recipe)
    found = features.detect_feature(e)
    parts = [e] if features.is_primitive(e) else list(post_order(e, features.is_primitive))
    assert {f"f{type(part).__name__}" for part in parts} == {f.name for f in found} - {"fGraph", "fLetRec"}
    inner = [c for part in parts if not features.is_primitive(part) for c in children(part)]
    shared = [id(c) for c in inner if not isinstance(c, (relay.Var, relay.Constant, relay.GlobalVar))]
    assert (Feature.fGraph in found) == (len(shared) > len(set(shared)))


def test_features_of_recursion_and_kernels():
    assert Feature.fLetRec in features.detect_feature(read("let %f = fn () { %f() }; %f"))
    kernel = relay.Function([], F(), attrs={"Primitive": 1})
    assert features.detect_feature(kernel) == {Feature.fFunction}
    assert features.detect_feature(relay.const(1), relay.IRModule({"main": kernel})) == {
        Feature.fConstant,
        Feature.fFunction,
    }
    assert [f.value for f in Feature] == list(range(17))


def test_operators_are_counted_once_each():
    module = parse_module(
        VERSION + "def @main(%x: Tensor[(2, 2), float32]) { %0 = nn.relu(%x); %1 = add(%0, %0); add(%1, %0) }"
    )
    assert counts.list_op_freqs(module) == {"nn.relu": 1, "add": 2}
    assert counts.count_layers(module, ["add"]) == 2
    assert counts.count_layers(module["main"], ["add", "nn.relu"]) == 3
    one = counts.extract_intermdeiate_expr(module, 1)
    assert counts.list_op_freqs(one) == {"nn.relu": 1, "add": 1}
    with pytest.raises(ExpressionError, match="no expression %3"):
        counts.extract_intermdeiate_expr(module, 3)
    visited: list[Expr] = []
    counts.post_order_visit(module["main"], visited.append)
    assert [op_name(e) for e in visited if op_name(e)] == ["nn.relu", "add", "add"]


def tensor(shape: tuple[int, ...]) -> relay.Var:
    made = relay.var("x", shape=shape)
    made.typed(made.type_annotation)
    return made


def test_multiplications():
    def call(name: str, shapes: list[tuple[int, ...]], out: tuple[int, ...], **attrs: object) -> Expr:
        op = get(name)
        made = relay.Call(op, [tensor(s) for s in shapes], op.record(**attrs) if op.record else None)
        return made.typed(relay.TensorType(out))

    conv = call("nn.conv2d", [(1, 8, 6, 6), (4, 2, 3, 3)], (1, 4, 4, 4), groups=4, channels=4, kernel_size=(3, 3))
    assert counts.get_total_mac_number(conv) == 4 * 4 * 4 * 9 * 2
    dense = call("nn.dense", [(3, 5), (7, 5)], (3, 7), units=7)
    assert counts.get_total_mac_number(relay.Tuple([conv, dense])) == 4 * 4 * 4 * 9 * 2 + 3 * 5 * 7
    product = call("nn.batch_matmul", [(2, 3, 5), (2, 7, 5)], (2, 3, 7))
    assert counts.get_total_mac_number(product) == 2 * 3 * 5 * 7
    assert counts.get_total_mac_number(relay.Call(get("nn.relu"), [dense])) == 105
    assert counts.all_dtypes(dense) == {"float32"}


def test_calls_between_functions():
    text = "def @main() { @a(); @a(); @b }\ndef @a() { @a() }\ndef @b() { 1 }"
    graph = CallGraph(parse_module(VERSION + text))
    assert (graph.ref_count("a"), graph.ref_count("b"), graph.ref_count("main")) == (3, 1, 0)
    assert (graph.global_call_count("main"), graph.global_call_count("b")) == (3, 0)
    assert graph.is_recursive("a")
    assert not graph.is_recursive(graph.module.get_global_var("main"))
    assert "a" in graph.print_var("a")
    assert "#refs = 3" in graph.print_var("a")
    assert "main" in str(graph)


class Renamer(functor.ExprMutator):
    """Other constants, everything else as it is."""

    def visit_constant(self, const: relay.Constant) -> Expr:
        return relay.const(7)


@given(RECIPES)
def test_mutators(recipe):
    e = Builder("a", FREE).make(recipe)
    assert functor.ExprMutator().visit(e) is e
    constants = [p for p in post_order(e) if isinstance(p, relay.Constant)]
    made = Renamer().visit(e)
    assert (made is e) == (not constants)
    assert [str(p) for p in post_order(made) if isinstance(p, relay.Constant)] == ["7"] * len(constants)


@given(RECIPES)
def test_visitors_see_every_expression_once(recipe):
    class Counting(functor.ExprVisitor):
        def visit(self, expr: Expr) -> object:
            if expr not in self.memo_map:
                seen.append(expr)
            return super().visit(expr)

    seen: list[Expr] = []
    e = Builder("a", FREE).make(recipe)
    Counting().visit(e)
    assert set(seen) == set(post_order(e))
    assert len(seen) == len(set(seen))


def test_functors_say_what_is_missing():
    with pytest.raises(NotImplementedError, match="Constant"):
        functor.ExprFunctor().visit(relay.const(1))
    with pytest.raises(NotImplementedError, match="TensorType"):
        functor.TypeFunctor().visit(relay.scalar_type("int8"))
    deep: Expr = relay.Var("x")
    for _ in range(3_000):
        deep = F(deep)
    with pytest.raises(ExpressionError, match="too deep"):
        functor.ExprVisitor().visit(deep)


def test_types_of_mutators_are_equal_and_new():
    a = relay.TypeVar("A")
    t = relay.FuncType([a, relay.RefType(relay.scalar_type("int8"))], relay.TupleType([a]), [a])
    made = functor.TypeMutator().visit(t)
    assert made == t
    assert made is not t
    assert made.type_params[0] is made.arg_types[0] is not a
    seen: list[relay.Type] = []

    class Seeing(functor.TypeVisitor):
        def visit_tensor_type(self, typ: relay.TensorType) -> None:
            seen.append(typ)

    Seeing().visit(t)
    assert seen == [relay.scalar_type("int8")]


def test_bind():
    x, y, z = (relay.Var(n) for n in "xyz")
    f = relay.Function([x, y], F(x, y), attrs={"a": 1})
    assert bind(x, {x: y}) is y
    made = bind(f, {x: F(z)})
    assert isinstance(made, relay.Function)
    assert (list(made.params), made.attrs) == ([y, z], {"a": 1})
    relay.assert_structural_equal(made.body, F(F(z), y))
    assert bind(f, {z: x}) is f
    array = np.ones(2, "int64")
    bound = bind_params_by_name(f, {"x": array, "other": array})
    assert list(bound.params) == [y]
    assert bound.body.args[0].array.dtype == "int64"
    with pytest.raises(ExpressionError, match="2 parameters are named 'x'"):
        bind_params_by_name(relay.Function([x, relay.Var("x")], x), {"x": array})


def test_scope_builders_refuse_steps_that_cannot_come():
    def steps(*calls: str) -> None:
        sb = ScopeBuilder()
        for call in calls:
            if call == "if":
                with sb.if_scope(relay.const(True)):
                    sb.ret(relay.const(1))
            elif call == "else":
                with sb.else_scope():
                    sb.ret(relay.const(2))
            elif call == "ret":
                sb.ret(relay.const(3))
            else:
                sb.get()

    steps("if", "else", "get")
    steps("ret", "get")
    for wrong in ("get", "if get", "else", "ret ret", "ret if", "if else ret", "if if"):
        with pytest.raises(RuntimeError):
            steps(*wrong.split())
    sb = ScopeBuilder()
    with pytest.raises(ValueError, match="two parts"):
        sb.let(("a", "int8", "b"), relay.const(1))
    assert sb.type_of(relay.var("x", "int8")) == relay.scalar_type("int8")
    assert isinstance(sb.type_of(relay.const(1)), relay.IncompleteType)


def test_kinds_and_cases():
    module = parse_module(
        VERSION + "type T[C] { One(C), Two, }\ndef @f(%x: T[int8]) { match? (%x) { One(_) => { 1 } } }"
    )
    header = module.get_global_type_var("T")
    assert analysis.check_kind(relay.TypeCall(header, [relay.scalar_type("int8")]), module) == relay.TypeKind.Type
    with pytest.raises(ExpressionError):
        analysis.check_kind(relay.TypeCall(header, []), module)
    assert [str(p) for p in analysis.unmatched_cases(module["f"].body, module)] == ["Two"]


def test_basic_blocks():
    shared = F()
    ordered = read("let %x = @f(); if (%x) { @g(%x) } else { %x }")
    assert analysis.check_basic_block_normal_form(ordered)
    wrong = relay.If(relay.const(True), relay.Tuple([shared]), relay.Tuple([shared, shared]))
    with pytest.raises(ExpressionError, match="should be lifted"):
        analysis.check_basic_block_normal_form(wrong)


def test_kernels_of_fusion():
    module = relay.parse(VERSION + "def @main(%x: Tensor[(4), float32]) { nn.relu(nn.relu(%x) + 1f) }")
    kernels = list(analysis.extract_fused_functions(module).values())
    assert len(kernels) == 1
    assert counts.list_op_freqs(relay.IRModule({"main": kernels[0]})) == {"nn.relu": 2, "add": 1}
