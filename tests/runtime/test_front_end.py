"""The vendor's DSL package on programs and libraries from here alone; this module plays what the package does.

It writes its files, has `aipuocc` and `aipugb` build them, looks for `aipu_simulator_FAMILY` on PATH, changes to its
runtime folder, and has its driver (tests/runtime/driver) load the simulator library by name.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from runtime_kernels import ADD, pointer, scalar

from compass_core import targets
from tests.compat.test_vendor_tools import (
    GRAPH,
    KERNEL,
    PLUGIN,
    check_call,
    occ,
    package,  # noqa: F401
    tools,  # noqa: F401
)

FAMILIES = ["X2_1204MP3", "X3P_1304", "X3S_1304MP2"]
W = np.array([1, -2, 3, 4, 5, 6, 7, 8], np.int32)
A = np.arange(16, dtype=np.int32).reshape(2, 8)


def family(target):
    return targets.load(target).version.lower()


class FrontEnd:
    """The output tree of one kernel of the package, and how the package goes on from it."""

    def __init__(self, gbuilder, simulators, driver):
        self.gbuilder, self.simulators, self.driver = gbuilder, simulators, driver
        self.runtime = gbuilder.parent / "runtime"
        self.runtime.mkdir()

    def build(self, target, text=KERNEL):
        (self.gbuilder / "op_lib" / "scale.cl").write_text(text)
        occ(self.gbuilder, mcpu=target.partition("MP")[0])
        (self.gbuilder / "compass_ir.txt").write_text(GRAPH)
        (self.gbuilder / "compass_ir.bin").write_bytes(W.tobytes())
        (self.gbuilder / "aipubt_gb_scale.py").write_text(PLUGIN)
        check_call(self.gbuilder, "aipugb", "compass_ir.txt", "-w", "compass_ir.bin", "--target", target)

    def run(self, target, a):
        """(output, errors) of a run in the runtime folder, where outputs are 0x55 before."""
        program = shutil.which(f"aipu_simulator_{family(target)}")
        assert program is not None and Path(program).parent == self.simulators
        a.tofile(self.runtime / "input0")
        command = [
            self.driver,
            f"libaipu_simulator_{family(target)}.so",
            self.gbuilder / "aipu.bin",
            ".",
            "fill",
            "run",
        ]
        environment = os.environ | {"LD_LIBRARY_PATH": str(self.simulators)}
        done = subprocess.run(command, cwd=self.runtime, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout, np.fromfile(self.runtime / "output0", np.int32).reshape(a.shape), done.stderr

    def run_program(self, target, a):
        """The same with the stand-alone simulator."""
        a.tofile(self.runtime / "in.bin")
        command = [f"aipu_simulator_{family(target)}", self.gbuilder / "aipu.bin", "-i", "in.bin", "-o", "out.bin"]
        return subprocess.run(command, cwd=self.runtime, capture_output=True, text=True, check=False)


@pytest.fixture
def front_end(tools, package, plugin_folder, driver, monkeypatch):  # noqa: F811
    monkeypatch.setenv("PATH", f"{plugin_folder}:{os.environ['PATH']}")
    return FrontEnd(package, plugin_folder, driver)


@pytest.mark.parametrize("target", FAMILIES)
def test_a_kernel_of_the_package_runs_under_its_driver(front_end, target):
    front_end.build(target)
    _, out, errors = front_end.run(target, A)
    np.testing.assert_array_equal(out, A * W - 3)
    done = front_end.run_program(target, A)
    assert (errors, done.returncode, done.stdout, done.stderr) == ("", 0, "", "")
    np.testing.assert_array_equal(np.fromfile(front_end.runtime / "out.bin", np.int32).reshape(2, 8), A * W - 3)


BAD = KERNEL.replace(
    "  for (int i",
    """\
  if (a[0] == -1) out[-(1 << 29)] = 1;
  while (a[0] == -2) barrier(CLK_LOCAL_MEM_FENCE);
  for (int i""",
)


@pytest.mark.parametrize("target", FAMILIES[:2])
def test_a_job_that_fails_is_no_result(front_end, target, monkeypatch):
    front_end.build(target, BAD)
    monkeypatch.setenv("COMPASS_TIMEOUT", "0.2")
    for back, why in ((1, r"6: TEC \d faulted .*"), (2, "7: the kernel did not finish within its time limit")):
        said, out, errors = front_end.run(target, A - back)
        assert said.startswith("end 4 ") and (out == 0x55555555).all()
        assert re.fullmatch(rf"compass simulator: error: .* failed: scale\.cl:{why}; the outputs .*\n", errors)
        done = front_end.run_program(target, A - back)
        assert done.returncode == 1 and not (front_end.runtime / "out.bin").exists()
        assert re.fullmatch(rf"aipu_simulator_{family(target)}: error: scale\.cl:{why}\n", done.stderr)
    _, out, _ = front_end.run(target, A)
    np.testing.assert_array_equal(out, A * W - 3)


@pytest.fixture
def simulate(plugin_folder, tmp_path):
    """A run of a stand-alone simulator."""

    def run(target, *words):
        command = [plugin_folder / f"aipu_simulator_{family(target)}", *map(str, words)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    return run


def test_several_inputs_and_outputs_of_the_stand_alone_simulator(simulate, build, tmp_path):
    text = """
    __kernel void k(__global int* a, __global int* b, __global int* sum, __global int* difference) {
      int i = get_local_id(0);
      sum[i] = a[i] + b[i];
      difference[i] = a[i] - b[i];
      if (i == 1) printf("sum %d\\n", sum[i]);
    }
    """
    path = build(
        text,
        pointer("a", "input", shape=(4,)),
        pointer("b", "input", 1, shape=(4,)),
        pointer("sum", "output", shape=(4,)),
        pointer("difference", "output", 1, shape=(4,)),
        uses_printf=True,
    )
    a, b = np.array([5, 6, 7, 8], np.int32), np.array([1, 2, 3, 4], np.int32)
    a.tofile(tmp_path / "a")
    b.tofile(tmp_path / "b")
    for words in (["-i", "a,b"], ["-i", "a", "-i", "b"]):
        done = simulate("X2_1204", *words, path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "sum 8\n", "")
        np.testing.assert_array_equal(np.fromfile(tmp_path / "output.bin", np.int32), a + b)
        np.testing.assert_array_equal(np.fromfile(tmp_path / "output.bin1", np.int32), a - b)
        (tmp_path / "output.bin").unlink()


WRONG = [
    (["k"], 1, "there are 0 input files, and 'k' has 1 inputs"),
    (["k", "-i", "a,a"], 1, "there are 2 input files"),
    (["k", "-i", "none"], 1, "cannot read 'none': No such file or directory"),
    (["k", "-i", "short"], 1, "'short' has 31 bytes, and input 0 has 32"),
    (["k", "-i", "long"], 1, "'long' has more than 32 bytes, and input 0 has 32"),
    (["k", "-i", "a", "-o", "none/out"], 1, "cannot write 'none/out': No such file or directory"),
    (["k", "-i", "."], 1, "cannot read '.': Is a directory"),
    (["a"], 1, "'a': file, byte 0: not an aipu.bin"),
    (["none"], 1, "cannot read 'none': No such file or directory"),
    (["k", "-x"], 2, "there is no option '-x'"),
    (["k", "-i"], 2, "option -i needs a value"),
    (["k", "k"], 2, "more than one aipu.bin: 'k' and 'k'"),
    ([], 2, "no aipu.bin is given"),
]


@pytest.mark.parametrize(("words", "status", "message"), WRONG)
def test_wrong_command_lines_of_the_stand_alone_simulator(simulate, build, tmp_path, words, status, message):
    ends = pointer("a", "input", shape=(8,)), pointer("b", "output", shape=(8,)), scalar("n", value=8)
    shutil.copy(build(ADD, *ends), tmp_path / "k")
    for name, size in (("a", 32), ("short", 31), ("long", 33)):
        (tmp_path / name).write_bytes(bytes(size))
    done = simulate("X2_1204", *words)
    assert done.returncode == status and message in done.stderr and done.stdout == ""
    assert not (tmp_path / "output.bin").exists()


def test_a_stand_alone_simulator_is_for_its_family(simulate, build):
    ends = pointer("a", "input", shape=(8,)), pointer("b", "output", shape=(8,)), scalar("n", value=8)
    done = simulate("X3P_1304", build(ADD, *ends))
    assert done.returncode == 1 and "is for targets of another family" in done.stderr
    assert simulate("X3S_1304", "--version").stdout.startswith("aipu_simulator_x3s, compassc ")
    assert simulate("X3S_1304", "--help").stdout.startswith("usage: aipu_simulator_x3s ")
