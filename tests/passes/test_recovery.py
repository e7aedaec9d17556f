"""After an error the passes go on without what is wrong, and without what needs it."""

import pytest

from compass_core.errors import CompassError, flat
from compassc import passes
from compassc.dsl import parse
from compassc.dsl import script as S
from compassc.ir import stmts
from compassc.ir.visit import walk_stmts


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    x = n + 1
    y = x * 2
    if y > 3:
        z = y + n
        a[0] = z
    w = n + 3
    a[1] = w
    a[2] = x


def refuse(names):
    """A pass that refuses the first definition of one of these variables."""

    def run(module):
        for s in walk_stmts(module.entry_func.body):
            if type(s) is stmts.Let and s.var.name in names:
                raise CompassError(f"no {s.var.name}", s.span)
        return module

    return run


def errors_of(monkeypatch, **refused):
    for name, names in refused.items():
        monkeypatch.setattr(f"compassc.passes.{name}.run", refuse(names))
    with pytest.raises(CompassError) as caught:
        passes.lower(parse(k, "X2_1204"))
    return [e.message for e in flat(caught.value)]


def test_independent_errors_of_one_pass(monkeypatch):
    assert errors_of(monkeypatch, simplify=("x", "w")) == ["no x", "no w"]


def test_what_needs_something_wrong_is_not_reported(monkeypatch):
    assert errors_of(monkeypatch, simplify=("x", "y", "z")) == ["no x"]


def test_later_passes_and_those_of_legalisation_are_asked(monkeypatch):
    assert errors_of(monkeypatch, simplify=("z",), lower_vector_operators=("w",)) == ["no z", "no w"]


def test_a_pass_that_fails_on_the_rest_says_nothing(monkeypatch):
    monkeypatch.setattr("compassc.passes.lower_vector_operators.run", lambda module: 1 // 0)
    assert errors_of(monkeypatch, simplify=("w",)) == ["no w"]
