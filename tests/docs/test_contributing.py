"""Every recipe of docs/contributing.md, done in a copy of the tree: its diffs apply, its commands write what it shows."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from pages import Runner, Step, matches, steps

from tests.choosing import some

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "docs/contributing.md").read_text().split("\n")
SUITES = ("cli", "graph", "importers", "layers", "ops", "passes", "quantizer", "relay", "tir", "topi")
"""The folders of tests that recipes run."""
COPIED = ("compassc", "core", "runtime", "sim", "docs", *(f"tests/{name}" for name in SUITES))
FILES = ("pyproject.toml", "tests/conftest.py", "tests/choosing.py", *(f"tests/served.{x}" for x in ("py", "c")))
SOURCES = ("", "core", "runtime", "sim")


def recipes() -> dict[str, list[Step]]:
    """The steps of each section, by its title."""
    titles = {number: line[3:] for number, line in enumerate(LINES) if line.startswith("## ")}
    found: dict[str, list[Step]] = {title: [] for title in titles.values()}
    for step in steps(LINES):
        found[titles[max(number for number in titles if number < step.line)]].append(step)
    return found


RECIPES = recipes()
BEGINS = re.compile(r"^Begins where \[(.*)\]", re.MULTILINE)
MOST_EDITS = 4
"""Files that a recipe changes or adds."""


def basis(title: str) -> list[Step]:
    """The diffs of the recipe that another one goes on from."""
    text = "\n".join(LINES).partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    before = BEGINS.search(text)
    return [step for step in RECIPES[before[1]] if step.kind == "diff"] if before else []


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of all files of a copy of the tree, by their paths in it."""
    found = {}
    for above, _, names in os.walk(folder):
        for path in (os.path.join(above, name) for name in names):
            about = os.lstat(path)
            found[os.path.relpath(path, folder)] = about.st_size, about.st_mtime_ns
    return found


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, tuple[int, int]]]:
    """A copy of what recipes change and run, and its files."""
    folder = tmp_path_factory.mktemp("tree")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, symlinks=True)
    for name in FILES:
        shutil.copy2(ROOT / name, folder / name)
    return folder, files_of(folder)


@pytest.fixture
def tree(copy: tuple[Path, dict[str, tuple[int, int]]]) -> Iterator[Path]:
    """The copy, which has the files of the tree again after a recipe."""
    folder, files = copy
    yield folder
    now = files_of(folder)
    for name in now.keys() - files.keys():
        (folder / name).unlink()
        with contextlib.suppress(OSError):  # it has other files
            os.removedirs((folder / name).parent)
    for name in {name for name, about in files.items() if now.get(name) != about}:
        shutil.copy2(ROOT / name, folder / name)


@pytest.mark.parametrize("title", RECIPES)
def test_recipe(title: str, tree: Path) -> None:
    runner = Runner(tree)
    runner.environment["PYTHONPATH"] = os.pathsep.join(str(tree / name) for name in SOURCES)
    runner.environment["HYPOTHESIS_STORAGE_DIRECTORY"] = str(ROOT / ".hypothesis")  # what it knows of the sources
    runner.environment["PYTEST_ADDOPTS"] = "-p no:cacheprovider -p no:xdist"
    for step in some([*basis(title), *RECIPES[title]]):
        got = runner.do(step)
        assert runner.status == 0, f"contributing.md:{step.line}: {step.code}\nexit status {runner.status}:\n{got}"
        start, stop = step.shown or (0, 0)
        assert matches("\n".join(LINES[start:stop]), got), f"contributing.md:{step.line}: {step.code}\nwritten:\n{got}"


def test_a_command_that_fails_is_told_by_its_status(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    for code, status in (("echo 1 failed, 2 passed; exit 3", 3), ("false | cat", 1), ("true", 0)):
        runner.do(Step("console", code, 1))
        assert runner.status == status


def test_every_recipe_has_a_diff_and_shows_what_it_gives() -> None:
    for title, done in some(RECIPES.items()):
        assert {"diff", "console"} <= {step.kind for step in done}, title


def test_a_recipe_is_few_edits() -> None:
    for title, done in some(RECIPES.items()):
        diffs = "\n".join(step.code for step in done if step.kind == "diff")
        files = set(re.findall(r"^\+\+\+ b/(\S+)", diffs, re.MULTILINE))
        assert 0 < len(files) <= MOST_EDITS, f"{title}: {files}"


def test_an_operation_touches_its_declaration_and_one_c_function() -> None:
    diffs = "\n".join(step.code for step in RECIPES["An operation"] if step.kind == "diff")
    touched = re.findall(r"^\+\+\+ b/(\S+)", diffs, re.MULTILINE)
    assert [str(Path(path).parent) for path in touched] == ["compassc/ops", "sim/include/compass"]
