"""Simplify keeps values, wrap-around included, and reaches its normal form at once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compassc.analysis.arith import Arith
from compassc.analysis.interpret import evaluate
from compassc.analysis.simplify import Simplifier
from compassc.analysis.structure import Interner
from compassc.ir import dtype
from compassc.ir.exprs import Binary, Cast, IntImm, Select, Unary, Var
from compassc.ir.printer import print_expr
from compassc.ir.visit import walk_exprs

INT = dtype("int32")
VARS = {t: [Var(f"{t[0]}{t[-2:]}_{i}", dtype(t)) for i in range(3)] for t in ("int32", "int8", "uint8", "uint32")}
SIZE = Var("size", INT, True)
SMALL = Var("small", INT)
EDGES = {"int32": (-(2**31), 2**31 - 1), "int8": (-128, 127), "uint8": (0, 255), "uint32": (0, 2**32 - 1)}
ARITHMETIC = "add sub mul floordiv floormod min max bitand bitor shl shr div mod".split()
COMPARISONS = "eq ne lt le gt ge".split()


def constants(t):
    low, high = EDGES[t]
    small = st.integers(max(low, -9), 17)
    return st.one_of(small, st.sampled_from((low, high, 64, 100))).map(lambda v: IntImm(dtype(t), v))


def leaves(t):
    variables = VARS[t] + ([SIZE, SMALL] if t == "int32" else [])
    return st.one_of(constants(t), st.sampled_from(variables))


def binaries(t, children):
    amount = st.integers(0, 4).map(lambda v: IntImm(dtype(t), v))
    plain = st.builds(Binary, st.sampled_from([op for op in ARITHMETIC if op[:2] != "sh"]), children, children)
    return st.one_of(plain, plain, plain, st.builds(Binary, st.sampled_from(("shl", "shr")), children, amount))


def conditions(children):
    compared = st.builds(Binary, st.sampled_from(COMPARISONS), children, children)
    both = st.builds(Binary, st.sampled_from(("and", "or")), compared, compared)
    return st.one_of(compared, both, compared.map(lambda c: Unary("not", c)))


def values(t):
    def extend(children):
        select = st.builds(Select, conditions(children), children, children)
        return st.one_of(binaries(t, children), binaries(t, children), select)

    return st.recursive(leaves(t), extend, max_leaves=8)


EXPRESSIONS = st.one_of(*[values(t) for t in VARS], values("int32").map(lambda e: Cast(dtype("int8"), e)))
ROOTS = st.one_of(EXPRESSIONS, conditions(values("int32")), conditions(values("uint8")))


def _all_values():
    any_of = {v: st.one_of(st.integers(-5, 20), st.integers(*EDGES[t])) for t in VARS for v in VARS[t]}
    any_of.update({v: st.integers(0, 9) for t in ("uint8", "uint32") for v in VARS[t][:1]})
    any_of = {v: s.map(lambda x, v=v: max(min(x, v.dtype.range()[1]), v.dtype.range()[0])) for v, s in any_of.items()}
    any_of[SIZE] = st.one_of(st.integers(0, 20), st.integers(0, 2**31 - 1))
    any_of[SMALL] = st.integers(2, 9)
    return any_of


VALUES = _all_values()
IN_CONTEXT = frozenset((SIZE, VARS["int32"][0]))
"""Variables of what is assumed."""


@st.composite
def with_values(draw, expressions):
    """An expression, and values of its variables and of those in the context."""
    e = draw(expressions)
    names = IN_CONTEXT | {x for x in walk_exprs(e) if isinstance(x, Var)}
    return e, {v: draw(values) for v, values in VALUES.items() if v in names}


def context():
    arith = Arith()
    arith.bind(SMALL, 2, 9)
    arith.assume(Binary("lt", VARS["int32"][0], SIZE))
    return arith


def simplified(e):
    return Simplifier(context()).expr(e)


@settings(max_examples=200, deadline=None)
@given(with_values(ROOTS))
def test_values_are_kept(drawn):
    e, env = drawn
    if env[VARS["int32"][0]] >= env[SIZE]:
        env[SIZE] = 2**31 - 1
        env[VARS["int32"][0]] = min(env[VARS["int32"][0]], 2**31 - 2)
    expected = evaluate(e, env)
    if expected is None:  # C leaves it open
        return
    assert evaluate(simplified(e), env) == expected, print_expr(simplified(e))


@settings(max_examples=120, deadline=None)
@given(ROOTS)
def test_simplifying_again_changes_nothing(e):
    once = simplified(e)
    again = simplified(once)
    assert Interner().same(once, again) or print_expr(once) == print_expr(again)


@settings(max_examples=120, deadline=None)
@given(with_values(EXPRESSIONS))
def test_values_lie_in_their_range(drawn):
    e, env = drawn
    arith = Arith()
    arith.bind(SMALL, 2, 9)
    value = evaluate(e, env)
    if value is None:
        return
    low, high = arith.range_of(e)
    assert low <= value <= high


P = 'p: T.ptr("int32", "global"), a: T.int32, b: T.int32, u: T.uint8, f: T.float32'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("((a + 0) * 1)", "a"),
        ("((3 + a) + b)", "((a + b) + 3)"),
        ("((a + b) - a)", "b"),
        ("((a - b) + (b - a))", "0"),
        ("(a - -3)", "(a + 3)"),
        ("(b - (a - 2))", "((b + 2) - a)"),
        ("((a + 3) * 4)", "((a * 4) + 12)"),
        ("(0 - a)", "(a * -1)"),
        ("(2 * a)", "(a * 2)"),
        ("((7 // 2) + (-7 // 2))", "-1"),
        ("(2147483647 + 1)", "-2147483648"),
        ("T.min(8, a)", "T.min(a, 8)"),
        ("T.min(T.min(a, 9), 8)", "T.min(a, 8)"),
        ('S.min(a, b, dtype="int32")', "T.min(a, b)"),
        ("(a << 0)", "a"),
        ("((a % 8) // 8)", "0"),
        ("T.div(T.truncmod(a, 3), 3)", "0"),
        ("T.truncmod(T.truncmod(a, 3), 3)", "T.truncmod(a, 3)"),
        ("((a % 8) % 16)", "(a % 8)"),
        ("((((a % 8) * 8) + (b % 8)) // 8)", "(a % 8)"),
        ("((((a % 8) * 8) + (b % 8)) % 8)", "(b % 8)"),
        ("((((b * 64) + ((a // 8) * 8)) + (a % 8)) + 1)", "(((b * 64) + a) + 1)"),
        ("(((((a // 8) // 8) * 64) + (((a // 8) % 8) * 8)) + (a % 8))", "a"),
        ("((T.truncmod(a, 3) * 2) + (T.div(a, 3) * 6))", "(a * 2)"),
        ("T.select((3 < 4), a, b)", "a"),
    ],
)
def test_values(check, before, after):
    check("Simplify", P, f"p[0] = {before}", f"p[0] = {after}")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(a > b)", "(b < a)"),
        ("(a >= b)", "(b <= a)"),
        ("(f > T.float32(0.0))", "(T.float32(0.0) < f)"),
        ("(not (a < b))", "(b <= a)"),
        ("(not (a == b))", "(a != b)"),
        ("((a & 512) != 0)", "(0 < (a & 512))"),
        ("(u != T.uint8(0))", "(T.uint8(0) < u)"),
        ("((a == b) and True)", "(a == b)"),
        ("(((a % 8) + 1) < ((b % 8) + 1))", "((a % 8) < (b % 8))"),
    ],
)
def test_conditions(check, before, after):
    body = "if {}:\n    p[0] = 1"
    check("Simplify", P, body.format(before), body.format(after))


@pytest.mark.parametrize(
    "value",
    [
        "((a * 8) // 8)",
        "T.min(a, (a + 1))",
        "T.div(a, 3)",
        "T.div(a, b)",
        "((a * b) - b)",
        "(a - b)",
        "(((a // 8) * 4) + (a % 8))",
    ],
)
def test_values_that_must_stay(check, value):
    check("Simplify", P, f"p[0] = {value}")


def test_conditions_that_must_stay(check):
    for cond in ("((a + 1) < (b + 1))", "(not (f < T.float32(0.0)))", "(a < (a + 1))", "(p[0] != 0)"):
        check("Simplify", P, f"if {cond}:\n    p[0] = 1")


def test_loop_ranges_decide_conditions(check):
    check(
        "Simplify",
        P,
        """
        for i in T.serial(0, a, 1):
            for j in T.serial(0, 8, 1):
                if (i < a):
                    p[((j + (i * 8)) // 1)] = T.min(j, 8)
                if (j >= 8):
                    p[0] = 1
                if ((j + 1) <= b):
                    if (j < b):
                        p[j] = 2
        """,
        """
        for i in T.serial(0, a, 1):
            for j in T.serial(0, 8, 1):
                p[(j + (i * 8))] = j
                if ((j + 1) <= b):
                    p[j] = 2
        """,
    )


def test_loops_that_run_once_or_never(check):
    check(
        "Simplify",
        P,
        """
        for i in T.serial(a, a, 1):
            p[i] = 1
        for j in T.serial(3, 4, 1):
            p[j] = a
        while (3 < 2):
            p[0] = 1
        """,
        "p[3] = a",
    )


def test_loops_that_must_stay(check):
    check("Simplify", P, "for t in T.tec(0, 1, 1):\n    p[t] = 1")
    check("Simplify", P, "for t in T.threadIdx_x(0, 1, 1):\n    p[t] = 1")
    check("Simplify", P, "for i in T.serial(0, 1, 1):\n    break")
    check("Simplify", P, "for i in T.serial(a, (a + 1), 1):\n    p[i] = 1")


def test_nothing_is_known_of_changing_variables(check):
    check(
        "Simplify",
        P,
        """
        c: T.int32 = 3
        if (a < c):
            c = (c - b)
            a = b
            if (a < c):
                p[c] = (c - 3)
        """,
    )


def test_masks_of_all_lanes_vanish(check):
    check(
        "Simplify",
        'v: T.ptr("int32x8", "global"), x: T.int32x8',
        'v[0] = S.vadd(x, x, dtype="int32x8", mask=T.tail(8, 8), r=x)\n'
        'v[1] = S.vadd(x, x, dtype="int32x8", mask=T.tail(3, 8), r=x)',
        'v[0] = S.vadd(x, x, dtype="int32x8")\nv[1] = S.vadd(x, x, dtype="int32x8", mask=T.mask("3T5F"), r=x)',
    )
