"""Refuse constants that take 64 bits to write: the dialect of C computes with such numbers, but has no constants of them.

Before: any module. After: the same; LowerError for such a constant in the entry.
"""

from __future__ import annotations

import math

from compassc.ir.dtypes import INT32
from compassc.ir.exprs import FloatImm, IntImm
from compassc.ir.operators import is_float32
from compassc.ir.stmts import IRModule
from compassc.ir.visit import all_exprs
from compassc.te.errors import LowerError

NAME = "VerifyConstants"
_LOW, _HIGH = INT32.integer_range()


def run(module: IRModule) -> IRModule:
    for e in all_exprs(module.entry_func.body):
        if isinstance(e, FloatImm) and e.dtype.bits > 32 and math.isfinite(e.value) and not is_float32(e.value):
            raise LowerError(
                f"C for NPUs cannot write the constant {e.value} of type {e.dtype}",
                "a number that float32 has is possible",
            )
        if isinstance(e, IntImm) and e.dtype.bits > 32 and not _LOW <= e.value <= _HIGH:
            raise LowerError(
                f"the constant {e.value} has more than 32 bits, which C for NPUs cannot write",
                "compute it of smaller ones, at run time, or with int32 alone",
            )
    return module
