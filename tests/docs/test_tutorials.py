"""The code of every documentation page runs, and writes what the page shows. `--update-golden` rewrites what differs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from pages import Runner, difference, matches, outcomes

from tests.choosing import some

DOCS = Path(__file__).parents[2] / "docs"
RECIPES = "contributing.md"
"""Its steps change the tree, and are done in a copy (test_contributing.py)."""
PAGES = [
    DOCS.parent / "README.md",
    *sorted([*(DOCS / "tutorials").glob("*.md"), *(p for p in DOCS.glob("*.md") if p.name != RECIPES)]),
]
BEGINS = re.compile(r"^Begins where \[.*\]\((.*)\) ended", re.MULTILINE)


def rows() -> list[list[Path]]:
    """The pages, those that begin where another one ended behind it."""
    found: dict[Path, list[Path]] = {}
    for path in PAGES:
        before = BEGINS.search(path.read_text())
        row = found[path.parent / before[1]] if before else []
        row.append(path)
        found[path] = row
    return [row for path, row in found.items() if row[0] == path]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder; modules imported from it are forgotten afterwards, for pages use the same names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("row", rows(), ids=lambda row: "+".join(path.stem for path in row))
def test_page(row: list[Path], folder: Path, request: pytest.FixtureRequest) -> None:
    for path in some(row):
        written = followed(path, folder, request.config.getoption("--update-golden"))
        if path.stem == "10-models":
            shown, real = (figures(text) for text in ((DOCS.parent / "README.md").read_text(), "\n".join(written)))
            assert shown == pytest.approx(real, rel=0.05), "README.md shows other figures than the tutorial's run"


def followed(path: Path, folder: Path, update: bool) -> list[str]:
    """Does the steps of a page; what they wrote."""
    lines = path.read_text().split("\n")
    wrong, changes, written = [], [], []
    for step, want, got in outcomes(lines, Runner(folder)):
        written.append(got)
        if not matches(want, got):
            start, stop = step.shown or (0, 0)
            wrong.append(difference(path.name, step, want, got))
            changes.append((start, stop, got.rstrip("\n").split("\n") if got else []))
    if wrong and update:
        for start, stop, new in reversed(changes):
            assert start, "what a python block without output prints cannot be added"
            lines[start:stop] = new
        path.write_text("\n".join(lines))
    else:
        assert not wrong, "\n\n".join(wrong)
    return written


def figures(text: str) -> list[float]:
    """The numbers in the head of an evaluation of the digits."""
    found = re.search(r"^digits for X2_1204, .*?^simulator, X2_1204 .*?$", text, re.DOTALL | re.MULTILINE)
    assert found
    return [float(n.replace(",", "")) for n in re.findall(r"(?<![\w_])\d[\d,.]*\b", found.group())]
