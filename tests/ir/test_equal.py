"""Structural equality, its hashes and places, and nodes as JSON."""

from __future__ import annotations

import json

import pytest

from compass_core.errors import CompassError
from compassc import tir
from compassc.compat.ir_functions import load_json, save_json
from compassc.ir import assert_structural_equal, get_first_structural_mismatch, structural_equal, structural_hash
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import FLOAT32, INT32, pointer_type
from tests.ir.test_nodes import CLASSES, sample
from tests.tir.test_steps import chain, matmul

X, Y = E.Var("x", INT32), E.Var("y", INT32)
ONE = E.IntImm(INT32, 1)


def loop(var: E.Var, value: E.Expr) -> S.For:
    return S.For(var, "serial", E.IntImm(INT32, 0), E.IntImm(INT32, 8), ONE, (S.Evaluate(value),))


def test_free_variables_are_themselves_unless_they_are_mapped():
    one, other = E.Binary("add", X, X), E.Binary("add", Y, Y)
    assert structural_equal(one, one) and not structural_equal(one, other)
    assert structural_equal(one, other, map_free_vars=True)
    assert not structural_equal(one, E.Binary("add", X, Y), map_free_vars=True)
    assert structural_hash(one) != structural_hash(other)
    assert structural_hash(one, map_free_vars=True) == structural_hash(other, map_free_vars=True)


def test_what_is_defined_is_paired():
    one, other = loop(X, E.Binary("add", X, ONE)), loop(Y, E.Binary("add", Y, ONE))
    assert structural_equal(one, other) and structural_hash(one) == structural_hash(other)
    assert get_first_structural_mismatch(one, loop(Y, E.Binary("add", X, ONE))) == ("<root>.body[0].value.a",) * 2
    assert not structural_equal(loop(X, X), loop(Y, ONE))


def test_numbers_may_be_a_little_apart():
    def number(value: float) -> E.FloatImm:
        return E.FloatImm(FLOAT32, value)

    assert structural_equal(number(1.0), number(1.0 + 1e-10)) and not structural_equal(number(1.0), number(1.001))
    assert structural_equal(number(float("nan")), number(float("nan")))
    assert structural_equal(number(float("inf")), number(float("inf")))
    assert structural_hash(number(1.0)) == structural_hash(number(1.0 + 1e-10))
    for a, b in ((1.0, 1.0 + 1e-10), (0.0, -0.0)):
        assert structural_equal(number(a), number(a), exact=True) and not structural_equal(
            number(a), number(b), exact=True
        )


def test_the_mismatch_says_where_and_what():
    assert structural_equal(chain(), chain()) and structural_hash(chain()) == structural_hash(chain())
    with pytest.raises(ValueError, match=r"not structurally equal at <root>\.body\[0\]\.buffer\.shape\[0\]\.value"):
        assert_structural_equal(chain(), chain(n=16))
    s = tir.Schedule(chain())
    s.annotate(s.get_loops("B")[0], "k", 1)
    assert "annotations" in get_first_structural_mismatch(chain(), s.mod.entry_func)[0]


def test_names_of_functions_count_and_those_of_blocks_do_not():
    def renamed(body: S.Body) -> S.Body:
        made = tuple(s.map(lambda e: e, renamed) for s in body)
        return tuple(s.replace(name_hint=f"{s.name_hint}_x") if isinstance(s, S.Block) else s for s in made)

    f = matmul()
    other = f.replace(body=renamed(f.body))
    assert structural_equal(f, other) and structural_hash(f) == structural_hash(other)
    assert not structural_equal(f, f.replace(name="other"))


def buffer(name: str, size: E.Expr, scope: str = "global") -> E.Buffer:
    return E.Buffer(E.Var(name, pointer_type(FLOAT32, scope)), FLOAT32, (size,))


def test_buffers_are_paired_with_the_variables_of_their_shapes():
    a, b, c = buffer("a", X), buffer("b", Y), buffer("c", Y, "lsram")

    def copy(to: E.Buffer, of: E.Buffer) -> S.Body:
        return (S.BufferStore(to, (ONE,), E.BufferLoad(of, (ONE,)), None),)

    one, other = copy(a, a), copy(b, b)
    assert structural_equal(one, other) and structural_hash(one) == structural_hash(other)
    assert not structural_equal(one, copy(b, a)) and not structural_equal(copy(b, a), one)
    assert not structural_equal(one, copy(c, c))
    assert structural_equal(copy(a, b), copy(b, a))
    assert not structural_equal((S.Evaluate(X), *one), (S.Evaluate(Y), *other))
    assert structural_equal((*one, S.Evaluate(X)), (*other, S.Evaluate(Y)))


def test_the_order_of_annotations_does_not_count():
    one = loop(X, X).replace(annotations=(("a", 1), ("b", 2.0)))
    other = one.replace(annotations=(("b", 2.0), ("a", 1)))
    assert structural_equal(one, other) and structural_hash(one) == structural_hash(other)
    for notes in ((("a", 1),), (("a", 1), ("b", 3.0)), (("a", 1), ("b", 2.0), ("c", 3))):
        assert not structural_equal(one, one.replace(annotations=notes))
        assert not structural_equal(one.replace(annotations=notes), one)


@pytest.mark.parametrize("cls", [c for c in CLASSES if c not in (S.PrimFunc, S.IRModule)])
def test_all_nodes_are_saved(cls):
    made = sample(cls)
    assert structural_equal(load_json(save_json(made)), made, map_free_vars=True)


def test_what_is_shared_stays_shared():
    shared = E.Binary("mul", X, ONE)
    again = load_json(save_json(E.Binary("add", shared, shared)))
    assert again.a is again.b
    body = chain().body
    assert structural_equal(load_json(save_json(body)), body, map_free_vars=True)


def test_functions_in_lists_are_saved():
    f = chain().with_attr("note", 1)
    (again,) = load_json(save_json([f]))
    assert structural_equal(again, f) and again.attrs["note"] == 1 and again.attrs["global_symbol"] == f.name


def test_what_is_no_saved_node_is_refused():
    text = json.loads(save_json(ONE))
    text["nodes"][0][0] = "Nothing"
    with pytest.raises(CompassError, match="there is no node of the type 'Nothing'"):
        load_json(json.dumps(text))
    with pytest.raises(CompassError, match="a function cannot be saved"):
        save_json(loop(X, X).replace(annotations=(("f", chain),)))
    with pytest.raises(CompassError, match="this is no saved IR"):
        load_json('{"format": "other"}')
