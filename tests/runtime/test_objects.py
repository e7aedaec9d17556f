"""Tensors, packed functions, modules and devices: what programs for the vendor's runtime use."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from runtime_kernels import ADD, pointer, scalar

import compass_runtime as rt
from compass_core.errors import CompassError
from compass_runtime.module import HostModule, Module, pack, unpack

DTYPES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 bool".split()


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_every_dtype_goes_to_a_tensor_and_back(dtype):
    a = rt.array(np.arange(6).reshape(2, 3).astype(rt.empty(1, dtype).numpy().dtype))
    assert (a.dtype, a.shape) == (dtype, (2, 3))
    assert np.asarray(a).ctypes.data % 64 == 0
    assert a.numpy().astype(float).sum() == (5 if dtype == "bool" else 15)
    assert np.shares_memory(np.asarray(a), np.asarray(a)) and not np.shares_memory(a.numpy(), np.asarray(a))


@pytest.mark.parametrize("dtype", DTYPES[:-1])
def test_dlpack_shares_memory_both_ways(dtype):
    ours = rt.array(np.zeros(4, dtype))
    theirs = np.from_dlpack(ours)
    ours[:] = 3
    assert theirs.tolist() == [3] * 4
    array = np.arange(4).astype(dtype)
    taken = rt.from_dlpack(array)
    array[0] = 9
    assert taken.numpy()[0] == 9
    again = rt.from_dlpack(taken.to_dlpack())
    array[:] = 4
    assert again.numpy().tolist() == [4] * 4 and again.same_as(again) and not again.same_as(taken)
    with pytest.raises(TypeError, match="int gives no memory"):
        rt.from_dlpack(3)


def test_views_and_copies():
    a = rt.array(np.arange(8, dtype=np.int32))
    view = a._create_view((2, 2), "int16", 4)
    view[:] = 1
    assert a.numpy().tolist() == [0, 0x10001, 0x10001, 3, 4, 5, 6, 7]
    assert a.copyto(rt.empty((8,), "int32")).numpy().tolist() == a.numpy().tolist()
    strided = rt.array(np.arange(8)[::2])
    assert strided.numpy().tolist() == [0, 2, 4, 6]
    for wrong in (lambda: a._create_view((9,)), lambda: a.copyfrom(np.zeros(3)), lambda: a.__setitem__(0, 1)):
        with pytest.raises(ValueError):
            wrong()


def test_functions_are_registered_called_and_forgotten():
    @rt.register_func("demo.twice")
    def twice(x):
        return x * 2

    assert rt.get_global_func("demo.twice")(21) == 42
    with pytest.raises(RuntimeError, match=r"demo\.twice"):
        rt.register_func("demo.twice", twice)
    rt.register_func("demo.twice", lambda x: x + 1, override=True)
    assert rt.get_global_func("demo.twice")(1) == 2
    assert "demo.twice" in rt.list_global_func_names()
    rt.remove_global_func("demo.twice")
    rt.remove_global_func("demo.twice")
    assert rt.get_global_func("demo.twice", allow_missing=True) is None
    with pytest.raises(ValueError, match=r"demo\.twice"):
        rt.get_global_func("demo.twice")


def test_values_cross_as_documented_and_errors_come_back():
    seen = rt.PackedFunc(lambda *args: list(args))
    array = np.zeros(3, np.float32)
    out = seen(None, True, 3, 2.5, "x", b"y", [1, np.int64(2)], {"k": (1,)}, array, len, rt.cpu())
    assert out[:8] == [None, True, 3, 2.5, "x", b"y", [1, 2], {"k": [1]}]
    assert np.shares_memory(np.asarray(out[8]), array)
    assert out[9]("abc") == 3 and isinstance(out[9], rt.PackedFunc)
    with pytest.raises(TypeError, match="argument 2 of .* set"):
        seen(1, {1, 2})
    with pytest.raises(ZeroDivisionError):
        rt.PackedFunc(lambda f: f())(lambda: 1 / 0)


def test_a_module_finds_functions_in_its_imports():
    low = rt.PythonModule({"f": lambda: "low", "g": lambda: "g"})
    top = rt.PythonModule({"f": lambda: "top"})
    top.import_module(low)
    assert (top["f"](), top["g"]()) == ("top", "g")
    assert not top.implements_function("g") and top.implements_function("g", query_imports=True)
    with pytest.raises(AttributeError, match="'h'"):
        top.get_function("h")
    with pytest.raises(ValueError):
        top[3]
    with pytest.raises(RuntimeError, match="itself"):
        low.import_module(top)
    assert top.time_evaluator("f", rt.cpu(), number=3, repeat=4)().results.__len__() == 4
    with pytest.raises(RuntimeError, match="PackedFuncModule"):
        top.export_library("never.so")


@pytest.mark.parametrize("damage", [b"", b"x" * 2000, None])
def test_damaged_module_files_are_refused(damage):
    data = pack(HostModule())
    assert isinstance(unpack(data, "m"), Module)
    with pytest.raises(ValueError, match="not a module file"):
        unpack(data[:700] if damage is None else damage, "m")


def test_a_missing_module_file_is_named(tmp_path):
    with pytest.raises(ValueError, match="none.so"):
        rt.load_module(tmp_path / "none.so")
    with pytest.raises(ValueError, match="nn_model.so"):
        rt.load_module(tmp_path)
    (tmp_path / "some.so").write_bytes(b"")
    with pytest.raises(ValueError, match="no loader reads the format 'odd'"):
        rt.load_module(tmp_path / "some.so", "odd")


LOAD = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "compassc":
            raise ImportError("no compiler here")
sys.meta_path.insert(0, Blocked())
import numpy as np, compass_runtime as rt
module = rt.load_module(sys.argv[1])
a, b = np.arange(8, dtype=np.int32).reshape(2, 4), np.zeros((2, 4), np.int32)
module["compass_run"](a, b)
c = np.zeros((2, 4), np.int32)
module["k"](a, c, 8)
print(b.reshape(-1).tolist() == c.reshape(-1).tolist() == list(range(1, 9)))
"""


def test_an_exported_module_runs_where_there_is_no_compiler(add_fixed, tmp_path):
    host = HostModule()
    host.import_module(rt.CompassModule(add_fixed.read_bytes()))
    host.export_library(tmp_path / "nn_model.so")
    done = subprocess.run([sys.executable, "-c", LOAD, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_the_functions_of_a_program_module(accumulate):
    module = rt.CompassModule(accumulate.read_bytes(), "net")
    a, total, old = (np.full(4, v, np.int32) for v in (1, 10, 0))
    module["net"](a, total, old)
    assert (total.tolist(), old.tolist()) == ([11] * 4, [10] * 4)
    module["compass_set_inputs"](a)
    module["compass_set_outputs"](total, old)
    module["compass_execute"]()
    module["compass_execute"]()
    module["compass_get_outputs"](total, old)
    assert total.tolist() == [13] * 4
    info = module["compass_get_param_info"](0, True)
    assert (info.dtype, info.size) == ("int32", 16)
    for wrong in ((a, total), (a.astype(float), total, old), (np.zeros(8, np.int32)[::2], total, old)):
        with pytest.raises(CompassError):
            module["compass_run"](*wrong)


def test_dynamic_sizes(build):
    text = "__kernel void k(__global int* a, __global int* b) { b[0] = a[2]; }"
    module = rt.CompassModule(build(text, pointer("a", "input"), pointer("b", "output", shape=(1,))).read_bytes())
    assert module["compass_dynamic_run"](np.arange(5, dtype=np.int32))[0].numpy().tolist() == [2]


def test_devices():
    assert rt.device("cpu:1") == rt.Device(1, 1) and rt.device(1).kind == "cpu"
    assert rt.cpu().exist and rt.device("cuda").exist is False and rt.device("cuda").device_name is None
    for wrong in ("nothing", "cpu:x"):
        with pytest.raises(ValueError, match=wrong):
            rt.device(wrong)
    with pytest.raises(RuntimeError, match="vulkan"):
        rt.empty((1,), device=rt.device("vulkan"))
    with pytest.raises(ValueError, match="texture"):
        rt.empty((1,), mem_scope="texture")
    stream = rt.cpu().create_raw_stream()
    for use in (rt.cpu().set_raw_stream, rt.cpu().sync, rt.cpu().free_raw_stream):
        use(stream)
    npu = rt.device("compass")
    assert npu.device_name.startswith("X")
    a = rt.array(np.arange(4, dtype=np.int32), npu)
    assert a.copyto(rt.cpu()).numpy().tolist() == [0, 1, 2, 3]


def test_code_generators_are_found_by_target_kind():
    rt.register_code_generator("demo", lambda module, target: rt.PythonModule({}))
    assert isinstance(rt.code_generator("demo")(None, None), rt.PythonModule)
    with pytest.raises(ValueError, match="kind 'nothing'"):
        rt.code_generator("nothing")
    with pytest.raises(RuntimeError):
        rt.register_code_generator("demo", lambda module, target: None)
    rt.remove_global_func("target.build.demo")


def test_the_drivers_terms(add_fixed, build):
    from compass_runtime.driver import JobState, TensorType
    from compass_runtime.status import Status

    ctx = rt.Context()
    graph = ctx.load_graph(add_fixed)
    assert graph == 1 << 32
    assert [ctx.get_tensor_count(graph, t) for t in (TensorType.INPUT, TensorType.OUTPUT)] == [1, 1]
    job = ctx.create_job(graph)
    assert job == graph + 1 and ctx.get_job_status(job) is JobState.INIT
    assert ctx.get_tensor_descriptor(job, TensorType.INPUT, 0).size == 32
    ctx.load_tensor(job, 0, np.arange(8, dtype=np.int32).tobytes())
    ctx.finish_job(job)
    assert np.frombuffer(ctx.get_tensor(job, TensorType.OUTPUT, 0), np.int32).tolist() == list(range(1, 9))
    ctx.rewrite_rodata(job, 8, 2)
    ctx.load_output_tensor(job, 0, bytes(32))
    ctx.finish_job(job)
    assert np.frombuffer(ctx.get_tensor(job, TensorType.OUTPUT, 0), np.int32).tolist() == [1, 2] + [0] * 6
    other = ctx.load_graph(build(ADD, pointer("a", "input"), pointer("b", "output"), scalar("n")))
    for wrong, status in (
        (lambda: ctx.create_job(5), Status.INVALID_GRAPH_ID),
        (lambda: ctx.clean_job(graph + 7), Status.INVALID_JOB_ID),
        (lambda: ctx.get_tensor(ctx.create_job(graph), TensorType.OUTPUT, 0), Status.INVALID_OP),
        (lambda: ctx.get_tensor(job, TensorType.OUTPUT, 1), Status.INVALID_TENSOR_ID),
        (lambda: ctx.get_tensor_count(job, TensorType.ERROR_CODE), Status.INVALID_TENSOR_TYPE),
        (lambda: ctx.load_tensor(job, 0, b"x"), Status.INVALID_SIZE),
        (lambda: ctx.load_tensor(job, 0, None), Status.NULL_PTR),
        (lambda: ctx.load_graph("none.bin"), Status.OPEN_FILE_FAIL),
        (lambda: ctx.load_graph(b"x" * 60), Status.GVERSION_UNSUPPORTED),
        (lambda: ctx.create_job(other, values={"n": 1}), Status.ZERO_TENSOR_SIZE),
        (lambda: ctx.rewrite_rodata(job, 99, 0), Status.INVALID_SIZE),
    ):
        with pytest.raises(rt.DriverError) as caught:
            wrong()
        assert caught.value.status == status
    ctx.deinit()
    with pytest.raises(rt.DriverError, match="context"):
        ctx.create_job(graph)
