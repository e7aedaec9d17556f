"""`compassc build --toolchain vendor`: the vendor's programs are called as the vendor calls them, on files as it writes them.

Stand-ins play the programs: they note how they were called and check what they are given. Our own commands of those names
can take their place, too.
"""

import json
import os
import stat
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from compass_runtime import Program
from compassc.gbuilder.plugin_host import plugins

KERNEL = """from compassc.dsl import script as S

@S.prim_func
def scale(a: S.ptr("i32", "global"), w: S.ptr("i32", "global.1"), out: S.ptr("i32", "global"), n: S.i32):
    for i in range(S.get_local_id(), n, S.get_local_size()):
        S.vstore(S.vload(a + i * 8) * S.vload(w), out + i * 8)
"""
STAND_IN = """#!{python}
import json, os, pathlib, sys
name = pathlib.Path(sys.argv[0]).name
with open({notes!r}, "a") as notes:
    notes.write(json.dumps([name, os.getcwd(), sys.argv[1:]]) + "\\n")
{body}
"""
COMPILER = """
text = pathlib.Path(sys.argv[-1]).read_text()
assert "#include <compass/dsl.h>" in text and "__kernel void scale(" in text
pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_bytes(b"NPU object")
"""
BUILDER = """
graph, weights = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[3])
assert "layer_type=DSL_scale" in graph.read_text() and "n=4" in graph.read_text() and "-1" not in graph.read_text()
assert len(weights.read_bytes()) == 32
assert pathlib.Path("aipubt_gb_scale.py").is_file() and pathlib.Path("scale.o").read_bytes() == b"NPU object"
pathlib.Path("aipu.bin").write_bytes(b"binary for silicon")
print("Total errors: 0, warnings: 0")
"""
GIVEN = ["--set", "n=4", "--shape", "a=4x8", "--shape", "out=4x8", "--const", "w=w.npy"]


@pytest.fixture
def kernel(tmp_path, monkeypatch, compassc):
    monkeypatch.delenv("COMPASS_VENDOR_TOOLS", raising=False)
    (tmp_path / "kernel.py").write_text(KERNEL)
    np.save(tmp_path / "w.npy", np.arange(8, dtype="int32"))
    return tmp_path


@pytest.fixture
def sdk(kernel):
    """A function: the folder `sdk` with programs of these bodies; without bodies those that do all well."""

    def install(compiler=COMPILER, builder=BUILDER):
        programs = kernel / "sdk" / "bin"
        programs.mkdir(parents=True, exist_ok=True)
        header = kernel / "sdk" / "include" / "compass" / "dsl.h"
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text("")
        for name, body in (("aipuocc", compiler), ("aipugb", builder)):
            text = STAND_IN.format(python=sys.executable, notes=str(kernel / "calls"), body=body)
            (programs / name).write_text(text)
            (programs / name).chmod(stat.S_IRWXU)
        return programs.parent

    return install


def calls(folder):
    return [json.loads(line) for line in (folder / "calls").read_text().splitlines()]


@pytest.mark.parametrize("by", ["switch", "switch of bin", "PATH"])
def test_the_programs_are_called_as_the_vendor_calls_them(by, sdk, kernel, compassc, monkeypatch):
    home = sdk()
    if by == "PATH":
        monkeypatch.setenv("PATH", f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}")
    else:
        monkeypatch.setenv("COMPASS_VENDOR_TOOLS", str(home if by == "switch" else home / "bin"))
    done = compassc("build", "kernel.py", "-t", "X2_1204MP3", "--toolchain", "vendor", *GIVEN, "-o", "board.bin")
    assert done.status == 0, done.err
    assert (kernel / "board.bin").read_bytes() == b"binary for silicon"
    stages = kernel / "kernel.compass"
    assert calls(kernel) == [
        [
            "aipuocc",
            str(stages),
            "-c -target aipu -mcpu=X2_1204 -I".split() + [str(home / "include"), "-o", "scale.o", "scale.cl"],
        ],
        ["aipugb", str(stages), "compass_ir.txt -w compass_ir.bin --target X2_1204MP3".split()],
    ]
    log = (stages / "aipugb.log").read_text()
    assert f"working directory: {stages}" in log and "command: " in log and "Total errors: 0" in log
    versions = yaml.safe_load((stages / "build.yaml").read_text())["versions"]
    assert versions["aipugb"] == str(home / "bin" / "aipugb") and "clang" not in versions


def test_the_files_drop_into_the_vendors_packages(sdk, kernel, compassc, monkeypatch):
    monkeypatch.setenv("COMPASS_VENDOR_TOOLS", str(sdk()))
    assert compassc("build", "kernel.py", "--toolchain", "vendor", *GIVEN).status == 0
    stages = kernel / "kernel.compass"
    source = (stages / "scale.cl").read_text()
    assert "compass_entry" not in source and "#line" not in source and "# 1" not in source
    with plugins([stages], "X2_1204") as found:  # the vendor's interface, as `compassc gbuild --plugins` offers it
        (plugin,) = found
        assert plugin.instance.generate_code_name(None, None) == "scale.o"
        assert plugin.instance.get_graph_pattern()[0][0][1] is not None


def test_dry_runs_print_the_commands(sdk, kernel, compassc, monkeypatch):
    monkeypatch.setenv("COMPASS_VENDOR_TOOLS", str(sdk()))
    done = compassc("build", "kernel.py", "--toolchain", "vendor", *GIVEN, "--dry-run")
    first, second = done.out.splitlines()
    assert "aipuocc -c -target aipu" in first and "aipugb compass_ir.txt -w" in second
    assert not (kernel / "calls").exists() and not (kernel / "aipu.bin").exists()


def test_our_own_commands_do_as_well(kernel, compassc, monkeypatch):
    monkeypatch.setenv("COMPASS_VENDOR_TOOLS", str(Path(sys.executable).parent))
    done = compassc("build", "kernel.py", "--toolchain", "vendor", *GIVEN)
    assert done.status == 0, done.err
    assert "for the simulator, not for a board" in done.err
    a, out = np.arange(32, dtype="int32").reshape(4, 8), np.zeros((4, 8), "int32")
    Program.load(kernel / "aipu.bin").call([a, np.arange(8, dtype="int32"), out, 4])
    assert np.array_equal(out, a * np.arange(8))


def test_on_path_the_vendors_go_before_ours(sdk, kernel, compassc, monkeypatch):
    home = sdk()
    monkeypatch.setenv(
        "PATH", os.pathsep.join([str(Path(sys.executable).parent), str(home / "bin"), os.environ["PATH"]])
    )
    assert compassc("build", "kernel.py", "--toolchain", "vendor", *GIVEN).status == 0
    assert [name for name, *_ in calls(kernel)] == ["aipuocc", "aipugb"]


MISTAKE = """
print("scale.cl:{line}:7: error: unknown builtin")
sys.exit(1)
"""


def test_an_error_of_the_compiler_names_the_kernels_line(sdk, kernel, compassc, monkeypatch):
    monkeypatch.setenv("COMPASS_VENDOR_TOOLS", str(sdk()))
    assert compassc("build", "kernel.py", "--toolchain", "vendor", *GIVEN, "--save-temps-dir", "kept").status == 0
    lines = (kernel / "kept" / "scale.cl").read_text().splitlines()
    line = next(i for i, text in enumerate(lines, 1) if "__vstore" in text)
    sdk(MISTAKE.format(line=line))
    done = compassc("build", "kernel.py", "--toolchain", "vendor", *GIVEN)
    assert done.status == 1 and "kernel.py:6: error: unknown builtin [vendor-tool]" in done.err
    assert "S.vstore" in done.err and not (kernel / "kernel.compass").exists()


@pytest.mark.parametrize(
    ("bodies", "said"),
    [
        ({"builder": "print('no such layer'); sys.exit(3)"}, "aipugb ended with status 3"),
        ({"builder": "pathlib.Path('aipu.bin').write_text('x'); print('Total errors: 2')"}, "aipugb says 2 errors"),
        ({"builder": "pass"}, "aipugb made no aipu.bin"),
        ({"compiler": "pathlib.Path('scale.o').touch()"}, "aipuocc made no scale.o"),
    ],
)
def test_failures(bodies, said, sdk, kernel, compassc, monkeypatch):
    monkeypatch.setenv("COMPASS_VENDOR_TOOLS", str(sdk(**bodies)))
    done = compassc("build", "kernel.py", "--toolchain", "vendor", *GIVEN)
    assert done.status == 1 and f"error: {said}" in done.err and "it was: cd " in done.err
    assert not (kernel / "aipu.bin").exists()


def test_what_is_open_is_refused(sdk, kernel, compassc, monkeypatch):
    monkeypatch.setenv("COMPASS_VENDOR_TOOLS", str(sdk()))
    done = compassc("build", "kernel.py", "--toolchain", "vendor", "--const", "w=w.npy")
    assert done.status == 1 and "vendor-open" in done.err and "--set n=VALUE" in done.err


def test_a_missing_sdk_is_told(kernel, compassc, monkeypatch):
    monkeypatch.setenv("COMPASS_VENDOR_TOOLS", str(kernel))
    done = compassc("build", "kernel.py", "--toolchain", "vendor", *GIVEN)
    assert done.status == 3 and "no-vendor-tool" in done.err and "COMPASS_VENDOR_TOOLS" in done.err
