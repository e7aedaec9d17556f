"""Laws about the tests: none passes because there was nothing to look at, and README.md knows every folder."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

import pytest

from compass_core.reading import pyast
from tests.choosing import chosen, some

TESTS = Path(__file__).parents[1]
README = (TESTS / "README.md").read_text(encoding="utf-8")
KEEPING = ("enumerate", "list", "product", "reversed", "sorted", "tuple", "zip", "items", "keys", "split", "values")
"""Functions and methods that give something where they are given something."""
CHECKS = ("raises", "warns")


def _called(call: ast.Call) -> str:
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def _is_some(of: ast.expr, names: Mapping[str, ast.expr]) -> bool:
    """Whether the text shows that something is there, or sees to it by `some`."""
    if isinstance(of, ast.Name):
        known = names.get(of.id)
        return known is not None and _is_some(known, {n: v for n, v in names.items() if n != of.id})
    if isinstance(of, (ast.Tuple, ast.List, ast.Set)):
        return any(not isinstance(e, ast.Starred) or _is_some(e.value, names) for e in of.elts)
    if isinstance(of, ast.Dict):
        return any(k is not None or _is_some(v, names) for k, v in zip(of.keys, of.values, strict=True))
    if isinstance(of, ast.Constant):
        return bool(of.value)
    if isinstance(of, ast.IfExp):
        return _is_some(of.body, names) and _is_some(of.orelse, names)
    if isinstance(of, ast.BinOp) and isinstance(of.op, ast.Add):
        return _is_some(of.left, names) or _is_some(of.right, names)
    if not isinstance(of, ast.Call):
        return False
    if _called(of) == "range":
        return not any(isinstance(n, (ast.Name, ast.Call)) for a in of.args for n in pyast.walk([a]))
    if _called(of) in KEEPING:
        inner = [of.func.value] if isinstance(of.func, ast.Attribute) and not of.args else of.args
        return bool(inner) and all(_is_some(a, names) for a in inner)
    return _called(of) == "some"


def _is_check(node: ast.stmt) -> bool:
    if isinstance(node, ast.With):
        calls = [i.context_expr for i in node.items if isinstance(i.context_expr, ast.Call)]
        return any(_called(call) in CHECKS for call in calls)
    return isinstance(node, ast.Assert) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))


def _over_nothing(check: ast.stmt, names: Mapping[str, ast.expr]) -> bool:
    """Whether a check is of all elements of what may be empty."""
    test = check.test if isinstance(check, ast.Assert) else None
    if (
        not isinstance(test, ast.Call)
        or ast.unparse(test.func) != "all"
        or not isinstance(test.args[0], ast.GeneratorExp)
    ):
        return False
    return not _is_some(test.args[0].generators[0].iter, names)


def _checks(body: list[ast.stmt], names: Mapping[str, ast.expr]) -> Iterator[tuple[ast.stmt, bool]]:
    """(each check of a test, whether it is made in any case)."""
    for node in body:
        if _is_check(node):
            yield node, not _over_nothing(node, names)
        sure = not isinstance(node, ast.For) or _is_some(node.iter, names)
        inner = [s for f in ("body", "orelse", "handlers", "finalbody") for s in getattr(node, f, [])]
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from ((check, sure and certain) for check, certain in _checks(inner, names))


def _names(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """What is assigned to names once."""
    found: dict[str, ast.expr] = {}
    for node in body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found[node.target.id] = node.value
    return found


def empty_tests(text: str) -> list[str]:
    """The tests of a module that pass where what they loop over is empty: every check stands in a loop over a collection
    that is computed."""
    module, found = ast.parse(text), []
    for test in pyast.walk([module]):
        if not isinstance(test, ast.FunctionDef) or not test.name.startswith("test_"):
            continue
        checks = list(_checks(test.body, _names(module.body) | _names(test.body)))
        asserts = [sure for check, sure in checks if not isinstance(check, ast.Expr)]
        if not any(asserts or [sure for _, sure in checks]):
            found.append(test.name)
    return found


def test_no_test_passes_because_there_was_nothing_to_look_at() -> None:
    modules = sorted(TESTS.rglob("test_*.py"))
    found = [f"{path.relative_to(TESTS)}: {name}" for path in some(modules) for name in empty_tests(path.read_text())]
    assert found == [], "loop over some(...), tests/choosing.py"


@pytest.mark.parametrize("over", ["cases()", "cases", "[*cases]", "enumerate(cases)", "range(len(cases))", "[]"])
def test_a_loop_over_what_may_be_empty_is_found(over: str) -> None:
    text = "def test_it():\n    for case in {}:\n        assert case\n"
    assert empty_tests(text.format(over)) == ["test_it"]
    assert empty_tests(text.format(f"some({over})")) == []
    assert empty_tests(text.format(over) + "    assert True\n") == []
    assert empty_tests(f"def test_it():\n    assert all(case for case in {over})\n") == ["test_it"]
    assert empty_tests(f"cases = (1, 2)\n{text.format('cases')}") == []
    assert empty_tests(text.format(f"(1, 2) if {over} else [3, *{over}]")) == []
    assert empty_tests(text.format(f"[*{over}] + [3]")) == []


def test_no_folder_of_tests_is_passed_over(pytestconfig: pytest.Config) -> None:
    """Pytest does not enter folders that are called so: where it is not told otherwise, `build`."""
    passed_over = pytestconfig.getini("norecursedirs")
    folders = sorted({path.parent.name for path in TESTS.rglob("test_*.py")})
    assert "build" in folders
    assert [name for name in folders if any(fnmatch(name, pattern) for pattern in passed_over)] == []


def found_by_bare_name() -> dict[str, list[Path]]:
    """For each module that some test imports by its bare name, the files that the name may mean: pytest searches the folders
    of tests that are no packages, and tests of examples those."""
    folders = {path.parent for path in TESTS.rglob("test_*.py") if not (path.parent / "__init__.py").exists()}
    files: dict[str, list[Path]] = {}
    for folder in sorted({*folders, TESTS, TESTS.parent / "examples"}):
        for path in (*folder.glob("*.py"), *folder.glob("*/__init__.py")):
            files.setdefault(path.parent.name if path.name == "__init__.py" else path.stem, []).append(path)
    texts = "\n".join(path.read_text(encoding="utf-8") for path in TESTS.glob("*/*.py") if path.parent.name != "errors")
    names = set(re.findall(r"^ *(?:from|import) (\w+)(?: import .*| as .*)?$", texts, re.MULTILINE))
    return {name: files[name] for name in sorted(names & files.keys())}


def test_a_bare_name_means_one_module_in_every_run() -> None:
    found = found_by_bare_name()
    assert "harness" in found
    several = {name: paths for name, paths in found.items() if len(paths) > 1}
    assert several == {}, "which one is imported depends on the folders of the run: make one of them a package"


def test_files_of_a_package_are_imported_by_its_name() -> None:
    packages = [path.parent for path in TESTS.rglob("__init__.py")]
    assert TESTS / "layers" in packages
    elsewhere = found_by_bare_name()
    for folder in packages:
        files = {path.stem for path in folder.glob("*.py")} - elsewhere.keys()
        for path in folder.glob("*.py"):
            bare = re.findall(r"^(?:from|import) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert not files.intersection(bare), path


def test_some_cases_have_to_be_there() -> None:
    assert list(some("ab")) == ["a", "b"]
    with pytest.raises(AssertionError, match="no cases"):
        list(some([]))


def test_a_new_case_leaves_the_choice_of_the_others() -> None:
    names = [f"case {n}" for n in range(100)]
    before = chosen(names, 10)
    assert len(before) == 10 and chosen(reversed(names), 10) == before
    after = chosen(["a new one", *names], 10)
    assert len(after) == 11 and before <= after | {"a new one"}
    assert chosen(["one"], 10) == {"one"} and chosen([], 10) == set()


def test_the_page_knows_every_folder() -> None:
    rows = re.findall(r"^\| `(\w+)` \| \w", README, re.MULTILINE)
    assert rows == sorted(path.name for path in TESTS.iterdir() if path.is_dir() and path.name != "__pycache__")
