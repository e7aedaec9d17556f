"""Structural equality and hashes of Relay programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compassc import relay, te
from compassc.relay.equal import get_first_structural_mismatch
from compassc.relay.expr import Expr
from compassc.relay.visit import children, post_order, with_children

from .programs import RECIPES, Builder, twice

FREE = [relay.var("x", shape=(2,)), relay.Var("y")]
F, G = relay.GlobalVar("f"), relay.GlobalVar("g")
DEPTH = 3_000


def same(a: object, b: object, map_free_vars: bool = False) -> bool:
    """Equality from both sides, which equal hashes follow from."""
    there, back = relay.structural_equal(a, b, map_free_vars), relay.structural_equal(b, a, map_free_vars)
    assert there == back
    if there:
        assert relay.structural_hash(a, map_free_vars) == relay.structural_hash(b, map_free_vars)
    return there


@given(RECIPES)
def test_names_of_local_variables_do_not_count(recipe):
    first, second = twice(recipe, FREE)
    assert same(first, first)
    assert same(first, second)
    relay.assert_structural_equal(first, second)


def changed_at(root: Expr, position: int) -> Expr:
    """The program with another constant at one place."""
    made: dict[int, Expr] = {}
    for i, e in enumerate(post_order(root)):
        plain = with_children(e, [made[id(c)] for c in children(e)])
        takes = isinstance(e, (relay.Call, relay.Tuple, relay.Constant, relay.If, relay.TupleGetItem))
        made[id(e)] = relay.const(12345.0) if i == position and takes else plain
    return made[id(root)]


@given(RECIPES, st.integers(0, 20))
def test_every_place_counts(recipe, place):
    program = Builder("a", FREE).make(recipe)
    count = len(list(post_order(program)))
    for position in {place % count, count - 1}:
        other = changed_at(program, position)
        assert (other is program) == same(program, other)
        if other is not program:
            assert get_first_structural_mismatch(program, other) is not None
            with pytest.raises(ValueError, match="not structurally equal at <root>"):
                relay.assert_structural_equal(program, other)


@given(RECIPES)
def test_free_variables_are_themselves_or_mapped(recipe):
    others = [relay.Var(v.name_hint, v.type_annotation) for v in FREE]
    first = Builder("a", FREE)
    one, two = first.make(recipe), Builder("b", others, first.globals).make(recipe)
    used = any(v in FREE for v in post_order(one))
    assert same(one, two) == (not used)
    assert same(one, two, map_free_vars=True)


def test_sharing_counts_for_calls_and_not_for_items():
    x = relay.Var("x")
    call = F(x)
    assert not same(relay.Tuple([call, call]), relay.Tuple([F(x), F(x)]))
    item = relay.TupleGetItem(x, 0)
    assert same(relay.Tuple([item, item]), relay.Tuple([relay.TupleGetItem(x, 0), relay.TupleGetItem(x, 0)]))
    assert same(relay.Tuple([relay.Tuple([])] * 2), relay.Tuple([relay.Tuple([]), relay.Tuple([])]))


def test_variables_are_paired_one_to_one():
    x, y, z, w = (relay.Var(n) for n in "xyzw")
    assert same(relay.Function([x, y], F(x, y)), relay.Function([z, w], F(z, w)))
    assert not same(relay.Function([x, y], F(x, y)), relay.Function([z, w], F(w, z)))
    assert not same(relay.Function([x, y], F(x, y)), relay.Function([z, w], F(z, z)))
    assert not same(relay.Function([x], F(x, y)), relay.Function([z], F(z, z)))
    assert not same(F(x, y), F(z, z), map_free_vars=True)


def test_annotations_results_and_attributes_count():
    a, b = relay.var("x", "int8"), relay.var("x", "int32")
    assert not same(relay.Function([a], a), relay.Function([b], b))
    x = relay.Var("x")
    assert not same(relay.Function([x], x), relay.Function([x], x, relay.scalar_type("int8")))
    noted = relay.Function([x], x, attrs={"a": 1, "b": 2})
    assert same(noted, relay.Function([x], x, attrs={"b": 2, "a": 1}))
    assert not same(noted, relay.Function([x], x))
    assert not same(a, b, map_free_vars=True)


def test_places_and_found_types_do_not_count():
    x = relay.Var("x")
    typed = F(x).typed(relay.scalar_type("int8"))
    assert same(typed, F(x))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.float32(0.0), np.float32(-0.0)),
        (np.int32(1), np.int64(1)),
        (np.zeros((1, 2), "int8"), np.zeros((2, 1), "int8")),
    ],
)
def test_constants_are_equal_by_bits(a, b):
    assert same(relay.const(a, a.dtype.name), relay.const(a.copy(), a.dtype.name))
    assert not same(relay.const(a, a.dtype.name), relay.const(b, b.dtype.name))
    nan = np.float32("nan")
    assert same(relay.const(nan), relay.const(nan))


def test_types():
    a, b, c, d = (relay.TypeVar(n) for n in "abcd")
    n, m = te.size_var("n"), te.size_var("n")
    assert relay.FuncType([a], b, [a, b]) == relay.FuncType([c], d, [c, d])
    assert relay.FuncType([a], b, [a, b]) != relay.FuncType([c], d, [d, c])
    identity = relay.FuncType([a], a, [a])
    assert same(relay.TupleType([identity, identity]), relay.TupleType([relay.FuncType([v], v, [v]) for v in (c, d)]))
    assert a != c
    assert same(a, c, map_free_vars=True)
    assert relay.TensorType((relay.Any(), 2)) == relay.TensorType((relay.Any(), 2)) != relay.TensorType((3, 2))
    assert relay.TensorType((n,)) == relay.TensorType((n,)) != relay.TensorType((m,))
    x, y = relay.var("x", shape=(n, n)), relay.var("y", shape=(m, m))
    assert same(relay.Function([x], x), relay.Function([y], y))
    assert relay.IncompleteType() != relay.IncompleteType()
    assert len({relay.scalar_type("int8"), relay.TensorType((), "int8"), relay.RefType(relay.scalar_type("int8"))}) == 2


def test_globals_are_equal_to_themselves_only():
    assert same(F, F)
    assert not same(F, relay.GlobalVar("f"))
    assert same(F, relay.GlobalVar("f"), map_free_vars=True)
    assert not same(F(), G())


def deep(kind: str) -> Expr:
    x: Expr = relay.Var("x")
    e = relay.Tuple([])
    for i in range(DEPTH):
        if kind == "call":
            e = F(e)
        elif kind == "let":
            e = relay.Let(relay.Var(f"v{i}"), F(e) if i % 100 == 0 else x, e)
        elif kind == "function":
            e = relay.Function([], e)
        elif kind == "if":
            e = relay.If(x, e, x)
        else:
            e = relay.Tuple([e, e])
    return relay.Function([x], e)


@pytest.mark.parametrize("kind", ["call", "let", "function", "if", "doubled"])
def test_depth_is_no_matter(kind):
    assert same(deep(kind), deep(kind))
    assert not same(deep(kind), deep("call" if kind != "call" else "let"))
