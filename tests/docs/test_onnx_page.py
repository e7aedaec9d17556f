"""docs/onnx.md is what the declarations say."""

from pathlib import Path

from compassc.importers.onnx import docs

PAGE = Path(__file__).parents[2] / "docs/onnx.md"


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == docs.page(), "run `make docs`"


def test_every_row_has_a_status_and_refusals_say_why():
    rows = docs.rows()
    assert len({row.operator for row in rows}) == len(rows) > 190
    assert {row.status for row in rows} == {"supported", "partly", "constants", "refused"}
    assert all(row.remark for row in rows if row.status in ("partly", "refused"))
