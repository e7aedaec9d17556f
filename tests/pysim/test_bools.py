"""Which operators of a kernel PySim takes for arithmetic on bools: those that may be, and no more."""

import ast

import pytest

from compassc.dsl import script as S
from compassc.pysim.bools import Bools

BODY = """
v = S.vadd(a, b) + x[3]
w, i = S.cast(v, "i32"), n
less = v < w
lane = less[2]
q = x.as_ptr("i8")
both = S.vzip(less, less)
k = S.max(n, i) if lane else n
"""


def bools() -> Bools:
    found = Bools(lambda e: getattr(S, e.attr, None) if isinstance(e, ast.Attribute) else None, set())
    found.learn(ast.parse(BODY).body, ["flag"])
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v", False),
        ("w * v + S.vmul(v, w)", False),
        ("q[i]", False),
        ("k", False),
        ("S.i32(less[1])", False),
        ("S.vload(x, mask=less)", False),
        ("S.get_local_id()", False),
        ("less", True),
        ("lane", True),
        ("both", True),
        ("flag", True),
        ("n < 3", True),
        ("not n", True),
        ("x.is_nullptr", True),
        ("S.vall(less)", True),
        ("S.isnan(h)", True),
        ("(v > w) & less", True),
        ("helper(n)", True),
    ],
)
def test_may_be_a_bool(text: str, expected: bool) -> None:
    assert bools().may_be(ast.parse(text, mode="eval").body) is expected
