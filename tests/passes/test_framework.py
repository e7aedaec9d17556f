"""The pass framework: names, pipelines as text, what can be seen of a pass, errors."""

from __future__ import annotations

import ast
import io
import re
from pathlib import Path

import pytest
from module_text import module_text

from compass_core.errors import CompassError, UsageError
from compassc import pass_manager, passes
from compassc.graph.passes import GRAPHS
from compassc.ir import parse_module, print_module
from compassc.pass_manager.vendor_names import NOT_NEEDED, VENDOR_NAMES
from compassc.passes import _recovery  # noqa: F401 (before tests put another load_pass in place, which it would keep)
from compassc.passes.pipelines import STAGES
from tests.choosing import some

FOLDER = Path(passes.__file__).parent
COMPAT = Path(__file__).parents[2] / "docs" / "compat.md"
BODY = "a: T.int32 = (n + 0)\np[a] = (a // 4)"
PARAMS = 'p: T.ptr("int32", "global"), n: T.int32'


@pytest.fixture
def module():
    return parse_module(module_text(BODY, PARAMS))


def run(module, names="Simplify,ExpandDivMod", **options):
    stream = io.StringIO()
    options = pass_manager.PassOptions(verify=True, stream=stream, **options)
    return pass_manager.run_pipeline(pass_manager.parse_pipeline(names), module, options), stream.getvalue(), options


def stems():
    files = [*FOLDER.glob("*.py"), *(FOLDER / "loops").glob("*.py")]
    return [p.stem for p in files if p.stem[0] != "_" and p.stem != "pipelines"]


@pytest.mark.parametrize("stem", sorted(stems()))
def test_name_of_file_and_pass_are_one(stem):
    loaded = pass_manager.load_pass(stem)
    assert loaded.NAME.lower() == stem.replace("_", "") and callable(loaded.run)
    assert loaded.__doc__.splitlines()[0].endswith(".")


def missing_tests(stem: str, folder: Path) -> list[str]:
    """What a pass lacks in a folder of tests: a file of its name, tests in it, its name in them."""
    path = folder / f"test_{stem}.py"
    if not path.is_file():
        return [f"a file {path.name}"]
    tests = [n for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef) and n.name[:5] == "test_"]
    name = pass_manager.load_pass(stem).NAME
    used = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant) and n.value == name]
    return [what for what, found in (("tests", tests), (f"the name {name}", used)) if not found]


@pytest.mark.parametrize("stem", sorted(stems()))
def test_a_pass_has_tests_of_its_own(stem):
    assert missing_tests(stem, Path(__file__).parent) == []


def test_a_pass_without_tests_is_found(tmp_path):
    assert missing_tests("simplify", tmp_path) == ["a file test_simplify.py"]
    (tmp_path / "test_simplify.py").write_text('"""Simplify."""\n\ndef helper(): ...\n')
    assert missing_tests("simplify", tmp_path) == ["tests", "the name Simplify"]


def test_pipelines_name_passes_in_their_own_spelling():
    for stage in some(STAGES):
        names = pass_manager.pipeline_names(stage)
        assert pass_manager.parse_pipeline(pass_manager.pipeline_text(names)) == names


@pytest.mark.parametrize("name", ["tir.Simplify", "simplify", "Simplify"])
def test_spellings_of_a_name(name):
    assert pass_manager.pass_name(name) == "Simplify"


def test_the_vendors_names_are_aliases():
    table = re.findall(r"^\| `(\w+)` \| `(\w+)` \|$", COMPAT.read_text().partition("## Passes")[2], re.MULTILINE)
    assert table == list(VENDOR_NAMES.items())
    assert all(pass_manager.pass_name(f"tir.{alias}") == name for alias, name in VENDOR_NAMES.items())
    known = {p.name for p in pass_manager.describe()}
    assert not known & VENDOR_NAMES.keys() and not {*NOT_NEEDED} & (known | VENDOR_NAMES.keys())


@pytest.mark.parametrize("name", ["ExpandDivMod", "CanonicalizeDivMod", "tir.canonicalize_div_mod"])
def test_a_pass_is_disabled_and_printed_by_each_of_its_names(module, name):
    assert [r.name for r in run(module, disabled=(name,))[2].runs] == ["Simplify"]
    assert "IR after ExpandDivMod" in run(module, print_after=(name,))[1]


def test_passes_of_other_programs_have_no_alias():
    assert pass_manager.pass_name("FoldConstant") == "ConstantPropagation"
    assert pass_manager.pass_name("FoldConstant", GRAPHS) == "FoldConstant"


def test_unknown_name_gets_the_nearest_one():
    with pytest.raises(UsageError, match="Simplifi") as e:
        pass_manager.parse_pipeline("Simplifi")
    assert "'Simplify'" in e.value.help


def test_disabled_pass_does_not_run(module):
    after, _, options = run(module, disabled=("tir.Simplify", "tir.InjectVirtualThread"))
    assert [r.name for r in options.runs] == ["ExpandDivMod"] and "(n + 0)" in print_module(after)


def test_unknown_disabled_pass_is_an_error(module):
    with pytest.raises(UsageError):
        run(module, disabled=("Simplifi",))


@pytest.mark.parametrize(("limit", "ran"), [(0, 0), (1, 1), (9, 2)])
def test_limit_counts_passes(module, limit, ran):
    _, _, options = run(module, limit=limit)
    assert len(options.runs) == ran


def test_print_before_after_and_changed(module):
    _, text, _ = run(module, print_before=("Simplify",), print_after=("all",), print_changed=True)
    assert text.count("*** IR before") == 1 and text.count("*** IR after") == 2
    assert "-        a: T.int32 = (n + 0)" in text and "+        a: T.int32 = n" in text


def test_print_of_a_function_that_is_not_there_is_empty(module):
    _, text, _ = run(module, print_after=("all",), functions=("other",))
    assert "p[a]" not in text


def test_dump_files_are_numbered_over_both_pipelines(module, tmp_path):
    _, _, options = run(module, dump_dir=tmp_path)
    pass_manager.run_pipeline(("UniquifyVarName",), module, options)
    names = ["00-input.txt", "01-Simplify.txt", "02-ExpandDivMod.txt", "03-UniquifyVarName.txt"]
    assert sorted(p.name for p in tmp_path.iterdir()) == names
    assert parse_module((tmp_path / names[0]).read_text()) is not None


def test_times(module):
    _, text, _ = run(module, time_passes=True)
    assert "ExpandDivMod" in text and text.splitlines()[-1].endswith("total")


def test_unchanged_module_is_the_same_object(module):
    after, _, _ = run(module, "Simplify")
    assert run(after, "Simplify")[0] is after


class _Broken:
    NAME = "Broken"


def broken(error):
    pass_ = _Broken()

    def fail(module):
        raise error

    pass_.run = fail
    return pass_


def test_a_defect_of_a_pass_names_it_and_keeps_the_module(module, monkeypatch):
    monkeypatch.setattr(pass_manager, "load_pass", lambda name, folder=None: broken(KeyError("x")))
    with pytest.raises(pass_manager.InternalPassError, match="Broken") as e:
        pass_manager.run_pipeline(("Broken",), module)
    assert e.value.before == print_module(module)


def test_an_error_of_the_kernel_passes_through(module, monkeypatch):
    monkeypatch.setattr(pass_manager, "load_pass", lambda name, folder=None: broken(CompassError("no")))
    with pytest.raises(CompassError, match="no"):
        pass_manager.run_pipeline(("Broken",), module)


def test_verify_blames_the_pass_that_broke_the_module(module, monkeypatch):
    pass_ = _Broken()
    pass_.run = lambda m: m.map_functions(lambda f: f.replace(body=f.body[1:]))
    monkeypatch.setattr(pass_manager, "load_pass", lambda name, folder=None: pass_)
    with pytest.raises(pass_manager.InternalPassError, match="Broken.*a is used but not defined"):
        pass_manager.run_pipeline(("Broken",), module, pass_manager.PassOptions(verify=True))
