"""The stub of `S`: what type checkers and editors know of kernels."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import compassc.dsl
from compassc.dsl import script, stubs
from compassc.ops import docs
from tests.choosing import some

ROOT = Path(__file__).parents[2]
KERNELS = sorted(ROOT.glob("examples/*/kernel.py"))
GOOD = '''
from compassc.dsl import BuildManager, script as S


@S.prim_func
def sub(v: S.i32x8, n: S.i32, f: S.fp32 = 2.0) -> S.i32:
    v[0] = n
    return S.vrpadd(v * 2, mask="8T")[0] + n // 2 % 3


@S.prim_func(is_inline=True)
def good(a: S.ptr("i32", "global"), b: S.ptr(S.fp32, "global"), n: S.size_i32):
    """Everything here is right."""
    total = 0
    total = total + sub(S.vload(a), n)
    found = False
    found = S.vload(a)[0] > n
    scratch = S.alloc(64, "i32", scope="lsram")
    table = S.match_buffer(a, (4, n))
    for i, j in S.grid(4, n / 2):
        table[i, j] = S.max(total, S.i32(i))
    for i in range(0, n, S.get_local_size()):
        with S.block("move"):
            S.dma_copy(scratch, table.addr_of((0, i)), 8)
        S.vstore(S.cast(S.vload(scratch + i, S.tail_mask(n - i, 8)), "fp32"), b + i)
    low, high = S.vsplit(S.vconcat((S.i32x8(0), S.i32x8([1, 2, 3, 4, 5, 6, 7, n]))))
    S.vstore(S.vsel(low, high, low > high), scratch.as_ptr("i32"))


good.target
BuildManager("X2_1204").build(good)
'''
BAD = {
    "S.vaad(S.vload(a), 1)": "vaad",
    "S.vadd(S.vload(a), 1, satruate=True)": "satruate",
    "S.vadd(S.vload(a))": '"y"',
    'S.vadd(S.vload(a), "TTTT")': '"y"|Argument 2',
    "S.vload(a, lanes=1.5)": '"lanes"',
    'S.vzip(S.vload(a), S.vload(a), "odds")': '"part"|Argument 3',
    "S.vload(a).dtyp": "dtyp",
    "S.vload(a + S.i32x9(0))": "i32x9",
}
BAD_TEXT = "from compassc.dsl import script as S\n\n\n@S.prim_func\ndef bad(a: S.ptr('i32', 'global')):\n" + "".join(
    f"    {line}\n" for line in BAD
)

READ = (
    *("compassc.dsl.*", "compassc.ir.*", "compassc.language.*", "compass_core.*"),
    *("numpy", "numpy._core.*", "numpy._typing.*", "typing_extensions"),
    *("abc", "collections.*", "contextlib", "dataclasses", "enum", "types", "typing"),
)
"""What mypy reads beside kernels: the stub and the types that it names. The rest of the toolchain and of NumPy, which would
take it most of the time, has nothing to do with kernels."""
MYPY = f"""[mypy]
follow_imports = skip
follow_imports_for_stubs = true
[mypy-{",".join(READ)}]
follow_imports = silent
"""


@pytest.fixture
def kernels(tmp_path):
    """A folder with good and bad kernels."""
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text(BAD_TEXT)
    return tmp_path


def test_the_stub_is_up_to_date():
    assert stubs.PATH.read_text() == stubs.text(), "run `make docs`"


def test_the_stub_has_every_name():
    text = stubs.PATH.read_text()
    for name in dir(script):
        assert re.search(rf"^(def {name}\(|{name}: |from .* import {name} as {name}$)", text, re.MULTILINE), name
    assert set(stubs.CALLS) == set(script.OTHER_CALLS) - {"prim_func", "macro"}


def test_no_type_is_for_a_parameter_that_is_not():
    """Tables by name do not outlive what they are for."""
    declared = [(op, set(op.signature.parameters)) for op in docs.documented()]
    assert set(stubs.TYPES) <= set().union(*(names for _, names in declared))
    assert all(op.types.keys() | op.arguments.keys() <= names for op, names in declared)


def test_the_names_of_the_package_are_those_it_gives():
    for name in set(compassc.dsl.__all__) - {"schedule"}:  # it refuses to be imported
        assert getattr(compassc.dsl, name) is not None
    assert set(compassc.dsl.__all__) == {*compassc.dsl._LAZY, *compassc.dsl._MODULES}


def check_bad(found: dict[int, str]) -> None:
    """Each line has its mistake, and no other line any."""
    lines = {BAD_TEXT.splitlines().index(f"    {line}") + 1: words for line, words in BAD.items()}
    assert set(found) == set(lines)
    for line, words in lines.items():
        assert re.search(words, found[line]), (line, found[line])


def test_mypy_accepts_kernels_and_finds_their_mistakes(kernels):
    (kernels / "mypy.ini").write_text(MYPY)
    command = [sys.executable, "-m", "mypy", "--disable-error-code=valid-type", "--no-error-summary"]
    command += ["--hide-error-context", f"--cache-dir={kernels / 'cache'}", "--explicit-package-bases"]
    command += ["--config-file=mypy.ini", "--ignore-missing-imports", "good.py", "bad.py"]
    environment = {**os.environ, "MYPYPATH": str(kernels)}
    done = subprocess.run(command, cwd=kernels, env=environment, capture_output=True, text=True, check=False)
    found: dict[int, str] = {}
    for line in some(done.stdout.splitlines()):
        where, _, what = line.partition(": ")
        file, _, number = where.partition(":")
        assert file == "bad.py", line
        found[int(number)] = found.get(int(number), "") + what
    check_bad(found)


@pytest.mark.skipif(not shutil.which("node"), reason="pyright needs node")
def test_pyright_accepts_kernels_and_finds_their_mistakes(kernels):
    pytest.importorskip("pyright")
    (kernels / "pyrightconfig.json").write_text(json.dumps({"reportInvalidTypeForm": False, "include": ["."]}))
    for path in some(KERNELS):
        (kernels / f"of_{path.parent.name}_{path.name}").write_bytes(path.read_bytes())
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", kernels]
    done = subprocess.run(command, cwd=kernels, capture_output=True, text=True, check=False)
    found: dict[int, str] = {}
    for report in some(json.loads(done.stdout)["generalDiagnostics"]):
        if report.get("rule") == "reportMissingImports" and "/of_families_" in report["file"]:
            continue  # what stands beside the kernel
        assert report["severity"] != "error" or report["file"].endswith("/bad.py"), report
        if report["severity"] == "error":
            number = report["range"]["start"]["line"] + 1
            found[number] = found.get(number, "") + report["message"]
    check_bad(found)


def test_jedi_completes_operations_and_shows_what_they_are():
    jedi = pytest.importorskip("jedi")
    text = "from compassc.dsl import script as S\nS.vad"
    (vadd,) = [c for c in jedi.Script(text).complete(2, 5) if c.name == "vadd"]
    assert "y: Operand, mask: Mask=None" in vadd.docstring()
    assert docs.core.get("vadd").doc.splitlines()[0] in vadd.docstring()
