"""The names of the framework's graph language (`tvm.relay` and what programs for it import), and what stands behind each."""

from __future__ import annotations

from .module_names import Names

_RELAY, _RELAY_NODES, _BUILDS = "compassc.relay", "compassc.compat.relay_nodes", "compassc.compat.relay_building"
_SUPPLIES, _TESTS = "compassc.compat.name_supply", "compassc.compat.relay_testing"
EQUALITY = "structural_equal assert_structural_equal structural_hash get_first_structural_mismatch"
TYPES = """FuncType GlobalTypeVar IncompleteType TensorType TupleType Type TypeCall TypeData TypeKind TypeRelation TypeVar"""
PADS = "get_pad_tuple get_pad_tuple1d get_pad_tuple3d get_pad_tuple_generic"
_WITH_FIELDS = " ".join(
    f"{kind}WithFields"
    for kind in "Call Constant Function If Let RefCreate RefRead RefWrite Tuple TupleGetItem Var".split()
)
_OPERATORS = "annotation dyn image nn qnn random vision"
"""The prefixes of operators that modules are named after."""
_REGISTRY_OF_RELAY = """Op OpPattern get list_op_names register register_op_attr register_shape_func register_external_compiler
    register_compute register_strategy register_pattern register_alter_op_layout register_convert_op_layout
    register_infer_correct_layout register_legalize register_gradient register_stateful register_fake_quantization_to_integer
    register_optional_fake_quantization_to_integer register_mixed_precision_conversion"""
PARAMS = "load_param_dict load_param_dict_from_file save_param_dict save_param_dict_to_file"
_BUILDING = {
    "build": f"{_RELAY}.backend.build:",
    "create_executor": f"{_RELAY}.backend.executors:",
    "optimize": f"{_RELAY}.backend.build:",
} | {n: "compass_runtime.param_dict:" for n in PARAMS.split()}
_COMPILER = """CCacheKey CCacheValue CachedFunc LoweredOutput TECompiler get get_valid_implementations lower_call
    lower_to_primfunc select_implementation"""
_STRATEGIES = """OpImplementation OpSpecialization OpStrategy register_broadcast_schedule register_injective_schedule
    register_reduce_schedule register_schedule"""
_MACHINE = "Executable VirtualMachine compile VMCompiler"
_NETWORKS = "dcgan densenet dqn inception_v3 init layers lstm mlp mobilenet resnet squeezenet synthetic vgg"
RELAY: dict[str, Names] = {
    "tvm.relay": Names(
        {name: f"{_RELAY_NODES}:" for name in f"{_WITH_FIELDS} ShapeVar SourceName Span SpanCheck".split()}
        | {"Pattern": f"{_RELAY}.expr:"}
        | _BUILDING
        | {"build_config": "compassc.pass_manager.context:PassContext"},
        like=(_RELAY,),
        operators="",
    ),
    "tvm.relay.build_module": Names(
        {"bind_params_by_name": f"{_RELAY}.bind:"}
        | {n: f"{_BUILDS}:" for n in ("BuildModule", "_BuildModule")}
        | _BUILDING
    ),
    "tvm.relay.param_dict": Names({n: "compass_runtime.param_dict:" for n in PARAMS.split()}),
    "tvm.relay.transform.mixed_precision": Names(
        {
            n: f"{_RELAY}.passes.to_mixed_precision:"
            for n in ("MIXED_PRECISION_ALWAYS", "MIXED_PRECISION_FOLLOW", "MIXED_PRECISION_NEVER")
        }
    ),
    "tvm.relay.transform.fake_quantization_to_integer": Names(
        {"register_fake_quantization_to_integer": f"{_RELAY}.op:"}
    ),
    "tvm.relay.transform.recast": Names({"recast": f"{_RELAY}.recast:"}),
    "tvm.relay.transform.infer_layout_utils": Names({"InferCorrectLayoutOutput": f"{_RELAY}.passes._layout_rules:"}),
    "tvm.relay.transform": Names(like=(f"{_RELAY}.transform",)),
    **{
        f"tvm.relay.{module}": Names({name: f"{_RELAY}.{home}:" for name in names.split()})
        for module, (home, names) in {
            "expr_functor": ("functor", "ExprFunctor ExprMutator ExprVisitor"),
            "loops": ("loops", "while_loop"),
            "parser": ("parser", "fromtext parse parse_expr"),
            "prelude": ("std", "Prelude StaticTensorArrayOps"),
            "scope_builder": ("scope_builder", "ScopeBuilder"),
            "analysis.analysis": ("analysis", "get_total_mac_number list_op_freqs post_order_visit well_formed"),
            "analysis.call_graph": ("analysis", "CallGraph"),
            "analysis.count_layers": ("analysis", "count_layers"),
            "analysis.feature": ("analysis", "Feature"),
            "op.op": ("op", _REGISTRY_OF_RELAY),
            "type_functor": ("functor", "TypeFunctor TypeMutator TypeVisitor"),
            "backend.interpreter": ("interpreter", "Closure ConstructorValue Interpreter RefValue"),
        }.items()
    },
    "tvm.relay.adt": Names(like=(f"{_RELAY}.expr", f"{_RELAY}.types")),
    "tvm.relay.analysis": Names(like=(f"{_RELAY}.analysis",)),
    "tvm.relay.backend": Names({n: f"{_BUILDS}:" for n in ("Executor", "Runtime")}),
    **{f"tvm.relay.backend.{n}": Names({n.title(): f"{_BUILDS}:"}) for n in ("executor", "runtime")},
    "tvm.relay.backend.executor_factory": Names(
        {n: f"{_RELAY}.backend.build:" for n in ("AOTExecutorFactoryModule", "GraphExecutorFactoryModule")}
    ),
    "tvm.relay.backend.name_transforms": Names(
        {
            n: f"{_SUPPLIES}:"
            for n in "prefix_generated_name prefix_name to_c_constant_style to_c_function_style to_c_variable_style".split()
        }
    ),
    "tvm.runtime.name_transforms": Names({"sanitize_name": f"{_SUPPLIES}:"}),
    "tvm.ir.supply": Names({n: f"{_SUPPLIES}:" for n in ("GlobalVarSupply", "NameSupply")}),
    "tvm.relay.quantize": Names(like=(f"{_RELAY}.quantize",)),
    "tvm.relay.dataflow_pattern": Names(like=(f"{_RELAY}.dataflow_pattern",)),
    "tvm.relay.expr": Names(
        {name: f"{_RELAY_NODES}:" for name in _WITH_FIELDS.split()}
        | {"bind": f"{_RELAY}.bind:", "ExprWithOp": f"{_RELAY}.expr:Expr", "RelayExpr": f"{_RELAY}.expr:Expr"},
        like=(f"{_RELAY}.expr",),
    ),
    "tvm.relay.frontend": Names(like=(f"{_RELAY}.frontend",)),
    "tvm.relay.function": Names(
        {"FunctionWithFields": f"{_RELAY_NODES}:", "BaseFunc": f"{_RELAY}.module:"}, like=(f"{_RELAY}.expr",)
    ),
    **{
        f"tvm.relay.op.contrib{module}": Names(
            {n: f"{_RELAY}.contrib:" for n in ("get_pattern_table", "register_pattern_table")}
        )
        for module in ("", ".register")
    },
    "tvm.relay.op": Names(
        {n: f"{_RELAY}.op:" for n in _REGISTRY_OF_RELAY.split()}
        | {n: f"{_RELAY}.strategy:" for n in _STRATEGIES.split()},
        operators="",
    ),
    **{f"tvm.relay.op.{n}": Names(operators="") for n in ("algorithm", "reduce", "tensor", "transform")},
    **{f"tvm.relay.op.{n}.{n}": Names(operators=n) for n in ("annotation", "nn")},
    "tvm.relay.op.nn.utils": Names({n: "compassc.compat.topi_utils:" for n in PADS.split()}),
    "tvm.relay.op.strategy": Names(
        {n: f"{_RELAY}.strategy:" for n in ("wrap_compute_conv2d", "wrap_compute_dense", "wrap_topi_schedule")}
    ),
    "tvm.relay.backend.te_compiler": Names({n: f"{_RELAY}.backend.te_compiler:" for n in _COMPILER.split()}),
    "tvm.relay.backend._backend": Names({"GraphPlanMemory": f"{_RELAY}.backend.storage:plan"}),
    "tvm.relay.backend.graph_executor_codegen": Names({"GraphExecutorCodegen": f"{_BUILDS}:"}),
    **{
        f"tvm.relay.{module}": Names(operators=prefix)
        for prefix in _OPERATORS.split()
        for module in ((prefix,) if prefix == "qnn" else (prefix, f"op.{prefix}"))
    },
    "tvm.relay.qnn.op": Names(
        {n: f"{_RELAY}.qnn.op:" for n in ("register_qnn_canonicalize", "register_qnn_legalize", "requantize_config")},
        operators="qnn",
    ),
    "tvm.relay.qnn.op.qnn": Names(operators="qnn"),
    "tvm.relay.qnn.transform": Names(like=(f"{_RELAY}.qnn.transform",)),
    **{f"tvm.relay.{n}": Names({n: f"{_RELAY}.backend.vm:" for n in _MACHINE.split()}) for n in ("backend.vm", "vm")},
    "tvm.runtime.profiler_vm": Names({"VirtualMachineProfiler": f"{_RELAY}.backend.vm:"}),
    "tvm.runtime.vm": Names({n: f"{_RELAY}.backend.vm:" for n in ("Executable", "VirtualMachine")}),
    "tvm.relay.testing": Names(
        {n: f"{_RELAY_NODES}:" for n in ("count", "make_nat_expr", "make_nat_value")}
        | {n: f"{_TESTS}:" for n in "run_as_python run_infer_type run_opt_pass to_python".split()}
        | {"enabled_targets": "compassc.compat.testing:"}
        | {n: f"{_RELAY}.testing.gradients:" for n in ("check_grad", "count_ops", "rand")}
        | {"Prelude": f"{_RELAY}.std:", "create_workload": f"{_RELAY}.testing:"}
    ),
    **{f"tvm.relay.testing.{n}": Names(like=(f"{_RELAY}.testing.{n}",)) for n in _NETWORKS.split()},
    "tvm.relay.testing.py_converter": Names({n: f"{_TESTS}:" for n in ("run_as_python", "to_python")}),
    "tvm.relay.testing.nat": Names({n: f"{_RELAY_NODES}:" for n in ("count", "make_nat_expr", "make_nat_value")}),
    "tvm.relay.testing.temp_op_attr": Names({"TempOpAttr": f"{_RELAY}.op:temporary"}),
    "tvm.ir.base": Names(
        {n: f"{_RELAY_NODES}:" for n in ("EnvFunc", "SourceName", "Span")}
        | {n: "compassc.compat.ir_functions:" for n in (*EQUALITY.split(), "load_json", "save_json")}
        | {"Node": f"{_RELAY}.node:"}
    ),
    "tvm.ir.diagnostics": Names(like=(f"{_RELAY}.diagnostics",)),
    "tvm.ir.attrs": Names({"Attrs": f"{_RELAY}.attributes:", "DictAttrs": f"{_RELAY}.attributes:"}),
    "tvm.ir.adt": Names({"Constructor": f"{_RELAY}.expr:", "TypeData": f"{_RELAY}.types:"}),
    "tvm.ir.tensor_type": Names({"TensorType": f"{_RELAY}.types:"}),
    "tvm.ir.type": Names({n: f"{_RELAY}.types:" for n in TYPES.split()}),
    "tvm.ir.op": Names({"Op": f"{_RELAY}.operators:", "register_op_attr": "compassc.compat.ir_functions:"}),
    "tvm.runtime.container": Names(
        {n: f"{_RELAY_NODES}:" for n in ("ADT", "tuple_object")}
        | {"ShapeTuple": "builtins:tuple", "String": "builtins:str"}
    ),
    "tvm.runtime.executor": Names({"AotModule": f"{_BUILDS}:"}),
    "tvm.runtime.executor.aot_executor": Names({"AotModule": f"{_BUILDS}:"}),
    "tvm.relay.ty": Names(
        {"ShapeVar": f"{_RELAY_NODES}:", "type_has_any": f"{_RELAY}.types:is_dynamic"}, like=(f"{_RELAY}.types",)
    ),
}
