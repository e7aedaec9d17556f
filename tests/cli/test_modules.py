"""Kernels in packages: relative imports, and modules in the place of files."""

import re
import subprocess
import sys

import pytest

HELPERS = """from compassc.dsl import script as S

ONE = 7

@S.prim_func
def twice(x: S.i32) -> S.i32:
    return x * 2
"""
KERNEL = """from compassc.dsl import script as S
from {0}helpers import ONE, twice

@S.prim_func
def vadd(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    b[0] = twice(a[0]) + ONE
"""


@pytest.fixture
def package(tmp_path, compassc):
    """`pack` with `pack/sub`, whose `__init__` imports the kernel, and `bare` without any `__init__.py`."""
    (tmp_path / "pack" / "sub").mkdir(parents=True)
    (tmp_path / "bare").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "helpers.py").write_text(HELPERS)
    (tmp_path / "bare" / "helpers.py").write_text(HELPERS)
    (tmp_path / "pack" / "sub" / "__init__.py").write_text("from .kernel import vadd\n")
    (tmp_path / "pack" / "sub" / "kernel.py").write_text(KERNEL.format(".."))
    (tmp_path / "bare" / "kernel.py").write_text(KERNEL.format("."))
    return tmp_path


GIVEN = {
    "a file in a package": ["pack/sub/kernel.py"],
    "one of its kernels": ["pack/sub/kernel.py:vadd"],
    "a module": ["-m", "pack.sub.kernel"],
    "a kernel of a module": ["-m", "pack.sub.kernel:vadd"],
    "a package": ["-m", "pack.sub"],
    "without __init__": ["--module", "bare.kernel"],
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("command", ["parse", "codegen", "check", "build --stop-after codegen"])
def test_each_form_finds_the_kernel(given, command, package, compassc):
    output = [] if command == "check" else ["-o", "-"]
    done = compassc(*command.split(), *given, *output)
    assert done.status == 0, done.err
    assert command == "check" or ("vadd" in done.out and "7" in done.out)


def test_a_build_is_the_same_whatever_names_it(package, compassc):
    made = set()
    for words in GIVEN.values():
        assert compassc("build", *words, "--stop-after", "codegen", "-o", "k.cl").status == 0
        made.add((package / "k.cl").read_text())
    assert len(made) == 1


def test_what_was_imported_is_known_to_make_and_gone_afterwards(package, compassc):
    before = set(sys.modules)
    words = ["build", "-m", "pack.sub.kernel", "--stop-after", "codegen"]
    assert compassc(*words).status == 0
    subprocess.run([sys.executable, "-m", "compassc", *words, "--depfile", "k.d"], check=True)  # by a hook that stays
    assert {"pack/__init__.py", "pack/helpers.py", "pack/sub/kernel.py"} <= set(
        re.findall(r"\S+\.py", (package / "k.d").read_text())
    )
    assert not [name for name in set(sys.modules) - before if name.startswith("pack")]
    (package / "pack" / "helpers.py").write_text(HELPERS.replace("ONE = 7", "ONE = 8"))
    assert "8" in compassc("codegen", "-m", "pack.sub.kernel", "-o", "-").out.partition("{")[2]


def test_refusals(package, compassc):
    for words, said in (
        (["bare/kernel.py"], "compassc build -m PACKAGE.MODULE"),
        (["-m", "pack.nothing"], "there is no module 'pack.nothing'"),
        (["-m", "pack.."], "there is no module"),
        (["-m", "sys"], "there is no module"),
        (["pack/sub/kernel.py", "-m", "pack.sub"], "both"),
        (["-m", "pack.sub.kernel:vsub"], "has no kernel 'vsub'"),
        (["-m", "pack.sub.kernel:vadd", "-k", "vsub"], "both 'vadd' and 'vsub'"),
    ):
        done = compassc("build", *words)
        assert done.status in (1, 2) and said in done.err, done.err
