"""What users read at a terminal names commands: the pages of docs/ are no part of a wheel."""

import ast
import re
from pathlib import Path

import pytest

from tests.choosing import some

ROOT = Path(__file__).parents[2]
PACKAGES = ("compassc", "core/compass_core", "runtime/compass_runtime", "sim/compass_sim")
PAGE = re.compile(r"\bdocs/[\w/-]+(\.md)?\b")
COMMANDS = "compassc/cli"
"""Where the texts of functions are helps."""


def modules():
    return [p for package in PACKAGES for p in sorted((ROOT / package).rglob("*.py")) if "docs/" in p.read_text()]


def documentation(tree):
    """The constants that are texts of modules, classes, functions and attributes."""
    bodies = [n.body for n in ast.walk(tree) if isinstance(getattr(n, "body", None), list)]
    return {
        id(s.value) for body in bodies for s in body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)
    }


def shown(path):
    """Places of a module whose text users read and that name a page. Programs that write one have its path."""
    tree = ast.parse(path.read_text())
    silent = set() if str(path.relative_to(ROOT)).startswith(COMMANDS) else documentation(tree)
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    silent |= {id(a) for n in calls if isinstance(n.func, ast.Name) and n.func.id == "Path" for a in n.args}
    words = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return [f"{path}:{n.lineno}" for n in words if id(n) not in silent and PAGE.search(n.value)]


def test_helps_and_errors_name_no_page_that_a_wheel_lacks():
    assert [place for path in some(modules()) for place in shown(path)] == []


@pytest.mark.parametrize("path", sorted((ROOT / "compassc/errors").glob("*.md")), ids=lambda p: p.stem)
def test_explanations_do_not_either(path):
    assert PAGE.findall(path.read_text()) == []
