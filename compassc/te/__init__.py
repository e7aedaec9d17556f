"""Tensor expressions: say what to compute, then how.

A = te.placeholder((1024,), name="A")
B = te.compute((1024,), lambda i: A[i] + 1.0, name="B")
s = te.create_schedule(B.op)
outer, inner = s[B].split(B.op.axis[0], factor=8)
s[B].vectorize(inner)
module = te.lower(s, [A, B], name="add_one")
"""

from importlib import import_module
from typing import TYPE_CHECKING

from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.exprs import Var
from compassc.ir.iter_vars import IterVar, Range
from compassc.ir.operators import cast, const
from compassc.te.axes import AXIS_SEPARATOR, reduce_axis, thread_axis
from compassc.te.buffers import View, decl_buffer
from compassc.te.construct import compute, placeholder, size_var, tag_scope, var
from compassc.te.errors import LowerError, ScheduleError
from compassc.te.inverse import acos, acosh, asin, asinh, atan, atanh, cosh, fmod, logaddexp, popcount, sinh
from compassc.te.math import (
    Select,
    abs,
    add,
    ceil,
    ceildiv,
    cos,
    div,
    erf,
    exp,
    exp2,
    floor,
    floordiv,
    floormod,
    if_then_else,
    indexdiv,
    indexmod,
    infinity,
    isfinite,
    isinf,
    isnan,
    log,
    log2,
    log10,
    multiply,
    nearbyint,
    power,
    reinterpret,
    round,
    rsqrt,
    sigmoid,
    sin,
    sqrt,
    subtract,
    tan,
    tanh,
    trunc,
    truncdiv,
    truncmod,
)
from compassc.te.reduce import all, any, comm_reducer, max, max_value, min, min_value, prod, sum
from compassc.te.tensor import ComputeOp, Operation, PlaceholderOp, Tensor, TensorSlice

if TYPE_CHECKING:  # for editors and type checkers; at run time each is loaded at its first use
    from compassc.te import hybrid, ir_builder
    from compassc.te.bounds import infer_bounds
    from compassc.te.building import build, create_prim_func
    from compassc.te.external import call_extern, call_intrin, call_pure_extern
    from compassc.te.gradients import gradient
    from compassc.te.hybrid.op import HybridOp
    from compassc.te.kernels import TEKernel, kernel
    from compassc.te.lowering import lower, schedule_ops
    from compassc.te.opaque import (
        ExternOp,
        ScanOp,
        TensorIntrin,
        call_kernel,
        decl_tensor_intrin,
        extern,
        extern_primfunc,
        for_range,
        scan,
    )
    from compassc.te.packed import call_packed
    from compassc.te.schedule import Schedule, Stage, Trace, create_schedule
    from compassc.te.tensor_calls import TensorComputeOp

    InferBound, ScheduleOps = infer_bounds, schedule_ops

_HOMES = {
    "infer_bounds": "bounds",
    "build": "building",
    "create_prim_func": "building",
    "call_extern": "external",
    "call_intrin": "external",
    "call_pure_extern": "external",
    "gradient": "gradients",
    "HybridOp": "hybrid.op",
    "TEKernel": "kernels",
    "kernel": "kernels",
    "lower": "lowering",
    "schedule_ops": "lowering",
    "ExternOp": "opaque",
    "ScanOp": "opaque",
    "TensorIntrin": "opaque",
    "call_kernel": "opaque",
    "decl_tensor_intrin": "opaque",
    "extern": "opaque",
    "extern_primfunc": "opaque",
    "for_range": "opaque",
    "scan": "opaque",
    "call_packed": "packed",
    "Schedule": "schedule",
    "Stage": "schedule",
    "Trace": "schedule",
    "create_schedule": "schedule",
    "TensorComputeOp": "tensor_calls",
    "InferBound": "bounds",
    "ScheduleOps": "lowering",
}
"""Names that are loaded when they are asked for, by their modules: who only declares expressions schedules and lowers nothing."""
_MODULES = ("hybrid", "ir_builder")
_FIELD_NAMES = {"InferBound": "infer_bounds", "ScheduleOps": "schedule_ops"}
"""The steps of lowering under the names of the field: bounds of a normalised schedule, and its loop nest."""

__all__ = [
    "AXIS_SEPARATOR",
    "ComputeOp",
    "ExpressionError",
    "ExpressionTypeError",
    "ExternOp",
    "HybridOp",
    "InferBound",
    "IterVar",
    "LowerError",
    "Operation",
    "PlaceholderOp",
    "Range",
    "ScanOp",
    "Schedule",
    "ScheduleError",
    "ScheduleOps",
    "Select",
    "Stage",
    "TEKernel",
    "Tensor",
    "TensorComputeOp",
    "TensorIntrin",
    "TensorSlice",
    "Trace",
    "Var",
    "View",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "build",
    "call_extern",
    "call_intrin",
    "call_kernel",
    "call_packed",
    "call_pure_extern",
    "cast",
    "ceil",
    "ceildiv",
    "comm_reducer",
    "compute",
    "const",
    "cos",
    "cosh",
    "create_prim_func",
    "create_schedule",
    "decl_buffer",
    "decl_tensor_intrin",
    "div",
    "erf",
    "exp",
    "exp2",
    "extern",
    "extern_primfunc",
    "floor",
    "floordiv",
    "floormod",
    "fmod",
    "for_range",
    "gradient",
    "hybrid",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "infer_bounds",
    "infinity",
    "ir_builder",
    "isfinite",
    "isinf",
    "isnan",
    "kernel",
    "log",
    "log2",
    "log10",
    "logaddexp",
    "lower",
    "max",
    "max_value",
    "min",
    "min_value",
    "multiply",
    "nearbyint",
    "placeholder",
    "popcount",
    "power",
    "prod",
    "reduce_axis",
    "reinterpret",
    "round",
    "rsqrt",
    "scan",
    "schedule_ops",
    "sigmoid",
    "sin",
    "sinh",
    "size_var",
    "sqrt",
    "subtract",
    "sum",
    "tag_scope",
    "tan",
    "tanh",
    "thread_axis",
    "trunc",
    "truncdiv",
    "truncmod",
    "var",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), _FIELD_NAMES.get(name, name))
