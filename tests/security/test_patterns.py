"""Regular expressions over foreign texts, and foreign ones: none takes more time than its text is long, or says so."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compass_core.hostcc import divisions
from compass_core.reading.patterns import compiled
from compassc.quantizer.vendor import Choice
from compassc.toolchain import unit


@given(st.text("\"'\\\n/*a #", max_size=40))
def test_whatever_begins_in_a_text_of_c_is_found_where_it_begins(text):
    """Where it is not, the search looks through the rest of the text for each of them."""
    for pattern, begin in ((divisions._IGNORED, "[\"']|/[*/]"), (unit._COMMENT, "/[*/]")):
        assert re.search(begin, pattern.sub("", text)) is None or pattern.sub("", text) != text
        at = 0
        for match in pattern.finditer(text):
            assert re.search(begin, text[at : match.start()]) is None
            at = match.end()
        assert re.search(begin, text[at:]) is None


@pytest.mark.parametrize(
    "pattern", [".*conv.*", r"layer\d+_(conv|relu)_?", r"^(.*)(conv|fc)(.*)$", "(?:[a-z]{2,5}){3}"]
)
def test_patterns_as_people_write_them_are_taken(pattern):
    assert compiled(pattern, 60).pattern == pattern


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(a|a)*b", "(x*)*", ".*" * 9 + "b", "(?:(?:){60000}){60000}", "(a?){40}" * 2]
)
def test_patterns_of_too_many_ways_are_refused(pattern):
    with pytest.raises(CompassError, match="steps at most") as caught:
        compiled(pattern, 60)
    assert caught.value.code == "limit-exceeded" and "COMPASS_BUDGET=" in caught.value.help


@pytest.mark.parametrize("pattern", ["(", "a**", "a" * 5000, "(?P<" * 3])
def test_what_is_no_pattern_is_a_wrong_value(pattern):
    with pytest.raises(ValueError, match="pattern|expression"):
        compiled(pattern, 60)


def test_a_field_with_patterns_is_read_as_it_is_written():
    choice = Choice("8 & <[(2,3),(5,5)]:12> <[Softmax,Add]:16> <{act[14](?:_x)?}:10>", 20)
    assert (choice.common, choice.by_id, choice.by_type) == (
        "8",
        [([(2, 3), (5, 5)], "12")],
        [(["softmax", "add"], "16")],
    )
    assert [(p.pattern, v) for p, v in choice.by_name] == [("act[14](?:_x)?", "10")]
    for wrong in ("8 & <", "8 & <[(1,2)]>", "8 & x <{a}:4>", "8 & " + "<[" * 5000):
        with pytest.raises(ValueError, match="VALUE"):
            Choice(wrong, 20)
    with pytest.raises(CompassError, match="steps at most"):
        Choice("8 & <{(a+)+b}:10>", 60)
