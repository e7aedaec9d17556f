"""The committed pages of the operations are what `make docs` writes, and every page has what an author looks for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compassc.ops import docs
from compassc.reference.pages import pages
from tests.choosing import some

FOLDER = Path(__file__).parents[2] / "docs" / "ops"


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages()


def test_committed_pages_are_up_to_date(made):
    kept = {path.name: path.read_text() for path in FOLDER.glob("*.md")}
    stale = sorted(name for name in made.keys() | kept.keys() if made.get(name) != kept.get(name))
    assert not stale, f"run `make docs` and commit docs/ops: {', '.join(stale)}"


def test_every_operation_has_a_page_an_example_and_a_row_in_the_index(made):
    for op in some(docs.documented()):
        page = made[f"{op.name}.md"]
        assert docs.usage(op) in page
        assert "## Example" in page
        assert f"S.{op.name}(" in page.partition("## Example")[2].partition("```c")[0], op.name
        assert f"({op.name}.md)" in made["README.md"]


def test_links_of_the_index_exist(made):
    assert set(re.findall(r"\]\(([^)]+)\)", made["README.md"])) == made.keys() - {"README.md"}
