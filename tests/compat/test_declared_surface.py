"""The public surface that programs for the vendor's package are written against: every name of it resolves, or says why
it does not."""

import importlib

import numpy as np
import pytest

from compassc.compat.names import MISSING
from compassc.dsl import BuildManager
from compassc.dsl import script as S
from tests.choosing import some

SURFACE = {
    "tvm": "DataType IRModule TVMError can_implicit_convert get_range int_within_range device context",
    "tvm.compass": "CompassInfo dsl logger utils",
    "tvm.compass.dsl": """Aiff BuildManager CompassInfo aiff analysis build_manager cc executor get_rpc_session
        hw_native_vdtype resolve_dtype_alias schedule script testing utils""",
    "tvm.compass.dsl.aiff": "Aiff DescChainArray",
    "tvm.compass.dsl.analysis": "ParamInfo extract_prim_func_info has_perf_record_tick",
    "tvm.compass.dsl.build_manager": "BuildManager CompassCodeGenCError",
    "tvm.compass.dsl.cc": "CompassCompileCError INCLUDE_DIR_IN_PKG compile_c",
    "tvm.compass.dsl.schedule": "Schedule elementwise_binary elementwise_unary",
    "tvm.compass.dsl.script": """
        prim_func macro ptr meta_var vectorized block grid tag axis tec_range ir pysim
        match_buffer alloc alloc_buffer alloc_const vload vstore vload_gather vstore_scatter dma_copy async_dma_copy
        dma_transpose2d dma_upsample dma_memset flush_cache cast i u reinterpret vxtl vxth
        vadd vaddh abs vsub vsubh vmul vmull vmulh vdiv vmod vdot vqdot vdpa vqdpa vrpadd vmml vmma fma vfmae vfmao rint clip
        vand vor vinv vall vany vxor vnsr vnsrsr vsr vsl vror vcls clz vbrevs vpcnt
        vceq vcneq vcge vcgt vcle vclt isnan isinf isfinite max min vmaxh vminh vrpmax vrpmin
        exp log tanh sin cos rsqrt sqrt floor ceil ceildiv pow erf exp2
        vconcat vsplit vzip vcompt vcompc vrevs vsel vshfl vbcast vsldl vtbl vreplic
        barrier alloc_events wait_events free_events const_mask tail_mask get_local_size get_local_id
        perf_tick_begin perf_tick_end aiff async_aiff printf asm
        i8 u8 i16 u16 i32 u32 fp16 bf16 fp32 bool int8 uint8 int16 uint16 int32 uint32 float16 bfloat16 float32
        i8x32 u8x32 i16x16 i16x32 u16x16 u16x32 i32x8 i32x16 i32x32 u32x8 u32x16 u32x32 fp16x16 fp16x32 fp32x8 fp32x16
        bf16x16 boolx8 boolx16 boolx32 i8x30 fp32x9 boolx5 uint16x7 size_i8 size_i16 size_i32 size_int32 size_i32x5""",
    "tvm.compass.dsl.script.axis": "spatial reduce remap",
    "tvm.compass.dsl.script.ir": "vadd vload prim_func register_ir_api",
    "tvm.compass.dsl.script.pysim": "PyVar PyPointer PyBuffer PySimInfo PyPrimFunc",
    "tvm.compass.dsl.testing": "assert_allclose clear_traceback rand run_op_case",
    "tvm.compass.dsl.utils": """abspath double_elem_width get_binary_op_result_type half_elem_width hw_native_vdtype
        is_hw_native_dtype is_hw_native_scalar_dtype is_hw_native_vdtype resolve_dtype_alias""",
    "tvm.compass.logger": "DEBUG DEBUG_ONCE ERROR INFO WARN set_logger timer",
    "tvm.compass.utils": "canonicalize_target check_call_compass_tool control_option get_rpc_session sync_compass_output_dir",
}
OBJECTS = {
    "DataType": "type_code bits lanes bytes total_bytes total_bits element_of with_lanes with_bits with_int with_uint "
    "with_type_code is_void is_int is_uint is_integer is_bool is_float is_bfloat is_floating is_scalar is_vector",
    "BuildManager": "cps_info prim_func_info output_dir lower gen_op_lib build",
    "Executor": "c_code rpc_sess mtriple run benchmark profile",
    "CompassInfo": "name version core_count tec_count lsram_size_per_piece lsram_piece_count gsram_size_per_piece "
    "gsram_piece_count vector_width lsram_size gsram_size get current",
    "ParamInfo": "name dtype category tensor_idx is_input_tensor is_output_tensor is_const_tensor is_descriptor is_attr "
    "is_tensor",
    "PyPrimFunc": "py_func attrs param_infos cps_info output_dir",
    "control_option": "is_debug is_emu is_profile is_random_pause is_asm is_rpc random_seed random_seed_is_set rpc_key",
    "Aiff": "reg_cfgs unb wrb mtp itp ptp sys add_new_register_config gen_descriptor",
    "DescChainArray": "append ctrl param act nbytes",
}


@S.prim_func
def ticked(a: S.ptr("int32", "global"), w: S.ptr("int32", "global.1"), out: S.ptr("int32x8", "global"), n: S.i32):
    S.perf_tick_begin(1)
    out[0] = S.vload(a) + n + w[0]
    S.perf_tick_end(1)


@S.prim_func
def plain(d: S.ptr("uint32", "global"), out: S.ptr("int32", "global")):
    S.aiff(d, d + 8, d + 16)
    out[0] = 1


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("module", SURFACE)
def test_every_name_resolves_or_says_why_not(module):
    for name in some(SURFACE[module].split()):
        full = f"{module}.{name}"
        why = next((MISSING[key] for key in (full, module) if key in MISSING), None)
        if why is None:
            parent, _, last = module.rpartition(".")
            owner = S.axis if last == "axis" else importlib.import_module(module)
            assert getattr(owner, name) is not None, parent
        else:
            with pytest.raises(ImportError) as caught:
                exec(f"from {module} import {name}", {})  # noqa: S102 - an import statement for a name known only here
            assert why in str(caught.value)


@pytest.mark.usefixtures("names")
def test_every_member_is_there():
    import tvm
    from tvm.compass.dsl import Aiff, CompassInfo
    from tvm.compass.utils import control_option

    manager = BuildManager()
    built = manager.build(ticked)
    objects = {
        "DataType": tvm.DataType("i8x32"),
        "BuildManager": manager,
        "Executor": built,
        "CompassInfo": CompassInfo.get("X2_1204"),
        "ParamInfo": ticked.param_infos[0],
        "PyPrimFunc": ticked,
        "control_option": control_option,
        "Aiff": Aiff(),
        "DescChainArray": Aiff().gen_descriptor(),
    }
    assert {name for name in OBJECTS if {n for n in OBJECTS[name].split() if not hasattr(objects[name], n)}} == set()
    assert tvm.compass.CompassInfo is CompassInfo


@pytest.mark.usefixtures("names")
def test_analysis():
    from tvm.compass.dsl import analysis

    manager = BuildManager()
    module = manager.lower(ticked)
    name, infos = analysis.extract_prim_func_info(module)
    assert name == "ticked" and all(isinstance(info, analysis.ParamInfo) for info in infos)
    assert [(i.name, str(i.dtype), i.category, i.tensor_idx) for i in infos] == [
        ("a", "int32", "input_tensor", 0),
        ("w", "int32", "const_tensor", None),
        ("out", "int32x8", "output_tensor", 0),
        ("n", "int32", "attr", None),
    ]
    manager.build(ticked)
    assert manager.prim_func_info == analysis.extract_prim_func_info(module["ticked"]) == (name, infos)
    assert analysis.has_perf_record_tick(module) and analysis.has_perf_record_tick(module["ticked"])
    other = manager.lower(plain)
    assert not analysis.has_perf_record_tick(other)
    assert [i.is_descriptor for i in analysis.extract_prim_func_info(other).param_infos] == [True, False]


def test_what_the_parameters_say_agrees_with_a_call():
    BuildManager().build(ticked)(np.arange(8, dtype=np.int32), np.full(1, 5, np.int32), out := np.zeros(8, np.int32), 2)
    assert (out == np.arange(8) + 7).all()
