"""The committed pages of the steps of schedules are what `make docs` writes, and every step has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from compassc.reference.primitives import families, pages

FOLDER = Path(__file__).parents[2] / "docs" / "schedules"


@pytest.mark.parametrize("family", families(), ids=lambda family: family.folder)
def test_committed_pages_are_up_to_date(family):
    made = pages(family)
    kept = {path.name: path.read_text() for path in (FOLDER / family.folder).glob("*.md")}
    stale = sorted(name for name in made.keys() | kept.keys() if made.get(name) != kept.get(name))
    assert not stale, f"run `make docs` and commit docs/schedules: {', '.join(stale)}"


@pytest.mark.parametrize("family", families(), ids=lambda family: family.folder)
def test_every_step_has_a_page(family):
    steps = {n for owner in family.owners for n, m in vars(owner).items() if hasattr(m, "__wrapped__")}
    assert steps == set(family.examples)
