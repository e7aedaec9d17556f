"""Programs as the vendor's documents show them: of both generations of names, through both ways a kernel runs.

The programs here are our own; where documents themselves lie beside the checkout, the programs in them are run too.
"""

import re
from pathlib import Path

import pytest

DOCUMENTS = Path(__file__).parents[3] / "shared" / "seeds"
FOUND = [
    pytest.param(program, id=f"{path.stem}-{number}")
    for path in sorted(DOCUMENTS.glob("*.txt"))
    for number, program in enumerate(re.findall(r"^```py\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE))
    if "import" in program and "BuildManager(" in program
]
HEADER = {
    2023: "from tvm import aipu\nfrom tvm.aipu import script as S\nBuildManager = aipu.tir.BuildManager\n",
    2025: "from tvm.compass.dsl import BuildManager, script as S\n",
}
PROGRAM = """
import numpy as np

kind, count = "int16", 16


@S.prim_func
def triple(src: S.ptr(kind, "global"), dst: S.ptr(kind, "global")):
    loaded = S.vload(src)
    S.vstore(S.vmul(loaded, 3), dst)


def main():
    given = np.arange(count, dtype=kind)
    manager = BuildManager(target="X2_1204")
    assert "triple" in str(manager.lower(triple))
    built = manager.build(triple)
    print(built.c_code)
    for run in (built, built.run, triple):
        result = np.zeros((count,), dtype=kind)
        run(given, result)
        print(result)


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("generation", HEADER)
def test_a_program_builds_prints_its_c_text_and_runs_three_ways(compat, generation):
    done = compat("program.py", text=HEADER[generation] + PROGRAM)
    assert (done.returncode, done.stderr) == (0, "")
    c_code, result, *others = done.stdout.split("\n[")
    assert c_code.startswith("#include <compass/dsl.h>") and "__vload((__global short16*)src, ALL_TRUE_h)" in c_code
    assert result.split() == [*map(str, range(0, 43, 3)), "45]"]
    assert [other.rstrip("\n") for other in others] == [result] * 2


THREADS = """
import threading


@S.prim_func
def names_its_thread(a: S.ptr("int32", "global")):
    print(threading.current_thread().name)


names_its_thread(None)
"""


@pytest.mark.parametrize("variable", ["AIPU_TVM_PYSIM_SINGLE_THREAD", "CPS_TVM_PYSIM_SINGLE_THREAD"])
def test_pysim_in_one_thread(compat, variable):
    done = compat("program.py", text=HEADER[2023] + THREADS)
    assert sorted(re.findall(r"TEC\d", done.stdout)) == ["TEC0", "TEC1", "TEC2", "TEC3"]
    done = compat("program.py", **{variable: "TRUE"})
    assert done.stdout == "MainThread\n" * 4 and "one after another" in done.stderr


@pytest.mark.skipif(not FOUND, reason="no documents beside the checkout")
@pytest.mark.parametrize("program", FOUND)
def test_programs_of_documents(compat, program):
    done = compat("program.py", text=program)
    assert (done.returncode, done.stderr) == (0, "")
    if "c_code" in program:
        assert "__vstore(" in done.stdout and done.stdout.endswith("[0 1 2 3 4 5 6 7] [1 2 3 4 5 6 7 8]\n")
    else:  # it prints nothing
        (out,) = re.findall(r"(\w+_out) = ", program)
        done = compat("program.py", text=f"{program}\nprint({out})\n")
        assert done.stdout == "[1 2 3 4 5 6 7 8]\n"
