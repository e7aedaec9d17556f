"""Every operator of Relay on its samples: its type rule, its reference and its expression say the same."""

from __future__ import annotations

import pytest

from compassc.relay import declared
from compassc.relay.operators import OPERATORS
from tests.choosing import some
from tests.relay.trying_operators import built, cases

declared.load()
SAMPLED = [name for name, op in OPERATORS.items() if op.samples]
COMPUTED = [name for name in SAMPLED if OPERATORS[name].compute]
TOGETHER = 12


@pytest.mark.parametrize("name", SAMPLED)
def test_the_reference_gives_what_the_type_says(name):
    for case in some(cases(OPERATORS[name])):
        for found, wanted in some(zip(case.reference(), case.fields(), strict=True)):
            assert str(found.dtype) == wanted.dtype, case
            assert all(d == w for d, w in zip(found.shape, wanted.shape, strict=True) if isinstance(w, int)), case


@pytest.mark.parametrize(
    "names", [COMPUTED[n : n + TOGETHER] for n in range(0, len(COMPUTED), TOGETHER)], ids=lambda n: n[0]
)
def test_the_expression_computes_what_the_reference_does(names):
    built([case for name in names for case in cases(OPERATORS[name])])
