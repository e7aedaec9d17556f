"""Programs of one call of each operator: their text parses to them, and inference finds the type that the rule gives."""

from __future__ import annotations

import pytest

from compassc.relay import declared
from compassc.relay.equal import structural_equal
from compassc.relay.expr import Call, Function, Var
from compassc.relay.module import IRModule
from compassc.relay.operators import OPERATORS
from compassc.relay.parser import parse_expr
from compassc.relay.transform import InferType
from tests.choosing import some
from tests.relay.trying_operators import cases, type_of

declared.load()


@pytest.mark.parametrize("name", [name for name, op in OPERATORS.items() if op.samples])
def test_text_and_type(name):
    for case in some(cases(OPERATORS[name])[:1]):
        params = [Var(f"x{n}", type_of(a)) for n, a in enumerate(case.arrays)]
        function = Function(params, Call(case.op, params, case.attrs))
        assert structural_equal(function, parse_expr(function.astext()))
        typed = InferType()(IRModule.from_expr(function))["main"]
        assert str(typed.ret_type) == str(case.type)
