"""Which of the vendor's import names exist here, what stands behind each, and why the others do not exist.

`docs/compat.md` is this table for users.
"""

from __future__ import annotations

from .module_names import Names
from .relay_names import EQUALITY, PARAMS, RELAY, TYPES
from .topi_names import TOPI

DSL, RUNTIME, FRAMEWORK = "compassc.dsl", "compass_runtime", "compassc.compat.framework"


def _from(**homes: str) -> dict[str, str]:
    """Name -> home, from texts of names: `{MODULE: "a b"}` with MODULE spelled as in `_HOMES`."""
    return {name: f"{_HOMES[home]}:" for home, names in homes.items() for name in names.split()}


_HOMES = {
    "dtypes": "compassc.ir.dtypes",
    "framework": FRAMEWORK,
    "info": "compassc.language.info",
    "ir": "compassc.ir",
    "logger": "compassc.settings.logger",
    "options": "compassc.settings.options",
    "remote": f"{DSL}.remote",
    "runtime": RUNTIME,
    "te": "compassc.te",
    "script": f"{DSL}.script",
    "utils": f"{DSL}.utils",
}
SCALARS = "int8 int16 int32 uint8 uint16 uint32 float16 float32 bfloat16 bool"
WIDE = "int64 uint64 float64"
FUNCTIONS = "exp log tanh sin cos sqrt rsqrt floor ceil pow erf isnan isinf isfinite"
_FLOW = {
    "config": ("CompassConfig", "CompassFunctionConfig"),
    "deployable": ("Deployable", "ExecutionEngine"),
    "flow": ("Compass",),
}
_IR_FUNCTIONS = "compassc.compat.ir_functions"
_PYSIM = "compassc.pysim"
_SCRIPT_PARTS = {
    "PyPrimFunc": "compassc.language.functions:",
    "PySimInfo": "compassc.language.dispatch:",
    "register_ir_api": "compassc.language.dispatch:",
}
_RUNTIME = "Device NDArray PackedFunc Module cpu cuda device load_module"
_REGISTRY = "get_global_func list_global_func_names register_func remove_global_func"

_SCRIPT = "compassc.compat.tvmscript:"
_DIALECT = """Buffer alloc_buffer axis block block_attr evaluate func_attr handle init match_buffer parallel prim_func reads where
    writes"""
_VALUES = """IterVar abs acos acosh all any asin asinh atan atanh call_extern call_intrin call_packed call_pure_extern ceil ceildiv comm_reducer const cos cosh decl_buffer div erf exp exp2 floor floordiv floormod fmod if_then_else
    indexdiv indexmod infinity isfinite isinf isnan log log10 log2 max max_value min min_value nearbyint popcount power reinterpret round rsqrt sigmoid sin
    sinh sqrt sum tan tanh trunc truncdiv truncmod"""
_OF_STAGES = """AutoInlineBroadcast AutoInlineElemWise AutoInlineInjective Buffer CreateAttachPath CreateReadGraph Fuse InferBound
    PostDFSOrder ScanFixPointAnalysis ScanGetBody ScheduleOps SchedulePostProcToPrimFunc Singleton Split VerifyCompactBuffer"""
_RELAY = "compassc.relay"
_TVMC = {n: f"{_RELAY}.tvmc:" for n in ("TVMCModel", "TVMCPackage", "TVMCResult")}
_NVCC = """find_cuda_path get_cuda_version get_target_compute_version have_bf16 have_cudagraph have_fp16 have_fp8 have_int8
    have_tensorcore parse_compute_version"""
_GENERIC = "GenericFunc generic_func get_native_generic_func override_native_generic_func"
_DEVICES = "compassc.targets.virtual_device:"
_TENSORS = "ComputeOp ExternOp HybridOp Operation PlaceholderOp ScanOp Tensor TensorComputeOp TensorSlice"
_CONTAINERS = {n: "compassc.compat.nodes:" for n in ("Array", "Map")}
_TEXTS = {"ShapeTuple": "builtins:tuple", "String": "builtins:str"}
_ARITH = {"analyzer": "analyzer", "int_set": "int_sets", "iter_affine_map": "iter_maps", "pattern": "linear_forms"}
"""Modules of `tvm.arith`, and where their names are."""
_NUMBERS = ("FloatImm", "IntImm", "PrimExpr")
_PASS_CONTEXT = "compassc.compat.pass_context:"
_CONTEXTS = {
    **{n: "compassc.pass_manager.context:" for n in ("Pass", "PassContext", "PassInfo", "Sequential")},
    **{n: _PASS_CONTEXT for n in ("PrintIR", "module_pass")},
    "ModulePass": "compassc.pass_manager.context:Pass",
}
_INSTRUMENTS = "PassInstrument PassTimingInstrument PrintAfterAll PrintBeforeAll pass_instrument"

_SESSIONS = "LocalSession PopenSession Server TrackerSession connect connect_tracker"


_MAPPINGS = "AutoTensorizeMappingInfo TensorizeInfo get_auto_tensorize_mapping_info get_tensorize_loop_mapping"
_STATES = {
    **{n: "compassc.tir.scopes:" for n in ("CachedFlags", "DepKind", "Dependency")},
    **{n: "compassc.tir.state:" for n in ("BlockScope", "ScheduleDebugMask", "StmtSRef")},
    **{n: "compassc.compat.schedule_testing:" for n in ("BlockDependenceInfo", "ScheduleState")},
}
MODULES: dict[str, Names] = {
    "tvm": Names(
        _from(
            dtypes="DataType",
            framework="__version__ IRModule build cl compile ext_dev gpu hexagon lower metal opencl rocm vpi vulkan webgpu",
            runtime="cpu cuda device get_global_func register_func",
            te="Range",
            utils="can_implicit_convert get_range int_within_range",
        )
        | {
            "TVMError": "compass_core.errors:CompassError",
            "context": f"{RUNTIME}:device",
            "convert": "compassc.compat.relay_nodes:",
        }
    ),
    **{
        n: Names(_from(runtime=_REGISTRY) | {"convert": "compassc.compat.relay_nodes:"})
        for n in ("tvm._ffi", "tvm._ffi.registry")
    },
    "tvm.aipu": Names(),
    "tvm.aipu.script": Names(like=(f"{DSL}.script",)),
    "tvm.aipu.tir": Names(like=(DSL,)),
    "tvm.arith": Names(like=tuple(f"compassc.te.{n}" for n in _ARITH.values())),
    **{f"tvm.arith.{name}": Names(like=(f"compassc.te.{home}",)) for name, home in _ARITH.items()},
    "tvm.auto_scheduler": Names(
        {
            name: f"compassc.compat.auto_scheduler.{home}:"
            for home, names in {
                "dispatcher": "ApplyHistoryBest ApplyHistoryBestOrSample DispatchContext",
                "relay_integration": "extract_tasks is_auto_scheduler_enabled",
                "policy": """EmptyPolicy PreloadCustomSketchRule PreloadMeasuredStates RandomModel SketchPolicy TaskScheduler
                    TuningOptions XGBModel""",
                "record": """LocalBuilder LocalRPCMeasureContext LocalRunner MeasureInput MeasureResult RPCRunner RecordReader
                    RecordToFile load_best_record load_records save_records""",
                "workload": """ComputeDAG HardwareParams LayoutRewriteOption SearchTask auto_schedule create_task
                    make_workload_key register_task_input_check_func register_workload""",
            }.items()
            for name in names.split()
        }
    ),
    **{
        f"tvm.auto_scheduler.{name}": Names(like=(f"compassc.compat.auto_scheduler.{home}",))
        for name, home in {
            "compute_dag": "workload",
            "cost_model": "policy",
            "dispatcher": "dispatcher",
            "loop_state": "state",
            "measure": "record",
            "measure_record": "record",
            "relay_integration": "relay_integration",
            "search_policy": "policy",
            "search_task": "workload",
            "task_scheduler": "policy",
            "utils": "workload",
            "workload_registry": "workload",
        }.items()
    },
    "tvm.autotvm": Names(
        {
            name: f"compassc.compat.autotvm.{home}:"
            for home, names in {
                "measure": "LocalBuilder LocalRunner MeasureErrorNo MeasureInput MeasureResult RPCRunner measure_option",
                "space": "ConfigEntity ConfigSpace FallbackConfigEntity",
                "task": "get_config register_topi_compute register_topi_schedule template",
                "contexts": "ApplyFixedConfig ApplyGraphBest ApplyHistoryBest DispatchContext FallbackContext",
                "env": "GLOBAL_SCOPE",
            }.items()
            for name in names.split()
        }
        | {
            "create": "compassc.compat.autotvm.task:",
            "apply_history_best": "compassc.compat.autotvm.contexts:ApplyHistoryBest",
            "apply_graph_best": "compassc.compat.autotvm.contexts:ApplyGraphBest",
        }
    ),
    **{
        f"tvm.autotvm.{name}": Names(like=tuple(f"compassc.compat.autotvm.{home}" for home in homes.split()))
        for name, homes in {
            "callback": "callback",
            "env": "env",
            "measure": "measure",
            "record": "record",
            "task": "task contexts space flops relay_tasks",
            "task.dispatcher": "contexts",
            "task.space": "space entities",
            "task.task": "task flops",
            "tophub": "tophub",
            "tuner": "tuner callback",
            "utils": "tophub",
        }.items()
    },
    "tvm.compass": Names(_from(framework="__version__", info="CompassInfo")),
    "tvm.compass.dsl": Names(like=(DSL,)),
    "tvm.compass.dsl.aiff": Names(like=(f"{DSL}.aiff",)),
    "tvm.compass.dsl.analysis": Names(like=(f"{DSL}.analysis",)),
    "tvm.compass.dsl.build_manager": Names(
        {n: f"{DSL}.build_manager:" for n in ("BuildManager", "CompassCodeGenCError")}
    ),
    "tvm.compass.dsl.cc": Names(like=("compassc.compat.cc",)),
    "tvm.compass.dsl.executor": Names({"Executor": f"{DSL}.executor:"}),
    "tvm.compass.dsl.info": Names(_from(info="CompassInfo")),
    "tvm.compass.dsl.schedule": Names(like=(f"{DSL}.schedule",)),
    "tvm.compass.dsl.script": Names(_SCRIPT_PARTS, like=(f"{DSL}.script",)),
    "tvm.compass.dsl.script.ir": Names(_SCRIPT_PARTS, like=(f"{DSL}.script",)),
    "tvm.compass.dsl.script.pysim": Names(
        {"PyVar": f"{_PYSIM}.values:", "PyPointer": f"{_PYSIM}.memory:", "PyBuffer": f"{_PYSIM}.memory:"}
        | _SCRIPT_PARTS
    ),
    "tvm.compass.dsl.testing": Names(like=(f"{DSL}.testing",)),
    "tvm.compass.dsl.transform": Names(like=("compassc.compat.transform",)),
    "tvm.compass.dsl.utils": Names(like=(f"{DSL}.utils",)),
    "tvm.compass.logger": Names(like=("compassc.settings.logger",)),
    "tvm.compass.utils": Names(
        _from(framework="canonicalize_target", options="control_option", remote="get_rpc_session", utils="abspath")
    ),
    "tvm.driver": Names(_from(framework="build lower")),
    "tvm.driver.tvmc": Names(
        {n: f"{_RELAY}.tvmc:" for n in ("TVMCException", "TVMCImportError", "load", "run")}
        | {n: "compassc.compat.tvmc_tuning:" for n in ("compile", "tune")}
        | _TVMC
    ),
    **{
        f"tvm.driver.tvmc.{module}": Names({n: f"{_RELAY}.tvmc:" for n in names.split()})
        for module, names in {
            "model": "TVMCModel TVMCPackage TVMCResult",
            "result_utils": "get_top_results",
            "runner": "generate_tensor_data",
            "shape_parser": "parse_shape_string",
        }.items()
    },
    "tvm.driver.build_module": Names(
        _from(framework="build lower") | {"schedule_to_module": "compassc.compat.te_schedule:"}
    ),
    "tvm.error": Names(
        {name: "compass_core.errors:CompassError" for name in ("DiagnosticError", "InternalError", "TVMError")}
        | {"OpNotImplemented": "compassc.importers.refusals:RefusedModel"}
        | {name: f"{RUNTIME}.rpc:" for name in ("RPCError", "RPCSessionTimeoutError")}
    ),
    "tvm.ir": Names(
        _from(
            framework="IRModule",
        )
        | {n: f"{_IR_FUNCTIONS}:" for n in EQUALITY.split()}
        | {n: f"{_IR_FUNCTIONS}:" for n in ("load_json", "save_json")}
        | {n: f"{_RELAY}.types:" for n in TYPES.split()}
        | {"Constructor": f"{_RELAY}.expr:", "Op": f"{_RELAY}.operators:", "RelayExpr": f"{_RELAY}.expr:Expr"}
        | {n: f"{_RELAY}.attributes:" for n in ("Attrs", "DictAttrs")}
        | {n: f"{_RELAY}.qnn.affine:" for n in ("TensorAffineType", "TupleAffineType")}
        | {n: "compassc.compat.relay_nodes:" for n in ("EnvFunc", "SourceName", "Span")}
        | {n: "compassc.compat.nodes:" for n in ("Array", "Map", "PointerType", "PrimType", "make_node", *_NUMBERS)}
        | {"register_intrin_lowering": "compassc.te.intrinsics:", "register_op_attr": f"{_IR_FUNCTIONS}:"}
        | {"GlobalVar": "compassc.ir.members:", "Range": "compassc.te:"}
    ),
    **RELAY,
    "tvm.meta_schedule.testing": Names(),
    "tvm.meta_schedule.testing.te_workload": Names(like=("compassc.compat.meta_schedule.te_workload",)),
    "tvm.meta_schedule": Names(
        {
            name: f"compassc.compat.meta_schedule.{home}:"
            for home, names in {
                "cost": "CostModel",
                "database": "Database MeasureCandidate",
                "measure": "Builder MeasureCallback Runner",
                "mutators": "Mutator",
                "postprocs": "Postproc",
                "rules": "ScheduleRule",
                "search": "SearchStrategy",
                "space": "SpaceGenerator",
                "relay_integration": "ExtractedTask is_meta_schedule_enabled",
                "tune": "TaskScheduler TuneContext tune_tasks tune_tir",
                "utils": "Profiler derived_object",
            }.items()
            for name in names.split()
        }
    ),
    **{
        f"tvm.meta_schedule.{name}": Names(
            like=tuple(f"compassc.compat.meta_schedule.{home}" for home in homes.split())
        )
        for name, homes in {
            "arg_info": "database",
            "builder": "measure",
            "cost_model": "cost",
            "database": "database",
            "measure_callback": "measure",
            "mutator": "mutators",
            "postproc": "postprocs",
            "relay_integration": "relay_integration",
            "runner": "measure",
            "schedule_rule": "rules",
            "search_strategy": "search database",
            "space_generator": "space",
            "task_scheduler": "tune",
            "tir_integration": "tune",
            "tune": "tune",
            "tune_context": "tune",
            "utils": "utils",
        }.items()
    },
    "tvm.ndarray": Names(_from(runtime="NDArray array cpu cuda device empty from_dlpack")),
    "tvm.nd": Names(_from(runtime="NDArray array cpu cuda device empty from_dlpack")),
    "tvm.exec": Names({}),
    **{
        f"tvm.exec.{name}": Names({"main": f"compassc.compat.programs:{name}"})
        for name in ("query_rpc_tracker", "rpc_proxy", "rpc_server", "rpc_tracker")
    },
    "tvm.rpc": Names(
        {name: f"{RUNTIME}.rpc:" for name in _SESSIONS.split()}
        | {"RPCSession": f"{RUNTIME}.rpc:Session", "with_minrpc": "compassc.compat.minrpc:"}
    ),
    "tvm.rpc.client": Names(
        {name: f"{RUNTIME}.rpc:" for name in "LocalSession PopenSession TrackerSession connect connect_tracker".split()}
        | {"RPCSession": f"{RUNTIME}.rpc:Session"}
    ),
    "tvm.rpc.minrpc": Names({"with_minrpc": "compassc.compat.minrpc:"}),
    "tvm.rpc.proxy": Names({"Proxy": f"{RUNTIME}.rpc:"}),
    "tvm.rpc.server": Names({"Server": f"{RUNTIME}.rpc:"}),
    "tvm.rpc.testing": Names(like=(f"{RUNTIME}.rpc.testing",)),
    "tvm.rpc.tracker": Names({"Tracker": f"{RUNTIME}.rpc:"}),
    "tvm.runtime": Names(
        _from(dtypes="DataType", runtime=_RUNTIME, framework="enabled num_threads", te="const")
        | {n: "compass_runtime.param_dict:" for n in PARAMS.split()}
        | _TEXTS
        | {"convert": "compassc.compat.relay_nodes:", "Object": f"{_RELAY}.node:Node"}
    ),
    "tvm.runtime.ndarray": Names(_from(runtime="NDArray array cpu cuda device empty from_dlpack")),
    "tvm.script": Names({"from_source": _SCRIPT, "ir_module": _SCRIPT}),
    "tvm.script.parser": Names({"parse": _SCRIPT + "from_source"}),
    "tvm.script.ir": Names({"ir_module": _SCRIPT}),
    "tvm.script.tir": Names(
        _from(framework="serial thread_binding", script=f"grid vectorized unroll {FUNCTIONS} max min abs")
        | {name: "compassc.compat.script_values:" for name in f"{SCALARS} {WIDE}".split()}
        | {name: _SCRIPT for name in _DIALECT.split()}
        | {"macro": "compassc.compat.script_macros:"}
    ),
    "tvm.target": Names(
        _from(framework="Target cuda llvm")
        | {"VirtualDevice": _DEVICES, "SEScope": f"{_DEVICES}VirtualDevice"}
        | {n: "compassc.targets.compilation:" for n in ("CompilationConfig", "make_compilation_config")}
        | {n: "compassc.targets.generic:" for n in _GENERIC.split()},
        like=("compassc.compat.target_names",),
    ),
    "tvm.target.generic_func": Names({n: "compassc.targets.generic:" for n in _GENERIC.split()}),
    "tvm.target.virtual_device": Names({"VirtualDevice": _DEVICES}),
    "tvm.target.compilation_config": Names(
        {n: "compassc.targets.compilation:" for n in ("CompilationConfig", "make_compilation_config")}
    ),
    "tvm.te": Names({"SpecializedCondition": f"{_RELAY}.strategy:"}, like=("compassc.te",)),
    "tvm.te.schedule": Names(
        {n: "compassc.te:" for n in ("IterVar", "Schedule", "Stage", "Var", "create_schedule")}
        | {n: "compassc.compat.te_schedule:" for n in _OF_STAGES.split()}
    ),
    "tvm.te.hybrid": Names({n: "compassc.te.hybrid:" for n in ("HybridModule", "HybridOp", "build", "script")}),
    "tvm.te.hybrid.module": Names({"HybridModule": "compassc.te.hybrid:"}),
    "tvm.te.hybrid.runtime": Names({"HYBRID_GLOBALS": "compassc.te.hybrid:"}),
    "tvm.te.tensor": Names({n: "compassc.te:" for n in _TENSORS.split()}),
    "tvm.contrib": Names(),
    "tvm.contrib.graph_executor": Names({n: f"{RUNTIME}.graph_executor:" for n in ("GraphModule", "create")}),
    "tvm.contrib.cblas": Names({n: "compassc.compat.host_operations:" for n in ("batch_matmul", "matmul")}),
    "tvm.contrib.cc": Names(like=("compassc.compat.linking",)),
    "tvm.contrib.clang": Names({"create_llvm": "compassc.compat.contrib:"}),
    "tvm.contrib.nvcc": Names({n: "compassc.compat.contrib_tools:" for n in _NVCC.split()}),
    "tvm.contrib.tedd": Names(
        {
            n: "compassc.compat.tedd:"
            for n in ("viz_dataflow_graph", "viz_itervar_relationship_graph", "viz_schedule_tree")
        }
    ),
    "tvm.contrib.tar": Names({n: "compassc.compat.contrib_tools:" for n in ("tar", "untar")}),
    "tvm.contrib.pickle_memoize": Names({"memoize": "compassc.compat.contrib:"}),
    "tvm.contrib.sparse": Names(
        {n: "compassc.compat.sparse:" for n in ("CSRNDArray", "CSRPlaceholderOp", "array", "placeholder")}
    ),
    "tvm.contrib.random": Names({n: "compassc.compat.host_operations:" for n in ("normal", "randint", "uniform")}),
    "tvm.contrib.utils": Names({n: "compassc.compat.contrib:" for n in ("TempDirectory", "tempdir")}),
    **TOPI,
    "tvm.testing": Names({"assert_allclose": "numpy.testing:"}, like=("compassc.compat.testing",)),
    "tvm.testing.plugin": Names(like=("compassc.compat.pytest_plugin",), own=True),
    "tvm.tir": Names(
        {"build": f"{FRAMEWORK}:build_functions"}
        | _from(framework="IRModule likely", te=_VALUES)
        | {"CallEffectKind": "compassc.te.intrinsics:"}
        | {n: "compassc.tir:" for n in ("IndexMap", "Schedule", "ScheduleError", "TensorIntrin", "Trace")}
        | _STATES,
        like=("compassc.compat.nodes",),
    ),
    "tvm.tir.op": Names(_from(framework="likely", te=_VALUES)),
    "tvm.tir.generic": Names(_from(te="add subtract multiply floordiv cast") | {"divide": "compassc.te:div"}),
    "tvm.tir.expr": Names(like=("compassc.compat.nodes",)),
    "tvm.tir.buffer": Names({"Buffer": "compassc.compat.nodes:", "decl_buffer": "compassc.te:"}),
    "tvm.tir.function": Names(
        {n: "compassc.tir:" for n in ("IndexMap", "TensorIntrin")} | {"PrimFunc": "compassc.compat.nodes:"}
    ),
    "tvm.tir.stmt": Names(like=("compassc.compat.nodes",)),
    "tvm.tir.analysis": Names(
        {n: f"{_IR_FUNCTIONS}:" for n in ("expr_deep_equal", "get_block_access_region", "verify_well_formed")}
        | {"OOBChecker": "compassc.compat.block_passes:"}
        | {
            n: "compassc.compat.tir_analysis:"
            for n in """calculate_allocated_bytes calculate_constant_bytes calculate_workspace_bytes detect_buffer_access_lca
                estimate_tir_flops find_anchor_block get_block_read_write_region is_pure_function undefined_vars verify_gpu_code
                verify_memory verify_ssa""".split()
        }
    ),
    "tvm.tir.ir_builder": Names({n: "compassc.te.ir_builder:" for n in ("BufferVar", "IRBuilder", "create")}),
    "tvm.tir.schedule": Names(
        {
            n: "compassc.tir:"
            for n in "BlockRV ExprRV Instruction InstructionKind LoopRV Schedule ScheduleError Trace".split()
        }
        | _STATES
    ),
    "tvm.tir.schedule.schedule": Names(
        {n: "compassc.tir:" for n in ("BlockRV", "ExprRV", "LoopRV", "Schedule", "ScheduleError")}
    ),
    "tvm.tir.schedule.state": Names(_STATES),
    "tvm.tir.schedule.block_scope": Names(_STATES),
    "tvm.tir.schedule.trace": Names({"Trace": "compassc.tir:"}),
    "tvm.tir.schedule.instruction": Names({n: "compassc.tir:" for n in ("Instruction", "InstructionKind")}),
    "tvm.tir.block_scope": Names(_STATES),
    "tvm.tir.block_dependence_info": Names(_STATES),
    "tvm.tir.tensor_intrin": Names(),
    **{
        f"tvm.tir.tensor_intrin.{n}": Names(like=("compassc.compat.tensor_intrins",))
        for n in ("arm_cpu", "cuda", "dot_product_common", "hexagon", "rocm", "x86")
    },
    "tvm.tir.schedule.analysis": Names(
        {n: "compassc.tir.queries:" for n in ("has_block", "is_output_block")}
        | {"suggest_index_map": "compassc.tir.suggested_layouts:"}
        | {n: "compassc.tir.mapping:" for n in _MAPPINGS.split()}
    ),
    "tvm.tir.schedule.transform": Names({"tile_with_tensor_intrin": "compassc.tir.mapping:"}),
    "tvm.tir.transform": Names(
        {n: _PASS_CONTEXT for n in ("Apply", "PrintIR", "prim_func_pass")}
        | {"Filter": "compassc.compat.block_passes:"},
        like=("compassc.compat.transform",),
    ),
    "tvm.transform": Names(_CONTEXTS),
    **{
        f"tvm.contrib.debugger.{n}": Names(
            {"create": "compass_runtime.debug_executor:", "GraphModuleDebug": "compass_runtime.debug_executor:"}
        )
        for n in ("debug_executor", "debug_runtime")
    },
    "tvm.contrib.debugger": Names(),
    **{
        module: Names(
            {name: f"compassc.compat.compass_flow.{home}:" for home, names in _FLOW.items() for name in names}
        )
        for module in ("tvm.compass.relax", "tvm.compass.relax.config")
    },
    "tvm.contrib.debugger.debug_result": Names({"DebugResult": "compass_runtime.debug_executor:"}),
    "tvm.runtime.profiling": Names(
        {n: "compass_runtime.profile.calls:" for n in ("Count", "Duration", "Percent", "Ratio", "Report")}
    ),
    "tvm.container": Names(_CONTAINERS | _TEXTS),
    "tvm.ir.container": Names(_CONTAINERS),
    "tvm.ir.transform": Names(_CONTEXTS),
    "tvm.ir.instrument": Names({n: "compassc.pass_manager.instruments:" for n in _INSTRUMENTS.split()}),
    "tvm.instrument": Names({n: "compassc.pass_manager.instruments:" for n in _INSTRUMENTS.split()}),
    "tvm.ir.module": Names(_from(framework="IRModule")),
    "tvm.ir.expr": Names(
        {"GlobalVar": "compassc.ir.members:", "Range": "compassc.te:"} | {n: "compassc.compat.nodes:" for n in _NUMBERS}
    ),
    "tvm.tir.schedule.testing": Names(
        {
            n: "compassc.compat.schedule_testing:"
            for n in ("assert_structural_equal_ignore_global_symbol", "verify_trace_roundtrip")
        }
    ),
    "tvm.tir.stmt_functor": Names(
        {n: f"{_IR_FUNCTIONS}:" for n in "ir_transform post_order_visit pre_order_visit renew_defs substitute".split()}
    ),
}

_GRAPHS = "models are compiled from ONNX or TFLite files: `compassc build model.onnx`, in Python `compassc.compile`"
_TUNING = "schedules are searched for with `compassc tune`"
_GRAPH_TEXT = "only functions of loops and blocks are read from the framework's script, not graphs"

_MAKERS = """arm_compute_lib bnns clml cmsisnn coreml cublas cudnn cutlass dnnl ethosn ethosu libtorch mrvl mkldnn tensorrt
    te_target vitis_ai"""
"""Modules of the framework that hand parts of programs to libraries and machines of other makers."""

MISSING: dict[str, str] = {
    **dict.fromkeys(
        [f"tvm.relay.op.contrib.{n}" for n in _MAKERS.split()],
        "no code is made for libraries and machines of other makers: `register_pattern_table(name)` and the global function "
        "`relay.ext.NAME` add a compiler",
    ),
    **dict.fromkeys(("tvm.dlight",), _TUNING),
    **dict.fromkeys(
        ("tvm.relax", "tvm.compass.relax.testing", "tvm.compass.relax.op", "tvm.compass.frontend"), _GRAPHS
    ),
    **dict.fromkeys(
        [
            f"tvm.{n}"
            for n in (
                "autotvm.feature",
                "autotvm.database",
                "auto_scheduler.feature",
                "meta_schedule.feature_extractor",
            )
        ],
        "costs are learned from the values of knobs and choices: no features of programs are computed, and records are files",
    ),
    "tvm.autotvm.graph_tuner": "layouts of data stay as they are, so that none are chosen for a graph: `relay.transform.ConvertLayout`",
    "tvm.rpc.minrpc.find_minrpc_server_libpath": "the server is compass-rpcd, whose sources are no single file: `with_minrpc` writes it",
    "tvm.exec.measure_peak": "peaks of an NPU are those of its configuration: `compassc targets`",
    "tvm.compass.utils.sync_compass_output_dir": "runs leave no files on a server; `session.list_files` and `download` get what there is",
    **dict.fromkeys(("tvm.script.relax",), _GRAPH_TEXT),
    "tvm.compass.dsl.testing.run_op_case": "it needs the vendor's reference implementation of every layer; compare an aipu.bin with `compass-run --expect`",
    "tvm.compass.utils.check_call_compass_tool": "no programs of the vendor are called",
    **dict.fromkeys(
        [f"tvm.contrib.{n}" for n in ("cublas", "cudnn", "rpc", "xcode")],
        "no tools of other makers are called; modules are written with `module.export_library(path)`",
    ),
    **dict.fromkeys(
        ("tvm.runtime.load_static_library", "tvm.runtime.system_lib"),
        "nothing is linked into this process: modules are read with `load_module(path)`",
    ),
    **dict.fromkeys(
        [f"tvm._ffi.{n}" for n in ("register_error", "register_object")] + ["tvm.error.register_error"],
        "exceptions and objects of Python cross calls as they are",
    ),
    "tvm.te.trace": "values are printed by kernels (`S.printf`), and looked at with NumPy between stages",
}
"""Full name -> why it does not exist here; holds for everything below it."""
