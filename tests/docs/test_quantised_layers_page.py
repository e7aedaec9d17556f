"""docs/quantised-layers.md is what the declarations say."""

from pathlib import Path

from compassc.quantizer import docs


def test_the_page_is_up_to_date():
    root = Path(__file__).parents[2]
    assert (root / docs.PAGE).read_text() == docs.page(), "run `make docs`"


def test_types_that_stay_floats_have_a_reason():
    rows = [line.split(" | ") for line in docs.page().splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 150 and {kind for _, kind, _ in rows} == {"integers", "floats", "whole numbers"}
    assert all(len(remark) > 5 for _, kind, remark in rows if kind == "floats")
