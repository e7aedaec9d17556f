"""Write functions of bytes as tables, and let quantised operators say what is called instead of them on a target.

Before: a typed module.
After: of each quantised call what is registered under FTVMQnnLegalize; quantised functions (`qnn.tanh`, ...) with constant
scales and zero points are tables of 256 values.
"""

from __future__ import annotations

from compassc.relay.module import IRModule
from compassc.relay.passes import legalize

NAME = "QnnLegalize"
LEVEL = 0
REQUIRED = ("InferType",)


def run(module: IRModule) -> IRModule:
    return legalize.run(module, "FTVMQnnLegalize")
