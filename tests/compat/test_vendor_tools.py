"""`aipuocc` and `aipugb` on PATH serve the vendor's own DSL package, whose part this module plays.

It writes the files that package writes, calls the programs as it does (command lines, folders, checks of the tool and
of what it says), and has the aipu.bin run.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from compass_runtime import Program

ROOT = Path(__file__).parents[2]
KERNEL = """\
#include <compass/dsl.h>

__kernel void scale(__global int* a, __global int* w, __global int* out, short bias);

__kernel void scale(__global int* a, __global int* w, __global int* out, short bias) {
  for (int i = 0; i < 2; i += 1) {
    int8 va = __vload((__global int8*)(a + i * 8), ALL_TRUE_w);
    __vstore(va * __vload((__global int8*)w, ALL_TRUE_w) + (int8)bias, (__global int8*)(out + i * 8), ALL_TRUE_w);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
"""
GRAPH = """\
model_name=unknown
layer_number=2
data_format=NHWC
precision=float32
batch_size=1
input_tensors=[input0]
output_tensors=[output0]
compat_quantized_model=false

layer_id=0
layer_name=0_input
layer_type=Input
layer_bottom=[]
layer_bottom_shape=[]
layer_bottom_type=[]
layer_top=[input0]
layer_top_shape=[2, 8]
layer_top_type=[int32]

layer_id=1
layer_name=dsl_func
layer_type=DSL_scale
layer_bottom=[input0]
layer_bottom_shape=[[2, 8]]
layer_bottom_type=[int32]
layer_top=[output0]
layer_top_shape=[[2, 8]]
layer_top_type=[int32]
w_type=int32
w_shape=[8]
w_offset=0
w_size=32
bias=-3
"""
PLUGIN = """\
import numpy as np
from AIPUBuilder.core import BuilderOpPlugin, BuilderParams, Tensor, register_optype
from AIPUBuilder.plugin_loader import PluginType, register_plugin

OP = register_optype("DSL_scale")


@register_plugin(PluginType.Builder, 0)
class DSL_scalePlugin(BuilderOpPlugin):
    def get_graph_pattern(self):
        return ([("useless", OP)], [])

    def get_score(self):
        return 10

    def set_target(self, target):
        self.target = target
        return True

    def check_params(self, nodes):
        return True

    def setup(self, sgnode, nodes):
        sgnode.attrs["keeping_layout"] = False
        return True

    def generate_code_name(self, sgnode, nodes):
        return "op_lib/scale.o"

    def generate_descriptor(self, sgnode, nodes):
        return BuilderParams()

    def generate_params(self, sgnode, nodes):
        ro = BuilderParams()
        for base in (sgnode.inputs[0], sgnode.constants["dsl_func/w"], sgnode.outputs[0]):
            tensor = Tensor(base)
            tensor.memory_offset().set_base_offset(base.memory_offset())
            tensor.memory_offset().relative_offset = 0
            ro.append(tensor)
        ro.append(int(np.int16(nodes[0].params["bias"]).view(np.int16)))
        return ro
"""


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A folder with the package's programs alone on PATH, as an installer writes them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, entry in re.findall(r'^(aipu\w+) = "(.+):main"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE):
        script = folder / name
        script.write_text(f"#!{sys.executable}\nimport sys\nfrom {entry} import main\nsys.exit(main())\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.path.dirname(sys.executable)}:/usr/bin:/bin")
    return folder


def check_call(work_dir, tool, *words):
    """Calls a tool as the package does: its log has folder, command line and all output, and tells of errors too."""
    found = shutil.which(tool)
    assert found is not None and Path(found).read_text().split("\n")[0].rpartition("/")[2].startswith("python")
    done = subprocess.run(
        [tool, *words], cwd=work_dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    log = f"{work_dir}\n{tool} {' '.join(words)}\n{done.stdout}"
    (work_dir / f"{tool}.log").write_text(log)
    if done.returncode != 0 or any(int(n) > 0 for n in re.findall(r"Total errors: (\d+)", log)):
        raise RuntimeError(log)
    return log


@pytest.fixture
def package(tmp_path):
    """The package's header folder (its header is for another compiler) and a folder of its output tree."""
    (tmp_path / "include" / "compass").mkdir(parents=True)
    (tmp_path / "include" / "compass" / "dsl.h").write_text("#error the header of the other compiler\n")
    out = tmp_path / "compass_dsl_scale_0123" / "gbuilder"
    (out / "op_lib").mkdir(parents=True)
    (out / "op_lib" / "scale.cl").write_text(KERNEL)
    return out


def occ(gbuilder, *words, mcpu="X2_1204", header="../../../include", source="scale.cl", output="scale.o"):
    return check_call(
        gbuilder / "op_lib",
        "aipuocc",
        "-c",
        "-target",
        "aipu",
        f"-mcpu={mcpu}",
        "-I",
        header,
        *words,
        "-o",
        output,
        source,
    )


@pytest.mark.parametrize("target", ["X2_1204", "X2_1204MP3", "X3P_1304"])
def test_a_kernel_of_the_package_is_compiled_built_and_run(tools, package, target):
    occ(package, mcpu=target.partition("MP")[0])
    assert sorted(os.listdir(package / "op_lib")) == ["aipuocc.log", "scale.cl", "scale.o"]
    w = np.array([1, -2, 3, 4, 5, 6, 7, 8], np.int32)
    (package / "compass_ir.txt").write_text(GRAPH)
    (package / "compass_ir.bin").write_bytes(w.tobytes())
    (package / "aipubt_gb_scale.py").write_text(PLUGIN)
    log = check_call(package, "aipugb", "compass_ir.txt", "-w", "compass_ir.bin", "--target", target)
    assert "Total errors: 0" in log and (package / "temp.graph.json").is_file()
    program = Program.load(package / "aipu.bin")
    a = np.arange(16, dtype=np.int32).reshape(2, 8)
    (result,) = program.create_job().run([a]).values()
    assert program.target == target and (result == a * w - 3).all()


@pytest.mark.parametrize("style", ["<compass/dsl.h>", '"compass/dsl.h"'])
@pytest.mark.parametrize("words", [(), ("-iquote", "../../../include"), ("-isystem../../../include",), ("-O0", "-g")])
def test_our_header_wins(tools, package, style, words):
    (package / "op_lib" / "scale.cl").write_text(KERNEL.replace("<compass/dsl.h>", style))
    shutil.copytree(package.parents[1] / "include" / "compass", package / "op_lib" / "compass")  # beside the text too
    occ(package, *words)
    assert (package / "op_lib" / "scale.o").stat().st_size > 0


def test_options_of_the_user_reach_the_compiler(tools, package):
    (package / "op_lib" / "more.h").write_text("#define BIAS bias\n")
    text = KERNEL.replace("#include <", '#include "more.h"\n#include <').replace("(int8)bias", "(int8)BIAS * SCALE")
    (package / "op_lib" / "scale.cl").write_text(text)
    occ(package, "-DSCALE=2", "-Wall")
    occ(package, "-D", "SCALE=2", "-I../../../include", output="../other.o", header=str(package))
    assert (package / "other.o").is_file()
    with pytest.raises(RuntimeError, match=r"scale.cl:9: error: C compiler: use of undeclared identifier 'SCALE'"):
        occ(package)
    with pytest.raises(RuntimeError, match="the C compiler has no option '-fno-such'"):
        occ(package, "-DSCALE=2", "-fno-such")
    with pytest.raises(RuntimeError, match="the C compiler has no option '-no-such'"):
        occ(package, "-DSCALE=2", "-mllvm", "-no-such")
    with pytest.raises(RuntimeError, match="target 'X1_1204' is not supported"):
        occ(package, mcpu="X1_1204")


def test_assembly_and_default_names(tools, package):
    folder = package / "op_lib"
    subprocess.run(["aipuocc", "-S", "-mcpu=X2_1204", "scale.cl"], cwd=folder, check=True)
    assert "scale" in (folder / "scale.s").read_text()
    (folder / "again.cl").write_text(KERNEL.replace("scale", "again"))
    subprocess.run(["aipuocc", "-c", "scale.cl", "again.cl"], cwd=folder, check=True)
    assert {"scale.o", "again.o"} < set(os.listdir(folder))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["scale.cl"], "neither -c nor -S"),
        (["-c"], "no C file is given"),
        (["-c", "-o"], "option -o needs a value"),
        (["-c", "-o", "x.o", "scale.cl", "scale.cl"], "-o names one file"),
        (["-c", "-target", "x86", "scale.cl"], "unknown target 'x86'"),
        (["-c", "missing.cl"], "cannot read 'missing.cl'"),
    ],
)
def test_wrong_command_lines(tools, package, words, message):
    done = subprocess.run(["aipuocc", *words], cwd=package / "op_lib", capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2) and message in done.stderr and done.stdout == ""


def test_help_and_version(tools):
    for word, wanted in (("--help", "-mcpu=NAME"), ("--version", "aipuocc, compassc")):
        assert wanted in subprocess.run(["aipuocc", word], capture_output=True, text=True, check=True).stdout


def test_the_output_of_build_manager_is_taken_by_the_programs(tools, tmp_path):
    """The tree that BuildManager writes is the package's: the programs make the same aipu.bin from it."""
    from compassc.dsl import BuildManager
    from compassc.dsl import script as S

    @S.prim_func
    def twice(a: S.ptr("int32", "global"), b: S.ptr("int32", "global")):
        S.vstore(S.vload(a) * 2, b)

    BuildManager(output_dir=tmp_path / "out").build(twice)
    out = tmp_path / "out" / "gbuilder"
    before = (out / "aipu.bin").read_bytes()
    (out / "op_lib" / "twice.o").unlink()
    occ(out, source="twice.cl", output="twice.o")
    check_call(out, "aipugb", "compass_ir.txt", "-w", "compass_ir.bin", "--target", "X2_1204")
    a = np.arange(8, dtype=np.int32)
    for content in (before, (out / "aipu.bin").read_bytes()):
        (result,) = Program.load(content).create_job().run([a]).values()
        assert (result == 2 * a).all()
