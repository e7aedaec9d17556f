"""Python's operators of expressions, and the names that are given out once."""

from __future__ import annotations

import operator
from copy import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compassc.ir import exprs as E
from compassc.ir.dtypes import FLOAT32, INT32, dtype
from compassc.ir.names import NamePool
from compassc.ir.printer import print_expr

N, M, X = E.Var("n", INT32), E.Var("m", INT32), E.Var("x", FLOAT32)
MADE = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv,
        "floormod": operator.mod, "bitand": operator.and_, "bitor": operator.or_, "bitxor": operator.xor,
        "shl": operator.lshift, "shr": operator.rshift, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
        "ge": operator.ge}  # fmt: skip


@pytest.mark.parametrize("op", MADE)
def test_operators_make_nodes_and_fold_constants(op):
    made = MADE[op](N, 3)
    assert type(made) is E.Binary and (made.op, made.a, made.b.value) == (op, N, 3)
    assert repr(made) == print_expr(made)
    numbers = E.IntImm(INT32, 13), E.IntImm(INT32, 3)
    assert MADE[op](*numbers).value == MADE[op](13, 3)
    reflected = MADE[op](3, N)
    assert {type(x) for x in (reflected.a, reflected.b)} == {E.Var, E.IntImm}


def test_operands_get_one_type():
    assert [str(e.dtype) for e in (N + X, N + E.Var("k", dtype("int64")), N < X, -X, N.astype("int8"))] == [
        "float32", "int64", "bool", "float32", "int8"]  # fmt: skip
    assert (N + X).a.value is N


def test_expressions_are_equal_to_themselves_only():
    assert N == N and N != M and not N == E.Var("n", INT32)  # noqa: PLR0124, SIM201
    assert {N: 1, M: 2}[N] == 1 and N in [M, N] and (N, M) == (N, M) and (N, M) != (M, N)
    assert (N == M).as_expr().op == "eq" and (N != 3).as_expr().op == "ne"
    with pytest.raises(ValueError, match="no truth value"):
        bool(N + 1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "a_1", "a_2", "b_1_1"])), st.sets(st.sampled_from(["a", "b_1"])))
def test_each_name_is_given_out_once(wanted, taken):
    pool = NamePool(taken)
    given_out = [pool.take(name) for name in wanted]
    assert len({*given_out, *taken}) == len(given_out) + len(taken)
    assert all(got.startswith(name) for got, name in zip(given_out, wanted))
    other = copy(pool)
    assert other.take("a") == pool.take("a") != pool.take("a")
