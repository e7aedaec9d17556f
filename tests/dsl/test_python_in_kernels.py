"""Kernels as people write them who know Python and NumPy: each mistake names what to write instead."""

import builtins
import math
import re

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import BuildManager, load_kernels, parse
from compassc.dsl import script as S
from compassc.language.advice import ADVICE, advice
from tests.choosing import some

HEAD = """import math
import numpy as np
from compassc.dsl import script as S

def helper(x):
    return int(x) + 1

def put(x):
    x[0] = 3

def stores(x):
    put(x), S.vstore(S.vload(x), x)

@S.prim_func
def callee(a: S.ptr("i32", "global")) -> S.i32:
    return a[0]

@S.prim_func
def k(a: S.ptr("i32", "global"), f: S.ptr("fp32", "global"), n: S.i32):
"""
INTERNAL = re.compile(r"\\b(Value|PointerValue|BufferValue|LoopSpec|RuntimeText|NoneType|\\w+Spec)\\b")


@pytest.fixture
def error(tmp_path):
    """A function: statements of a kernel -> the error of its parsing; None if there is none."""

    def of(body):
        path = tmp_path / "kernel.py"
        path.write_text(HEAD + "".join(f"    {line}\n" for line in body.split("; ")))
        try:
            parse(load_kernels(path).entry("k"), "X2_1204")
        except CompassError as found:
            return found
        return None

    return of


def of_python():
    """Functions of Python, math and NumPy that advice is given for, as a kernel names them."""
    modules = (("", builtins), ("math.", math), ("np.", np))
    allowed = {"pow", "print", "iter", "next", "map", "filter", "set", "list", "tuple", "fma"}
    for name in ADVICE:
        for prefix, module in modules:
            if callable(getattr(module, name, None)) and (prefix or name not in allowed):
                yield prefix + name


@pytest.mark.parametrize("name", sorted({*of_python(), "np.float32", "np.int8"} - {"range"}))
def test_a_function_of_python_names_what_to_write(name, error):
    binary = name.partition(".")[2] or name
    count = (
        2 if binary in "divmod pow power fmod mod remainder hypot maximum minimum fmax fmin dot where".split() else 1
    )
    found = error(f"a[0] = {name}({', '.join(['f[0]', 'n'][:count])})")
    assert found is not None and found.code == "builtin" and found.help, found
    assert not INTERNAL.search(f"{found} {found.help}")


def test_advice_names_operations_that_exist():
    for name in some(re.findall(r"\bS\.(\w+)", "\n".join(ADVICE.values()))):
        assert hasattr(S, name), name


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("a[0] = abs(n)", "S.abs(n)"),
        ("a[0] = int(f[0])", "S.i32(f[0])"),
        ("f[0] = float(n)", "S.fp32(n)"),
        ("f[0] = math.exp(f[1])", "S.exp(f[1])"),
        ("f[0] = np.exp(f[1])", "S.exp(f[1])"),
        ("f[0:8] = np.sqrt(f[0:8])", "S.sqrt(f[0:8])"),
        ("f[0] = np.float32(n)", "S.fp32(n)"),
        ("a[0] = len(a)", "n: S.i32"),
        ("a[0] = max(n, 1)", "S.max(n, 1)"),
        ("a[0] = min([n, 1, a[0]])", "S.min(S.min(a, b), c)"),
        ("a[0] = sum(a)", "total = total + p[i]"),
        ("a[0] = a.sum()", "S.vrpadd(v)[0]"),
        ("a[0] = S.sum(a)", "S.vrpadd(v)[0]"),
        ("a[0] = helper(n)", "S.i32(x)"),
        ("a[0] = n ** 2", "x * x"),
        ("a[0] = n if n else 1", "n != 0"),
        ("a[0] = print(n)", "S.printf"),
        ("t = [1, 2, 3]; a[0] = t[n]", "S.alloc_const"),
        ("t = list(range(n)); a[0] = t[0]", "range constants"),
        ("f = f[0] + 1.0", "f[0] = ..."),
        ("S.printf(n)", 'S.printf("%d'),
        ("z = np.zeros(n)", "S.alloc"),
    ],
)
def test_what_is_tried_first(body, text, error):
    found = error(body)
    assert text in found.help, found.help
    assert found.span.line > 17
    assert not INTERNAL.search(str(found))


@pytest.mark.parametrize(
    "body",
    [
        "a[0] = max(3, len([n, n])) + sum([n, a[1]]) + abs(-2)",
        "f[0] = pow(f[0], 2.0) + math.sqrt(2.0)",
        "t = list(range(4)); a[t[1]] = n",
        "print(n, f'{n}'); a[0] = n",
    ],
)
def test_python_on_python_values_stays_python(body, error):
    assert error(body) is None


@pytest.mark.parametrize(
    "argument",
    [
        "f'{S.atomic_add(a, 1)}'",
        "[put(a) for _ in range(2)]",
        "callee(a)",
        "stores(a)",
        "(n := 3)",
        "t.pop()",
        "S.printf('x')",
    ],
)
def test_what_is_not_compiled_changes_nothing(argument, error):
    """print() is left out of compiled kernels, so that an effect in its arguments would be in PySim alone."""
    found = error(f"t = [1, 2]; print({argument}); a[0] = n")
    assert found is not None and found.span.line > 17


@pytest.mark.parametrize("argument", ["S.vload(a) + helper(n)", "a.tolist()", "np.sum(a[1]), f'{n:3d}'", "len([1])"])
def test_what_only_reads_may_be_printed(argument, error):
    assert error(f"print({argument}); a[0] = n") is None


def test_iterating_over_memory_ends(error):
    """A pointer has subscripts, so that Python would take it for an endless sequence."""
    assert error("a[0] = [*a][0]").code == "builtin"


def test_several_errors_are_printed_in_full():
    with pytest.raises(CompassError) as found:
        BuildManager("X2_1204").build(two_mistakes)
    text = str(found.value)
    assert "2 errors" in text and "help: write S.abs(n)" in text and "undefined variable 'mm'" in text
    assert text.count("^") >= 2 and not getattr(found.value, "__notes__", [])


@S.prim_func
def two_mistakes(a: S.ptr("i32", "global"), n: S.i32):
    a[0] = abs(n)
    a[1] = mm  # noqa: F821


def test_unknown_names_get_no_advice():
    assert advice("frobnicate") == ""
