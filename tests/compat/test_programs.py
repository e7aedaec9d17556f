"""`python -m compassc.compat`: programs, modules and code run as Python runs them, with the vendor's names."""

import json
import os
import sys
import textwrap

import numpy as np
import pytest

from compassc.compat import modules

ADD = """
import numpy as np
from tvm.compass.dsl import BuildManager, script as S


@S.prim_func
def add(a: S.ptr("int32", "global"), b: S.ptr("int32", "global")):
    S.vstore(S.vadd(S.vload(a), 1), b)


def run():
    a, b = np.arange(8, dtype="int32"), np.zeros(8, dtype="int32")
    BuildManager().build(add)(a, b)
    return b
"""
SHOW = "import sys; print(__name__, sys.argv, sys.path[0], globals().get('__file__'), sys.modules['__main__'].__dict__ is globals())"


def python(folder, *words, **environment):
    """What plain Python does with the same words."""
    import subprocess

    done = subprocess.run(
        [sys.executable, *words], cwd=folder, text=True, capture_output=True, check=False, env=os.environ | environment
    )
    return done.returncode, done.stdout, done.stderr


def test_a_script_sees_what_python_gives_it(compat, tmp_path):
    done = compat("program.py", "a", "-m", "--shadow", text=SHOW)
    assert (done.returncode, done.stdout, done.stderr) == python(tmp_path, "program.py", "a", "-m", "--shadow")
    assert f"__main__ ['program.py', 'a', '-m', '--shadow'] {tmp_path}" in done.stdout


def test_modules_and_code(compat, tmp_path):
    (tmp_path / "program.py").write_text(SHOW + "\nprint(__spec__.name)")
    done = compat("-m", "program", "x")
    assert (done.returncode, done.stdout) == python(tmp_path, "-m", "program", "x")[:2]
    code = "import sys; print(sys.argv, __name__); sys.exit(4)"
    done = compat("-c", code, "x", "-v")
    assert (done.returncode, done.stdout) == python(tmp_path, "-c", code, "x", "-v")[:2] and done.returncode == 4


@pytest.mark.parametrize("end", ["1 / 0", "raise SystemExit('told')", "raise KeyboardInterrupt", "def (", "exit()"])
def test_programs_end_as_under_python(compat, tmp_path, end):
    text = f"import atexit\natexit.register(print, 'at exit')\ndef f():\n    {end.replace('def (', 'exec(1)')}\n" + (
        end if end == "def (" else "f()\n"
    )
    done = compat("program.py", text=text)
    assert (done.returncode, done.stdout, done.stderr) == python(tmp_path, "program.py")


def test_a_mistake_in_a_kernel_is_shown_where_it_is(compat):
    done = compat("program.py", text=ADD.replace("1), b)", "bias), b)") + "\n\nrun()\n")
    assert done.returncode == 1 and done.stdout == ""
    lines = done.stderr.splitlines()
    assert [line.split(", in ")[-1] for line in lines if line.startswith("  File")] == ["<module>", "run"]
    assert "program.py:8:33: error: undefined variable 'bias'" in done.stderr
    assert "compassc/" not in done.stderr
    told = [json.loads(line) for line in compat("program.py", COMPASS_ERROR_FORMAT="json").stderr.splitlines()]
    assert [(one["line"], one["code"]) for one in told] == [(8, "undefined")]
    assert "build_manager.py" in compat("program.py", COMPASS_TRACEBACK="1").stderr
    done = compat("program.py", COMPASS_COLOUR="1")
    assert done.returncode == 2 and "COMPASS_COLOUR" in done.stderr


def test_child_processes_have_the_names_too(compat):
    text = ADD + textwrap.dedent("""
        if __name__ == "__main__":
            import multiprocessing, subprocess, sys
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.apply(run).tolist(), flush=True)
            subprocess.run([sys.executable, "-c", "import program; print(program.run().sum())"], check=True)
        """)
    done = compat("program.py", text=text)
    assert (done.stdout, done.stderr) == ("[1, 2, 3, 4, 5, 6, 7, 8]\n36\n", "")


def test_pytest_runs_tests_of_the_vendors_names(compat, tmp_path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tvm.testing.plugin"]\n')
    (tmp_path / "test_program.py").write_text(
        ADD + "\n\ndef test_run():\n    assert run().sum() == 36\n\n\ndef test_wrong():\n    assert run().sum() == 35\n"
    )
    done = compat("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "1", "test_program.py")
    assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout
    done = compat(
        "program.py",
        "-k",
        "test_run",
        text=(tmp_path / "test_program.py").read_text()
        + textwrap.dedent("""
        if __name__ == "__main__":
            import tvm
            tvm.testing.main()
        """),
    )
    assert done.returncode == 0 and "1 passed" in done.stdout


def test_an_installed_package_is_not_shadowed_unless_asked_to(compat, tmp_path):
    (tmp_path / "lib" / "tvm").mkdir(parents=True)
    (tmp_path / "lib" / "tvm" / "__init__.py").write_text("print('the other one')\n")
    lib = str(tmp_path / "lib")
    done = compat("program.py", text="import tvm; print(tvm.DataType('i8'))", PYTHONPATH=lib)
    assert done.returncode == 2 and f"a package tvm is installed: {lib}" in done.stderr and "--shadow" in done.stderr
    done = compat("--shadow", "program.py", PYTHONPATH=lib)
    assert (done.returncode, done.stdout) == (0, "int8\n")
    (tmp_path / "tvm").mkdir()  # a folder that has the name is no package
    assert compat("program.py").stdout == "int8\n"
    (tmp_path / "kernel.py").write_text("import tvm\n")
    assert (
        f"tvm is the package installed in {lib}"
        in python(tmp_path, "-m", "compassc", "check", "kernel.py", PYTHONPATH=lib)[2]
    )
    check = "import compassc.compat; print(compassc.compat.install()); import tvm"
    assert python(tmp_path, "-c", check, PYTHONPATH=lib)[1] == "False\nthe other one\n"
    assert python(tmp_path, "-c", check.replace("()", "(shadow=True)"))[1] == "True\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "no program is given"),
        (("-m",), "no program is given"),
        (("--no",), "unknown option '--no'"),
        (("none.py",), "no such file: 'none.py'"),
    ],
)
def test_wrong_use(compat, words, message):
    done = compat(*words)
    assert done.returncode == 2 and message in done.stderr


def test_help(compat):
    done = compat("--help")
    assert done.returncode == 0 and "-m MODULE" in done.stdout


def test_folders_for_children_hold_the_one_package():
    assert [path.name for path in modules.CHILDREN.iterdir()] == ["tvm"]


@pytest.mark.usefixtures("names")
def test_casts_are_values_of_kernels_and_functions_of_blocks():
    import tvm
    from tvm import tir
    from tvm.compass.dsl import BuildManager
    from tvm.compass.dsl import script as S
    from tvm.script import tir as T

    @S.prim_func
    def low_bytes(a: S.ptr("i32", "global"), b: S.ptr("i8", "global")):
        for i in range(16):
            b[i] = tir.Cast("int8", a[i] * 100)

    @T.prim_func
    def function(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int8")):
        for i in range(16):
            B[i] = T.Cast("int8", A[i] * 100)

    given = np.arange(16, dtype="int32")
    for run in (low_bytes, BuildManager("X2_1204").build(low_bytes), tvm.build(function, target="llvm")):
        found = np.zeros(16, "int8")
        run(given, found)
        assert (found == (given * 100).astype("int8")).all()
