"""Weights that are laid out once, when a program is built, as kernels of the host read them."""

from __future__ import annotations

from math import prod

import numpy as np

from compassc.operators.packed import COLUMNS, ROWS
from compassc.pass_manager.context import PassContext
from compassc.relay.builders import call
from compassc.relay.expr import Call, Constant, Expr, const
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.ops.linear import PANELS
from compassc.relay.passes._functions import rewrite_functions
from compassc.relay.types import TensorType, is_dynamic

LEVEL = 3
"""The level of contexts from which on weights are packed."""


def pack_weights(module: IRModule) -> IRModule:
    """The typed module with constant weights of `nn.dense` in panels (`nn.contrib_dense_pack`), where there are rows enough."""
    return rewrite_functions(module, _packed) if PassContext.current().opt_level >= LEVEL else module


def _packed(before: Expr, after: Expr) -> Expr:
    if op_name(after) != "nn.dense" or not isinstance(before, Call) or not isinstance(after, Call):
        return after
    data, weight = before.args[0].checked_type, after.args[1]
    if not isinstance(weight, Constant) or not isinstance(data, TensorType) or is_dynamic(data):
        return after
    units, depth = weight.array.shape
    if (
        after.attrs is None
        or units % COLUMNS
        or prod(data.concrete_shape[:-1]) < ROWS
        or weight.array.dtype.kind != "f"
    ):
        return after
    panels = const(np.ascontiguousarray(weight.array.reshape(-1, COLUMNS, depth).transpose(0, 2, 1)), weight.data.dtype)
    options = {"weight_layout": PANELS, "units": None, "out_dtype": after.attrs["out_dtype"]}
    return call("nn.contrib_dense_pack", after.args[0], panels, **options)
