"""Tools around programs: archives, versions of CUDA, compilers of files, memory of results."""

import tvm
import tvm.topi.math
from tvm.contrib import cc, nvcc, pickle_memoize, tar, utils
from tvm.driver import build_module

assert build_module.lower is tvm.lower and tvm.driver.build is tvm.build and tvm.topi.math.exp is tvm.topi.exp
assert issubclass(tvm.TVMError, RuntimeError) and tvm.error.InternalError is tvm.TVMError
folder, other = utils.tempdir(), utils.tempdir()
source = folder.relpath("seven.c")
with open(source, "w") as file:
    file.write("int seven(void) { return 7; }\n")
cc.create_shared(folder.relpath("seven.so"), [source])
tar.tar(folder.relpath("all.tar"), [source, folder.relpath("seven.so")])
tar.untar(folder.relpath("all.tar"), other.temp_dir)
assert other.listdir() == ["seven.c", "seven.so"]
assert nvcc.parse_compute_version("8.6") == (8, 6) and nvcc.have_bf16("8.0") and not nvcc.have_fp16("5.2")
assert nvcc.get_target_compute_version(tvm.target.Target("cuda -arch=sm_86")) == "8.6"
calls = []


@pickle_memoize.memoize("tools")
def doubled(n):
    calls.append(n)
    return 2 * n


assert doubled(4) == doubled(4) == 8 and calls == [4]
for compile_again in (cc.cross_compiler(cc.get_cc()), cc.cross_compiler(cc.create_shared, output_format="so")):
    compile_again(folder.relpath("again.so"), [source])
    assert compile_again.output_format == "so" and "again.so" in folder.listdir()
