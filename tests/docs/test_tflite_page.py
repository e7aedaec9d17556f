"""docs/tflite.md is what the declarations say."""

from pathlib import Path

from compassc.importers.tflite import docs

PAGE = Path(__file__).parents[2] / "docs/tflite.md"


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == docs.page(), "run `make docs`"


def test_every_row_has_a_status_and_refusals_say_why():
    rows = docs.rows()
    assert len({row.operator for row in rows}) == len(rows) > 150
    assert sum(row.status == "supported" for row in rows) > 95
    assert all(row.remark for row in rows if row.status in ("partly", "refused"))
    assert {row.quantised for row in rows} == {"", docs.INTEGERS, docs.MOVED, docs.TABLES, docs.FLOATS}
