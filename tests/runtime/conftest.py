"""Kernels written by hand in the C dialect, compiled and built as the toolchain does it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from runtime_kernels import ADD, pointer, scalar

from compass_core import targets
from compass_runtime import clibrary, sim_plugin
from compass_sim import engine
from compassc.gbuilder import build_from_params
from compassc.toolchain import cc

HEAD = "#include <compass/dsl.h>\n\n"
DRIVER = Path(__file__).with_name("driver")


class Builder:
    """Compiles kernels; each text is compiled once per session."""

    def __init__(self, folder):
        self.folder = folder
        self.made = {}

    def __call__(self, text, *params, target="X2_1204", consts=None, **more):
        key = repr((text, params, target, sorted(more.items()), consts))
        if key not in self.made:
            folder = self.folder / str(len(self.made))
            folder.mkdir()
            source, out = folder / "k.cl", folder / "aipu.bin"
            source.write_text(HEAD + text)
            built = cc.compile_file(source, folder / "k.o", cc.CcOptions(targets.load(target)))
            info = {"format": "compassc-params/1", "kernel": "k", "target": target, "params": list(params), **more}
            build_from_params(info, built.object, folder, out, consts=consts)
            self.made[key] = out
        return self.made[key]


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    return Builder(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="session")
def add(build):
    """b = a + 1 over n elements, sizes open."""
    return build(ADD, pointer("a", "input"), pointer("b", "output"), scalar("n"))


@pytest.fixture(scope="session")
def add_fixed(build):
    """b = a + 1 over 8 elements."""
    return build(
        ADD, pointer("a", "input", shape=(2, 4), read=True), pointer("b", "output", shape=(2, 4)), scalar("n", value=8)
    )


ACCUMULATE = """
__kernel void k(__global int* a, __global int* sum, __global int* old) {
  if (get_local_id(0) == 0)
    for (int i = 0; i < 4; i++) { old[i] = sum[i]; sum[i] += a[i]; }
}
"""


@pytest.fixture(scope="session")
def accumulate(build):
    """sum += a, old = the sum before."""
    return build(
        ACCUMULATE,
        pointer("a", "input", shape=(4,)),
        pointer("sum", "output", shape=(4,), read=True),
        pointer("old", "output", 1, shape=(4,)),
    )


@pytest.fixture(scope="session")
def plugin_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugin")
    sim_plugin.write(folder / "written")
    return (folder / "written").rename(folder / "moved")


@pytest.fixture(scope="session")
def driver(plugin_folder):
    program = plugin_folder / "driver"
    native = clibrary.source_folder("native")
    sources = [*sorted(DRIVER.glob("*.c")), native / "file.c", engine.source_folder() / "start.c"]
    includes = [f"-I{folder}" for folder in (DRIVER, native, clibrary.include_folder(), engine.source_folder())]
    interpreter = engine.host_libraries()[2]
    engine.compile_and_link(
        sources, program, (*includes, "-fPIE", "-Werror"), ("-pie", "--dynamic-linker", interpreter)
    )
    return program


class Run:
    """What the driver printed, and the outputs it left."""

    def __init__(self, folder, done):
        self.folder, self.lines, self.errors = folder, done.stdout.splitlines(), done.stderr
        assert done.returncode == 0, done.stdout + done.stderr

    def output(self, number=0, dtype=np.int32):
        return np.fromfile(self.folder / f"output{number}", dtype)


@pytest.fixture
def run(driver, plugin_folder, tmp_path):
    def start(binary, target, inputs, *steps):
        for i, array in enumerate(inputs):
            array.tofile(tmp_path / f"input{i}")
        library = plugin_folder / sim_plugin.library_name(targets.load(target).version)
        command = [driver, library, binary, tmp_path, *steps]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, check=False)
        return Run(tmp_path, done)

    return start
