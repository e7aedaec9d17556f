"""The catalogue of error codes is complete, and its examples are true."""

import ast
import shlex
import shutil
from functools import cache
from pathlib import Path

import pytest

from compass_core.errors import flat
from compassc.errors import catalogue, is_command, kernel_file
from tests import sources
from tests.choosing import some

ROOT = Path(__file__).parents[2]
COMPUTED = {
    "kernel-": ["segv", "bus", "illegal", "arithmetic", "timeout", "deadlock", "unsupported"],
}
"""Beginnings of codes that are made from other names, with those names."""
ROWS = catalogue()
COMMANDS = [row for row in ROWS.values() if is_command(row.wrong)]
KERNELS = [row for row in ROWS.values() if row.wrong and not is_command(row.wrong)]


def positions(nodes):
    """Function name -> the position of its parameter `code` (methods: without self)."""
    found = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.name != "__init__":
            names = [a.arg for a in node.args.args if a.arg not in ("self", "cls")]
            if "code" in names:
                found[node.name] = names.index("code")
    return found


@cache
def raised():
    """Code -> one place where it is used."""
    shared = {"type_error": 2, "language_error": 0}
    codes = {prefix + name: "computed" for prefix, names in COMPUTED.items() for name in names}
    for path in sources.paths():
        if path.match("compassc/ir/dtypes.py"):  # its codes are those of data types
            continue
        tree, nodes = sources.parsed(path), sources.nodes(path)
        local = {**shared, **positions(nodes)}
        constants = {
            t.id: n.value.value
            for n in tree.body
            if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant)
            for t in n.targets
            if isinstance(t, ast.Name)
        }
        for n in tree.body:
            if isinstance(n, ast.Assign) and isinstance(n.value, ast.Tuple) and isinstance(n.targets[0], ast.Tuple):
                constants |= {
                    t.id: v.value
                    for t, v in zip(n.targets[0].elts, n.value.elts)
                    if isinstance(t, ast.Name) and isinstance(v, ast.Constant)
                }
        for node in nodes:
            for value in _code_values(node, local):
                code = value.value if isinstance(value, ast.Constant) else constants.get(getattr(value, "id", ""))
                if isinstance(code, str) and code:
                    codes[code] = f"{path.relative_to(ROOT)}:{node.lineno}"
    return codes


def _code_values(node, local):
    if isinstance(node, ast.Call):
        yield from (k.value for k in node.keywords if k.arg == "code")
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name in local and len(node.args) > local[name]:
            yield node.args[local[name]]
    elif isinstance(node, ast.FunctionDef):
        arguments = [
            *zip(node.args.args[::-1], node.args.defaults[::-1]),
            *zip(node.args.kwonlyargs, node.args.kw_defaults),
        ]
        for argument, default in arguments:
            if argument.arg == "code" and default is not None:
                default.lineno = node.lineno
                yield default


def test_every_code_is_in_the_catalogue():
    missing = {code: place for code, place in raised().items() if code not in ROWS}
    assert missing == {}, "describe these in compassc/errors/*.md"


def test_every_row_is_a_code_in_use():
    assert set(ROWS) - set(raised()) == set()


def test_every_row_has_both_examples_or_says_why_not():
    for row in some(ROWS.values()):
        assert bool(row.wrong) == bool(row.right) != bool(row.no_example), row.code


@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.code)
def test_example(row, tmp_path, mistake):
    wrong, right = tmp_path / "wrong.py", tmp_path / "right.py"
    wrong.write_text(kernel_file(row.wrong), encoding="utf-8")
    right.write_text(kernel_file(row.right), encoding="utf-8")
    assert row.code in [e.code for e in checked(wrong, mistake)], [str(e) for e in checked(wrong, mistake)]
    left = [e for e in checked(right, mistake) if e.code != "no-result"]  # most examples are parts of kernels
    assert [str(e) for e in left] == []


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.code)
def test_command_example(row, compassc):
    """In a folder with a kernel.py the wrong command gives the code, and the right one works."""
    shutil.copy(ROOT / "examples" / "dynamic_add" / "kernel.py", "kernel.py")
    wrong, right = (shlex.split(text)[2:] for text in (row.wrong, row.right))
    done = compassc(*wrong)
    assert done.status in (1, 2) and f"[{row.code}]" in done.err
    done = compassc(*right)
    assert done.status == 0, done.err


def checked(path, mistake):
    """The errors of a kernel file on its way to C, else what `compassc check` finds in it."""
    from compassc.cli.checking import check_kernel
    from compassc.dsl import load_kernels

    error = mistake(path)
    if error is not None:
        return list(flat(error))
    return check_kernel(load_kernels(path).entry("k"), "X2_1204", {}, {})


def test_explain(compassc):
    listing = compassc("explain")
    assert listing.status == 0 and all(code in listing.out for code in ROWS)
    done = compassc("explain", "type-change")
    assert done.status == 0 and "Wrong:" in done.out and "Right:" in done.out and "def k(" in done.out
    unknown = compassc("explain", "type-chang")
    assert unknown.status == 2 and "type-change" in unknown.err
