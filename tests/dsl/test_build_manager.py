"""BuildManager and Executor: what they accept, where files go, and how arguments are taken."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import compass_runtime as rt
from compass_core.errors import CompassError
from compassc import te
from compassc.dsl import Aiff, BuildManager, CompassInfo, hw_native_vdtype, resolve_dtype_alias
from compassc.dsl import script as S
from compassc.settings.options import control_options


@S.prim_func
def add_one(a: S.ptr("int32", "global"), b: S.ptr("int32", "global"), n: S.i32):
    for i in range(n):
        b[i] = a[i] + 1


@S.prim_func
def scale(
    a: S.ptr("int32", "global"), w: S.ptr("int32", "global.1"), b: S.ptr("int32", "global"), c: S.ptr("int32", "global")
):
    for i in range(4):
        b[i] = a[i] * w[i]
        c[i] = a[i] - w[i]


@S.prim_func
def is_null(a: S.ptr("int32", "global"), b: S.ptr("int32", "global"), n: S.i32):
    if n > 0:
        b[0] = a[0]


@S.prim_func
def starts_aiff(d: S.ptr("uint32", "global"), b: S.ptr("int32", "global")):
    S.aiff(d, d + 8, d + 16)
    b[0] = 1


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ints(*values):
    return np.array(values, np.int32)


def files(folder):
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


LAYOUT = {
    "gbuilder/op_lib/add_one.cl",
    "gbuilder/op_lib/add_one.o",
    "gbuilder/op_lib/add_one.log",
    "gbuilder/compass_ir.txt",
    "gbuilder/compass_ir.bin",
    "gbuilder/aipubt_gb_add_one.py",
    "gbuilder/aipu.bin",
}


def test_the_documented_files_are_in_the_output_folder_and_nothing_elsewhere(here, monkeypatch):
    monkeypatch.setenv("OUT", str(here / "out"))
    BuildManager(output_dir="$OUT").build(add_one)
    assert files(here / "out") >= LAYOUT
    assert os.listdir(here) == ["out"]
    ex = BuildManager().build(add_one)
    BuildManager().gen_op_lib(add_one)
    ex(ints(1), b := ints(0), 1)
    assert b.tolist() == [2] and os.listdir(here) == ["out"]


def test_gen_op_lib_writes_beside_the_object(here, caplog):
    manager = BuildManager(output_dir="out")
    manager.gen_op_lib(add_one, output_path="lib/x.o", verbose=True)
    assert {"x.o", "x.cl", "x.log"} <= files(here / "lib") and not (here / "out").exists()
    assert "x.o" in caplog.text
    assert [(p.name, p.category, p.tensor_idx) for p in manager.prim_func_info.param_infos] == [
        ("a", "input_tensor", 0),
        ("b", "output_tensor", 0),
        ("n", "attr", None),
    ]
    manager.gen_op_lib(add_one, name="other")
    assert files(here / "out") >= {"gbuilder/op_lib/other.o"}


def test_functions_modules_and_ir_functions_are_accepted():
    manager = BuildManager()
    module = manager.lower(add_one)
    for inp, name, expected in (
        (add_one, None, "add_one"),
        (add_one, "renamed", "renamed"),
        (module, "x", "add_one"),
        (module.entry_func, None, "add_one"),
        (module.entry_func, "given", "given"),
    ):
        ex = manager.build(inp, name)
        ex(ints(1, 2), b := ints(0, 0), 2)
        assert (ex.name, b.tolist()) == (expected, [2, 3])
        assert f" {expected}(" in ex.c_code
    for wrong in (len, 3):
        with pytest.raises(ValueError, match="cannot build"):
            manager.build(wrong)


def test_a_schedule_is_refused_with_the_functions_that_take_it():
    b = te.compute((8,), lambda i: i, name="b")
    with pytest.raises(ValueError, match="cannot build a Schedule") as caught:
        BuildManager().build(te.create_schedule(b))
    assert "te.lower(schedule, args)" in caught.value.help and "te.build(schedule, args, target)" in caught.value.help


def test_options_reach_the_compiler_and_the_passes(here):
    BuildManager(output_dir="out", cc_options="-DX='a b' -O1").gen_op_lib(add_one)
    log = (here / "out/gbuilder/op_lib/add_one.log").read_text()
    assert "'-DX=a b' -O1" in log
    with pytest.raises(CompassError, match="quotation"):
        BuildManager(cc_options="'").gen_op_lib(add_one)
    with pytest.raises(CompassError, match="unknown pass"):
        BuildManager(disabled_pass=["nothing_such"]).lower(add_one)
    assert BuildManager("compass -mcpu=X3P_1304").target.name == "X3P_1304"


def test_constants_several_outputs_and_changing_sizes_of_constants():
    ex = BuildManager().build(scale)
    for w in (ints(1, 2, 3, 4), ints(5, 6, 7, 8), ints(1, 1, 1, 1, 9, 9)):
        b, c, a = ints(0, 0, 0, 0), ints(0, 0, 0, 0), ints(10, 20, 30, 40)
        ex(a, w, b, c)
        assert (b == a * w[:4]).all() and (c == a - w[:4]).all()
    with pytest.raises(CompassError, match=r"argument 2 \('w'\) must be a non-empty ndarray"):
        ex(a, None, b, c)


def test_threads_may_call_one_executor_with_constants_of_their_own():
    ex = BuildManager().build(scale)

    def one(seed):
        a, w = np.arange(4, dtype=np.int32) + seed, np.full(4 + seed % 3, seed, np.int32)
        b, c = ints(0, 0, 0, 0), ints(0, 0, 0, 0)
        ex(a, w, b, c)
        return (b == a * seed).all() and (c == a - seed).all()

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(one, range(24)))


SCALARS = {
    "int8": -5,
    "uint8": 200,
    "int16": -30000,
    "uint16": 60000,
    "int32": -(2**31),
    "uint32": 2**32 - 1,
    "float16": 1.5,
    "float32": -2.25,
    "bfloat16": 3.0,
    "bool": True,
}


@pytest.mark.parametrize("dtype", SCALARS)
def test_scalars_of_every_dtype_arrive(dtype, tmp_path):
    source = tmp_path / f"k_{dtype}.py"
    stored = {"bfloat16": "float32", "bool": "int32", "float16": "float32"}.get(dtype, dtype)
    source.write_text(
        "from compassc.dsl import script as S\n\n\n@S.prim_func\n"
        f"def k(b: S.ptr('{stored}', 'global'), x: S.{dtype}):\n"
        f"    b[0] = S.cast(x, '{stored}')\n"
    )
    from compassc.dsl import load_kernels

    ex = BuildManager().build(load_kernels(source).entry(None))
    b = np.zeros(1, stored)
    ex(b, SCALARS[dtype])
    assert b[0] == SCALARS[dtype]
    ex(b, np.array([SCALARS[dtype]]).astype(rt.empty(1, dtype).numpy().dtype)[0])
    assert b[0] == SCALARS[dtype]


@S.prim_func
def stores_scalars(b: S.ptr("int32", "global"), f: S.ptr("fp32", "global"), n: S.i8, u: S.u16, h: S.fp16):
    b[0] = n
    b[1] = u
    f[0] = S.fp32(h)


@pytest.mark.parametrize(
    ("n", "u", "h"),
    [
        (-128, 65535, 65504),
        (127.0, np.float32(2), -0.0),
        (np.int64(5), True, float("inf")),
        (0, 0, np.float16(1.5)),
        (128, 0, 0),
        (0, -1, 0),
        (1.5, 0, 0),
        (0, 0, 1e6),
        (float("nan"), 0, 0),
        (0, 10**400, 0),
        (0, 0, 10**400),
    ],
)
def test_scalars_that_fit_arrive_and_others_are_refused_compiled_and_in_pysim(n, u, h):
    outcomes = []
    for run in (BuildManager().build(stores_scalars), stores_scalars):
        b, f = ints(9, 9), np.zeros(1, np.float32)
        try:
            run(b, f, n, u, h)
        except CompassError as error:
            outcomes.append(("refused", error.code))
        else:
            outcomes.append((b.tolist(), f.tobytes()))
    fits = -128 <= n <= 127 and n == int(n) and 0 <= u < 65536 and (abs(h) <= 65504 or h == float("inf"))
    right = ([int(n), int(u)], np.float32(h).tobytes()) if fits else ("refused", "scalar-value")
    assert outcomes == [right, right]


@pytest.mark.parametrize("null", [None, 0])
def test_null_pointers(null):
    ex = BuildManager().build(is_null)
    ex(null, b := ints(7), 0)
    ex(ints(3), b, 1)
    assert b.tolist() == [3]


def test_outputs_that_are_read_only_are_refused_compiled_and_in_pysim():
    b = ints(7)
    b.flags.writeable = False
    for run in (BuildManager().build(add_one), add_one):
        with pytest.raises(CompassError) as caught:
            run(ints(3), b, 1)
        assert caught.value.code == "read-only" and "copy" in caught.value.help


@pytest.mark.parametrize("how", [lambda m: m.build(), lambda m: m.build(add_one, output_dir="here")])
def test_a_call_of_the_builder_that_does_not_fit_is_pythons_own_error(how):
    with pytest.raises(TypeError, match=r"inp|output_dir"):
        how(BuildManager())


def test_a_view_is_copied_in_and_out():
    ex = BuildManager().build(add_one)
    a, b = np.arange(12, dtype=np.int32).reshape(3, 4), np.zeros((3, 4), np.int32)
    ex(a[1:, ::2], b[:, ::3][:2], 4)
    assert b.tolist() == [[5, 0, 0, 7], [9, 0, 0, 11], [0, 0, 0, 0]]
    b = np.zeros((4, 4), np.int32)
    for call in (
        lambda *args: ex.benchmark(*args, repeat=1, number=1),
        lambda *args: ex.schedule(*args, seed=3),
        ex.check,
        ex.profile,
    ):
        b[...] = 0
        call(a[:, 1], b[1:, 2], 3)
        assert b.T.tolist() == [[0] * 4, [0] * 4, [0, 2, 6, 10], [0] * 4]


def test_benchmark_times_the_run_and_leaves_the_result():
    ex = BuildManager().build(add_one)
    a, b = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    result = ex.benchmark(a, b, 64, repeat=3, number=2, min_repeat_ms=0)
    assert (b == a + 1).all()
    assert len(result.results) == 3 and result.min <= result.median <= result.max
    assert 0 < result.device.mean <= result.mean and result.std >= 0
    with pytest.raises(ValueError, match="number is 0"):
        ex.benchmark(a, b, 64, number=0)


def test_what_is_not_there_says_so():
    ex = BuildManager().build(add_one)
    for wrong, message in (
        (lambda: setattr(ex, "rpc_sess", object()), "a remote session is made by"),
        (lambda: ex(ints(1), ints(1)), "takes 3 arguments, 2 given"),
        (lambda: ex(ints(1), [1], 1), "must be a NumPy array"),
    ):
        with pytest.raises(CompassError, match=message):
            wrong()


def test_profile_gives_the_total_cycles_and_writes_a_page(tmp_path, capsys, monkeypatch):
    ex = BuildManager(output_dir=str(tmp_path)).build(add_one)
    a, b = np.arange(64, dtype="int32"), np.zeros(64, "int32")
    cycles = ex.profile(a, b, 64)
    assert capsys.readouterr().out == f"Total Cycles: {cycles}\n" and cycles == ex.latest_profile.cycles > 0
    assert (b == a + 1).all() and sorted(p.name for p in (tmp_path / "runtime").iterdir()) == [
        "profile_output.html",
        "profile_trace.json",
    ]
    assert f'"Total Cycles": {cycles},' in (tmp_path / "runtime" / "profile_output.html").read_text()
    monkeypatch.setenv("CPS_DSL", "profile")
    BuildManager().build(add_one)(a, b, 64)
    assert capsys.readouterr().out == f"Total Cycles: {cycles}\n"


@S.prim_func
def may_start_aiff(d: S.ptr("uint32", "global"), b: S.ptr("uint32", "global"), start: S.i32):
    if start > 0:
        S.aiff(d, d + 8, d + 16)
    for i in range(16):
        b[i] = d[i]


def test_descriptors_are_words_in_memory_with_the_addresses_of_arrays():
    aiff, data, weights, out = Aiff(), np.zeros(64, np.int8), np.zeros(32, np.int8), np.full(32, 3, np.int8)
    aiff.mtp[0].iact_addr, aiff.mtp[1].iact_addr = data[16:], data
    aiff.mtp[0].weight_addr, aiff.wrb.region0_oact_addr = weights, out
    aiff.add_new_register_config(copy_idx=0)
    aiff.ptp.mode.relu_en = 1
    chains = aiff.gen_descriptor()
    ex, b = BuildManager().build(may_start_aiff), np.zeros(16, np.uint32)
    ex(chains.act + chains.ctrl, b, 0)
    assert b[8] > 0 and b[0] - b[8] == 16
    ex(chains.ctrl + chains.param + chains.act, b, 0)
    first = len(next(iter(chains.ctrl[0])))
    assert b[0] == 0x18 and b[3] * 8 == first and b[1] > 0
    content = ex.program.content
    assert {info.name for info in (*ex.program.inputs, *ex.program.outputs)} == {"d_in0", "b", "d_out0"}
    assert len(content.desc) == chains.nbytes and sorted(r.target_offset for r in content.remap) == [0, 4 * first]
    assert out.tolist() == [3] * 32
    with pytest.raises(CompassError, match="AIFF node 0: .* is not modelled"):
        ex(chains, b, 1)


def test_a_kernel_that_starts_the_aiff_builds_but_does_not_run():
    ex = BuildManager().build(starts_aiff)
    with pytest.raises(CompassError, match="AIFF node 0: .* is not modelled"):
        ex(Aiff().gen_descriptor(), ints(0))
    with pytest.raises(CompassError, match=r"argument 1 \('d'\) must be a non-empty DescChainArray"):
        ex(ints(0), ints(0))


def test_an_executor_is_exported_as_a_module(tmp_path):
    BuildManager().build(add_one).module.export_library(tmp_path / "m.so")
    module = rt.load_module(tmp_path / "m.so")
    module["add_one"](ints(1, 2), b := ints(0, 0), 2)
    assert b.tolist() == [2, 3]
    lowered = BuildManager().lower(add_one)
    rt.code_generator("compass")(lowered, "X2_1204")(ints(4), b, 1)
    assert b.tolist() == [5, 3]


def test_options_of_the_environment(here, monkeypatch):
    monkeypatch.setenv("CPS_DSL", "dbg; rs=7 ;asm")
    found = control_options()
    assert (found.is_debug, found.is_asm, found.is_emu, found.random_seed) == (True, True, False, 7)
    ex = BuildManager(output_dir="out").build(add_one)
    ex(ints(1), b := ints(0), 1)
    folder = here / "out/gbuilder"
    assert (folder / "npu_output.bin").read_bytes() == b.tobytes() == ints(2).tobytes()
    assert (folder / "input0.bin").read_bytes() == ints(1).tobytes()
    assert os.access(folder / "run_aipurun.sh", os.X_OK)
    assert "add_one" in (folder / "op_lib/add_one.s").read_text()
    assert "-O0 -g" in (folder / "op_lib/add_one.log").read_text()
    for wrong in ("nothing", "rs", "rs=x", "debug=1"):
        monkeypatch.setenv("CPS_DSL", wrong)
        with pytest.raises(ValueError, match=wrong):
            control_options()
    monkeypatch.delenv("CPS_DSL")
    monkeypatch.setenv("CPS_TVM_GBUILDER_TARGET", "X3S_1304")
    assert BuildManager("X2_1204").target.name == "X3S_1304"


def test_tensors_of_runs_are_dumped_for_the_variable(here, monkeypatch):
    monkeypatch.setenv("CPS_TVM_RUNTIME_DUMP", "true")
    ex = BuildManager(output_dir="out").build(add_one)
    ex(ints(1), b := ints(0), 1)
    written = {name: (here / "out/gbuilder" / name).read_bytes() for name in ("input0_int32.bin", "output0_int32.bin")}
    assert written == {"input0_int32.bin": ints(1).tobytes(), "output0_int32.bin": b.tobytes()}
    assert not (here / "out/gbuilder/input0.bin").exists()


def test_what_the_environment_asks_for_in_vain_is_said(monkeypatch, caplog):
    monkeypatch.setenv("CPS_DSL", "rpc=key; rs=77")
    monkeypatch.setenv("CPS_TVM_RUNTIME_SPM", "1;2;3;4;5;x")
    caplog.set_level("INFO", "Compass")
    for _ in range(2):
        ex = BuildManager().build(add_one)
        with pytest.raises(CompassError, match="a remote session needs a tracker"):
            ex(ints(1), ints(0), 1)
    assert caplog.text.count("CPS_DSL: rpc; random_seed=77; rpc_key=key") == 1
    assert caplog.text.count("CPS_TVM_RUNTIME_SPM has no effect: ") == 1


@pytest.mark.parametrize(
    "row",
    [
        "X2_1204 X2 1 4 32768 262144",
        "X2_1204MP3 X2 3 4 32768 262144",
        "X3P_1304MP4 X3P 4 4 32768 131072",
        "X3S_1304 X3S 1 4 32768 131072",
    ],
)
def test_target_information(row):
    name, version, *numbers = row.split()
    info = CompassInfo.get(name)
    assert (info.name, info.version, info.vector_width) == (name, version, 256)
    assert [info.core_count, info.tec_count, info.lsram_size(), info.gsram_size()] == list(map(int, numbers))
    with pytest.raises(CompassError, match="piece 1 does not exist; valid: 0 to 0"):
        info.lsram_size(1)
    assert CompassInfo.current() is None


def test_dtype_helpers():
    assert [hw_native_vdtype(d) for d in ("i8", "fp16", "uint32", "bf16", "i8x64")] == [
        "int8x32",
        "float16x16",
        "uint32x8",
        "bfloat16x16",
        "int8x32",
    ]
    assert resolve_dtype_alias("i8x32").lanes == 32
    for wrong in ("bool", "nonsense"):
        with pytest.raises(CompassError):
            hw_native_vdtype(wrong)


def test_c_text_is_compiled_by_hand(here):
    from compassc.compat.cc import INCLUDE_DIR_IN_PKG, CompassCompileCError, compile_c

    text = "#include <compass/dsl.h>\n__kernel void k(__global int* a) { a[0] = N; }\n"
    made = compile_c(text, extra_options="-DN=3", output_path="x.o", work_dir="lib")
    assert made == (here / "lib/x.o").read_bytes()
    assert {"x.cl", "x.log", "x.o"} <= files(here / "lib")
    assert compile_c("lib/x.cl", "X3P_1304", "-DN=4") and os.listdir(here) == ["lib"]
    assert os.path.exists(os.path.join(INCLUDE_DIR_IN_PKG, "compass", "dsl.h"))
    (here / "lib/inc").mkdir()
    (here / "lib/inc/n.h").write_text("#define N 5\n")
    assert compile_c(text.replace("<", '"n.h"\n#include <', 1), extra_options="-I inc", work_dir="lib")
    with pytest.raises(CompassCompileCError, match="'N'") as caught:
        compile_c(text, output_path="y.o")
    assert isinstance(caught.value, RuntimeError) and "'N'" in caught.value.log_path.read_text()


def test_arrays_that_fit_no_memory_are_refused_at_build(kernel):
    source = """
    @S.prim_func
    def k(x: S.ptr("i32", "global")):
        a = S.alloc((1 << 20,), "i32", scope="lsram")
        S.dma_copy(a, x, 1 << 20)
        S.dma_copy(x, a, 1 << 20)
    """
    with pytest.raises(CompassError, match="4194304 bytes do not fit the LSRAM of one TEC"):
        BuildManager().build(kernel(source).entry("k"))
