"""Traces of schedules that somebody else wrote, as Python text: names in them are texts, whatever they hold."""

from __future__ import annotations

import ast
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compassc.te.schedule.trace import FORMAT, Trace
from compassc.tir.index_map import IndexMap
from tests.words import CHARACTERS

EVIL = [
    '"] + [print(1)] + s["',
    "'); import os; ('",
    "x\nimport os",
    "\\",
    '"""',
    "\u2028import os",
    "{0.__class__}",
    "\ud800",
]
TEXT = st.sampled_from(EVIL) | st.text(CHARACTERS, max_size=8) | st.sampled_from(["C", "split", "factor", "i"])
PLAIN = TEXT | st.integers() | st.floats() | st.booleans() | st.none()
KINDS = st.sampled_from(["axis", "stage", "tensor", "thread", "intrin", "var", "const", "cast", "expr", "other"])
TREE = st.recursive(
    PLAIN, lambda some: st.lists(some, max_size=3) | st.dictionaries(KINDS | TEXT, some, max_size=2), max_leaves=6
)
REFERENCE = st.one_of(
    st.builds(lambda a, b: {"axis": [a, b]}, TEXT, TEXT),
    st.builds(lambda a: {"var": [a]}, TEXT),
    st.builds(lambda a: {"intrin": a}, TEXT),
    st.builds(lambda a, b: {"thread": [a, 0, b]}, TEXT, st.integers(1, 8)),
    st.builds(lambda a, b: {"cast": [a, {"axis": [b, b]}]}, TEXT, TEXT),
    st.builds(lambda a: {"const": [1, a]}, TEXT),
    TREE,
)
ROW = st.tuples(TEXT, TEXT, st.lists(REFERENCE, max_size=3), st.dictionaries(TEXT, REFERENCE, max_size=2))
CALLED = {"s", "te"}


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, max_size=3))
@example([("C", "split", [{"axis": ["C", EVIL[0]]}], {"factor": EVIL[2]})])
@example([(EVIL[0], "split", [], {})])
@example([("C", "x); import os; (", [], {})])
@example([("C", "split", [], {"factor=1); import os; print(x": 1})])
@example([("C", "split", [{"cast": [EVIL[0], {"axis": ["C", "i"]}]}], {})])
def test_a_trace_is_python_text_of_its_own_steps_alone(rows):
    """One function of calls on `s`, one for each step, in which nothing but `s` and `te` is named."""
    text = json.dumps({"format": FORMAT, "steps": rows})
    try:
        trace = Trace.from_json(text)
    except CompassError:
        return
    shown = trace.as_python()
    shown.encode()
    try:
        tree = ast.parse(shown)
    except SyntaxError:  # a step that no schedule has: a keyword as a name
        return
    first, function = tree.body
    assert isinstance(first, ast.ImportFrom) and isinstance(function, ast.FunctionDef)
    steps = [one for one in function.body if not isinstance(one, ast.Pass)]
    assert len(steps) == len(rows) and all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) for s in steps)
    names = {n.id for step in steps for n in ast.walk(step) if isinstance(n, ast.Name)}
    assert names <= CALLED
    calls = [n.func for step in steps for n in ast.walk(step) if isinstance(n, ast.Call)]
    assert all(isinstance(c, ast.Attribute) for c in calls)


@pytest.mark.parametrize(
    ("names", "expressions"),
    [
        (["i: T.int32):\n        import os\n    def g(j"], ["i"]),
        (["i"], ["i\n        z: T.int32 = 1"]),
        (["i j"], ["1"]),
    ],
)
def test_maps_of_indices_hold_names_and_expressions(names, expressions):
    assert IndexMap.from_text('{"params": ["i"], "exprs": ["i + 1"]}').as_python() == "lambda i: (i + 1,)"
    with pytest.raises(CompassError):
        IndexMap.from_text(json.dumps({"params": names, "exprs": expressions}))
