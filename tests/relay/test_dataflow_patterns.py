"""Dataflow patterns: what matches, what rewriting and partition make of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compassc import relay
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.relay.builders import build, results
from compassc.relay.dataflow_pattern import (
    DFPattern,
    DFPatternCallback,
    FunctionPattern,
    NoFixedPoint,
    dominates,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    rewrite,
    wildcard,
)
from compassc.relay.dataflow_pattern.matcher import COMMUTATIVE
from compassc.relay.expr import Expr
from compassc.relay.operators import Op
from compassc.relay.variables import free_vars
from compassc.relay.visit import children, post_order
from compassc.relay.visit import rewrite as rebuilt

from .programs import RECIPES, Builder

SHAPE = (1, 4, 6, 6)
X, Y, B = relay.var("x", shape=SHAPE), relay.var("y", shape=SHAPE), relay.var("b", shape=(4,))
KERNEL = relay.var("k", shape=(4, 4, 3, 3))
UNARY, BINARY = ("nn.relu", "exp"), ("add", "subtract", "multiply", "maximum")
OTHER = {"nn.relu": "tanh", "exp": "tanh", **dict.fromkeys(BINARY, "minimum")}
DEPTH = 3_000
STEPS = st.lists(
    st.tuples(st.sampled_from([*UNARY, *BINARY, "pair"]), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9
)
"""Programs: each step applies an operator to earlier ones."""


def relu(e: Expr) -> Expr:
    return build("nn.relu", e)


def conv(e: Expr) -> Expr:
    return build("nn.conv2d", e, KERNEL, padding=(1, 1))


def chain(depth: int) -> Expr:
    e: Expr = X
    for _ in range(depth):
        e = relu(e)
    return e


def program(steps) -> Expr:
    made: list[Expr] = [X, Y]
    for name, i, j in steps:
        a, b = made[-1 - i % len(made)], made[-1 - j % len(made)]
        if name == "pair":
            made.append(relay.TupleGetItem(relay.Tuple([a, b]), i % 2))
        else:
            made.append(build(name, a) if name in UNARY else build(name, a, b))
    return made[-1]


def merged(root: Expr) -> Expr:
    """The program with equal nodes as one."""
    known: dict[object, Expr] = {}

    def one(before: Expr, after: Expr) -> Expr:
        parts = [id(c) for c in children(after)]
        if isinstance(after, relay.Call) and after.op.name in COMMUTATIVE:
            parts[1:] = sorted(parts[1:])
        return known.setdefault((type(after), *parts, getattr(after, "index", 0)) if parts else after, after)

    return rebuilt(root, one)


def pattern_of(root: Expr, leaves: Mapping[Expr, DFPattern] = MappingProxyType({})) -> DFPattern:
    """The pattern that says all of a program but which variables it has, or with patterns for them."""
    made: dict[Expr, DFPattern] = {}
    for e in post_order(root):
        if e in leaves:
            made[e] = leaves[e]
        elif isinstance(e, relay.Call):
            made[e] = made[e.op](*[made[a] for a in e.args])
        elif isinstance(e, relay.Tuple):
            made[e] = is_tuple([made[f] for f in e.fields])
        elif isinstance(e, relay.TupleGetItem):
            made[e] = is_tuple_get_item(made[e.tuple_value], e.index)
        else:
            made[e] = is_expr(e) if isinstance(e, Op) else wildcard()
    return made[root]


@given(STEPS)
def test_the_pattern_of_a_program_matches_it(steps):
    e = program(steps)
    assert pattern_of(e).match(e)
    assert pattern_of(e).match(program(steps))


@given(STEPS, st.integers(0, 20))
def test_every_operator_counts(steps, place):
    e = program(steps)
    calls = [c for c in post_order(e) if isinstance(c, relay.Call)]
    if calls:
        at = calls[place % len(calls)]
        other = rebuilt(e, lambda before, after: build(OTHER[at.op.name], *after.args) if before is at else after)
        assert not pattern_of(e).match(other)
        assert not pattern_of(other).match(e)


@given(STEPS)
def test_arguments_are_exchanged_where_operators_commute(steps):
    e = merged(program(steps))
    leaves = {v: is_expr(v) for v in (X, Y)}

    def exchanged(before: Expr, after: Expr) -> Expr:
        turns = isinstance(after, relay.Call) and after.op.name in COMMUTATIVE
        return after.replace(args=after.args[::-1]) if turns else after

    assert pattern_of(e, leaves).match(rebuilt(e, exchanged))


def test_other_operators_do_not_commute():
    pattern = relu_pattern() - is_expr(X)
    assert pattern.match(relu(Y) - X)
    assert not pattern.match(X - relu(Y))


def relu_pattern(inner: DFPattern | None = None) -> DFPattern:
    return is_op("nn.relu")(inner or wildcard())


@pytest.mark.parametrize("swapped", [False, True])
def test_products_and_quotients_associate(swapped):
    a, b, c = (relay.var(n, shape=SHAPE) for n in "abc")
    p, q, r = (is_expr(v) for v in (a, b, c))
    p, q = (q, p) if swapped else (p, q)
    assert ((p * q) / r).match(a * (b / c))
    assert ((p * q) / r).match((b / c) * a)
    assert (p * (q / r)).match((a * b) / c) and ((q / r) * p).match((a * b) / c)
    assert not ((p * q) / r).match(a * (c / b))


def test_a_pattern_at_two_places_is_one_expression():
    p = relu_pattern()
    shared = relu(X)
    assert (p + p).match(shared + shared)
    assert not (p + p).match(relu(X) + relu(X))
    w = wildcard()
    assert (relu_pattern(w) + (w - w)).match(relu(X) + (X - X))  # the failed order leaves nothing behind
    assert (relu_pattern(w) + (w - w)).match((X - X) + relu(X))
    assert not (relu_pattern(w) + (w - w)).match((X - X) + relu(Y))


def test_leaves():
    c = relay.const(1.0)
    assert is_var().match(X) and is_var("x").match(X) and not is_var("y").match(X) and not is_var().match(c)
    assert is_constant().match(c) and not is_constant().match(X)
    assert is_expr(X + c).match(X + relay.const(1.0)) and not is_expr(X + c).match(Y + c)
    assert (is_var() | is_constant()).match(c)
    assert relu_pattern().optional(lambda p: is_op("exp")(p)).match(build("exp", relu(X)))


def test_structures():
    cond = relay.var("c", "bool")
    branch, let = relay.If(cond, X, Y), relay.Let(X, Y, relu(X))
    v = is_var()
    assert is_if(is_var("c"), wildcard(), is_var("y")).match(branch)
    assert not is_if(wildcard(), is_var("y"), wildcard()).match(branch)
    assert is_let(v, wildcard(), relu_pattern(v)).match(let)
    assert not is_let(wildcard(), v, relu_pattern(v)).match(let)
    pair = relay.Tuple([X, Y])
    assert is_tuple(None).match(pair) and not is_tuple([wildcard()]).match(pair)
    assert is_tuple_get_item(is_tuple(None)).match(relay.TupleGetItem(pair, 1))
    assert not is_tuple_get_item(wildcard(), 0).match(relay.TupleGetItem(pair, 1))
    function = relay.Function([X], relu(X), attrs={"Composite": "mine"})
    p = wildcard()
    assert FunctionPattern([p], relu_pattern(p)).has_attr({"Composite": "mine"})(None).match(function(Y))
    assert not FunctionPattern([p, p], wildcard()).match(function)
    assert not FunctionPattern(None, wildcard()).has_attr({"Composite": "other"}).match(function)


def test_operators_with_several_results_are_calls():
    halves = results("split", X, 2, axis=1)
    pattern = is_op("split")(is_var())
    assert pattern.match(halves) and is_expr(halves).match(halves) and not relu_pattern().match(halves)
    assert is_tuple_get_item(pattern, 1).match(halves[1]) and not is_tuple_get_item(pattern, 1).match(halves[0])
    assert list(pattern.partition(halves).args) == [X]
    for bad in (lambda: is_var().match("x"), lambda: is_expr(3), lambda: rewrite(Once(), None)):
        with pytest.raises(ExpressionTypeError, match="no Relay expression"):
            bad()


def test_attributes_and_types():
    e = conv(X)
    call = is_op("nn.conv2d")(None)
    assert call.has_attr({"kernel_layout": "OIHW", "padding": [1, 1, 1, 1], "groups": 1}).match(e)
    assert not call.has_attr({"groups": 2}).match(e) and not call.has_attr({"absent": 2}).match(e)
    assert wildcard().has_attr({"TOpPattern": 0})(None).match(relu(X))
    assert not wildcard().has_attr({"TOpPattern": 0})(None).match(X + Y)
    assert has_shape(SHAPE).match(e) and not has_shape((1, 4, 6)).match(e)
    assert has_dtype("float32", call).match(e) and not has_dtype("int8").match(e)
    assert has_type(relay.TensorType(SHAPE)).match(e) and not has_type(relay.TensorType(SHAPE, "int8")).match(e)
    assert not has_shape(SHAPE).match(relay.Tuple([X]))


def test_dominators():
    path = wildcard().has_attr({"TOpPattern": 0})(wildcard())
    diamond = dominates(is_op("nn.conv2d")(None), path, wildcard() + wildcard())
    c = conv(X)
    leaky = build("nn.leaky_relu", c)
    assert diamond.match(relu(relu(c)) + leaky)
    assert not diamond.match(relu(X) + leaky)  # from somewhere else
    assert not diamond.match(relu(conv(X)) + leaky)  # from two nodes
    assert not diamond.match((c + c) + leaky)  # a way that the path does not take
    assert relu_pattern().dominates(is_op("nn.conv2d")(None)).match(relu(build("nn.bias_add", c, B)))
    assert not relu_pattern().dominates(is_op("nn.conv2d")(None)).match(relu(X))


def test_patterns_that_contain_themselves():
    p = wildcard()
    p.redirect_to(relu_pattern(p) | is_var())
    assert p.match(chain(DEPTH))
    assert not p.match(relu(X + Y))
    p.redirect_to(p)
    assert not p.match(X)


# ---------------------------------------------------------------------------------------------------------------- rewriting


class Same(DFPatternCallback):
    def __init__(self, pattern: DFPattern):
        super().__init__()
        self.pattern = pattern

    def callback(self, pre, post, node_map):
        assert node_map[self.pattern][-1] is post
        return post


class Once(DFPatternCallback):
    """One relu for two."""

    def __init__(self, **how: bool):
        super().__init__(**how)
        self.inner = wildcard()
        self.pattern = relu_pattern(relu_pattern(self.inner))

    def callback(self, pre, post, node_map):
        return relu(node_map[self.inner][0])


class Turned(DFPatternCallback):
    def __init__(self, **how: bool):
        super().__init__(**how)
        self.pattern = wildcard() - wildcard()

    def callback(self, pre, post, node_map):
        return post.args[1] - post.args[0]


PATTERNS = [
    lambda: wildcard(),
    lambda: wildcard()(None),
    lambda: is_constant(),
    lambda: is_tuple_get_item(is_tuple(None)),
    lambda: is_if(wildcard(), wildcard(), wildcard()),
    lambda: is_let(is_var(), wildcard(), wildcard()),
    lambda: FunctionPattern(None, wildcard()),
    lambda: relu_pattern(relu_pattern()),
    lambda: wildcard() + wildcard(),
    lambda: (wildcard() + wildcard()) | relu_pattern(),
    lambda: dominates(relu_pattern(), wildcard(), wildcard() + wildcard()),
]


@given(RECIPES | STEPS, st.sampled_from(PATTERNS))
def test_rewriting_by_the_identity_changes_nothing(given_program, pattern):
    e = program(given_program) if isinstance(given_program, list) else Builder("a", [X]).make(given_program)
    assert rewrite(Same(pattern()), e) is e


@pytest.mark.parametrize("require_type", [False, True])
def test_rewriting_ends_where_nothing_changes(require_type):
    e = Once(require_type=require_type).rewrite(chain(DEPTH))
    relay.assert_structural_equal(e, relu(X))


def test_modules_know_the_types_of_global_names():
    module = relay.IRModule({"f": relay.Function([X], relu(X), relay.TensorType(SHAPE))})
    e = relu(relu(module.get_global_var("f")(Y)))
    once = Once(require_type=True)
    once.pattern = once.pattern.has_shape(SHAPE)
    assert relay.structural_equal(rewrite(once, e, module), e.args[0])


def test_rewriting_once():
    relay.assert_structural_equal(rewrite(Once(rewrite_once=True), chain(4)), chain(2))
    relay.assert_structural_equal(rewrite([Turned(rewrite_once=True), Once()], chain(4) - Y), Y - relu(X))


def test_rewriting_that_does_not_end_is_refused():
    with pytest.raises(NoFixedPoint, match="Observed 100 rewrite passes"):
        rewrite(Turned(), X - Y)


def test_what_is_used_outside_is_not_replaced():
    inner = relu(X)
    e = relay.Tuple([relu(inner), inner])
    assert rewrite(Once(), e) is e
    joined = is_op("nn.relu")(wildcard()) + wildcard()
    e = inner + build("exp", inner)  # the use outside goes into the match
    assert joined.partition(e) is not e


def test_bad_callbacks_and_patterns():
    with pytest.raises(ExpressionError, match="has no pattern"):
        rewrite(DFPatternCallback(), X)
    for make in (
        lambda: is_op("add")(X, Y),
        lambda: is_var() | X,
        lambda: is_if(is_var(), X, Y),
        lambda: is_let(None, X, Y),
    ):
        with pytest.raises(ExpressionTypeError, match="no dataflow pattern"):
            make()
    with pytest.raises(IndexError, match="out of range"):
        is_tuple([is_var()])[1]
    with pytest.raises(ExpressionError, match="is not registered"):
        is_op("ad")
    same = Same(is_var())
    same.callback = lambda pre, post, node_map: 3
    with pytest.raises(ExpressionTypeError, match="no Relay expression"):
        rewrite(same, X)


# ---------------------------------------------------------------------------------------------------------------- partition


def inlined(root: Expr) -> Expr:
    """The program with calls of functions replaced by their bodies."""

    def one(before: Expr, after: Expr) -> Expr:
        if isinstance(after, relay.Call) and isinstance(after.op, relay.Function):
            by = dict(zip(after.op.params, after.args))
            return rebuilt(after.op.body, lambda e, new: by.get(e, new))
        return after

    return rebuilt(root, one)


@given(STEPS, st.sampled_from(PATTERNS))
def test_partition_and_inlining_give_the_program(steps, pattern):
    e = program(steps)
    parted = pattern().partition(e)
    relay.assert_structural_equal(merged(inlined(parted)), merged(e))
    assert not any(free_vars(f) for f in post_order(parted) if isinstance(f, relay.Function))


def only_function(e: Expr) -> relay.Function:
    (found,) = [f for f in post_order(e) if isinstance(f, relay.Function)]
    return found


def test_functions_of_matches():
    pattern = relu_pattern(is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard()))
    e = relu(build("nn.bias_add", conv(X), B))
    parted = pattern.partition(e, {"Composite": "mine.conv"})
    assert list(parted.args) == [X, KERNEL, B]
    assert dict(parted.op.attrs) == {
        "PartitionedFromPattern": "nn.conv2d_nn.bias_add_nn.relu_",
        "Composite": "mine.conv",
    }
    assert [p.name_hint for p in parted.op.params] == [f"FunctionVar_0_{i}" for i in range(3)]
    assert pattern.partition(parted) is parted
    assert pattern.partition(e, check=lambda e: False) is e
    twice = pattern.partition(relu(build("nn.bias_add", conv(e), B)))
    assert len([f for f in post_order(twice) if isinstance(f, relay.Function)]) == 2


def test_constants_stay_where_the_pattern_asks_for_them():
    e = X + relay.const(1.0)
    assert len((wildcard() + is_constant()).partition(e).args) == 1
    assert len((wildcard() + (is_var() | is_constant())).partition(e).args) == 1
    assert len((wildcard() + wildcard()).partition(e).args) == 2


def test_names_of_structures():
    v = relay.var("v", shape=SHAPE)
    function = relay.Function([v], relu(v))
    p = wildcard()
    called = FunctionPattern([p], relu_pattern(p))(wildcard()) + wildcard()
    assert only_function_named(called.partition(function(X) + Y)) == "nn.relu_FunctionCall_add_"
    item = is_tuple_get_item(is_tuple(None), 1)
    parted = item.partition(relay.TupleGetItem(relay.Tuple([X, Y]), 1))
    assert only_function(parted).attrs["PartitionedFromPattern"] == "Tuple_TupleGetItem1_"
    assert FunctionPattern(None, wildcard()).partition(function) is function


def only_function_named(e: Expr) -> str:
    assert isinstance(e, relay.Call) and isinstance(e.op, relay.Function)
    name: str = e.op.attrs["PartitionedFromPattern"]
    return name


def test_inputs_do_not_leave_the_let_that_defines_them():
    v = relay.var("v", shape=SHAPE)
    pattern = is_let(is_var(), wildcard(), wildcard() + wildcard())
    inside = relay.Let(v, X, relu(v) + Y)
    assert pattern.partition(inside) is inside
    parted = pattern.partition(relay.Let(v, X, v + Y))
    assert list(parted.args) == [X, Y]


def test_partition_of_deep_programs():
    parted = relu_pattern(relu_pattern()).partition(chain(DEPTH))
    assert len([f for f in post_order(parted) if isinstance(f, relay.Function)]) == DEPTH // 2


def test_texts():
    w = relu_pattern(is_var("x"))
    assert str(wildcard() + is_constant()) == "CallPatternNode(Op(add), [*, ConstantPattern()])"
    assert str(w | w) == "AltPattern((id 0): CallPatternNode(Op(nn.relu), [VarPattern(x)]) | (id 0))"
    assert str(is_tuple(None)) == "TuplePattern(*)"
