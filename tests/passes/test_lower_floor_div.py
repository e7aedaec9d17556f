"""LowerFloorDiv: divisions that round down by those that C has."""

from __future__ import annotations

import pytest
from loops_text import after, loops

from compassc import pass_manager

NAME = "LowerFloorDiv"
LOOP = "for i in T.serial(0, 64, 1, nonneg=True):\n    p[i] = {}"


@pytest.mark.parametrize(("given", "made"), [("(i // 4)", "(i // 4)"), ("((i + 0) * 1)", "i"), ("(i % 8)", "(i % 8)")])
def test_powers_of_two_stay_and_the_rest_is_simplified(given, made):
    assert after(NAME, LOOP.format(given)) == LOOP.format(made)


def test_a_condition_that_always_holds_goes():
    assert after(NAME, "for i in T.serial(0, 64, 1, nonneg=True):\n    if (i < 64):\n        p[i] = 1") == LOOP.format(
        1
    )


def test_the_mark_of_functions_that_are_being_lowered_goes():
    for made_of in (True, False, "stages"):
        made = pass_manager.run_pipeline((NAME,), loops("p[0] = 1", made_of))
        assert made.entry_func.attr("expressions") is None
