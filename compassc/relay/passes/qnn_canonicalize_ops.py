"""Lower quantised operators to plain ones, to the bit.

Before: a typed module.
After: no quantised operator that has a lowering (FTVMQnnCanonicalize); scales that factors are made of must be constants.
"""

from __future__ import annotations

from compassc.relay.module import IRModule
from compassc.relay.passes import legalize

NAME = "QnnCanonicalizeOps"
LEVEL = 0
REQUIRED = ("InferType",)


def run(module: IRModule) -> IRModule:
    return legalize.run(module, "FTVMQnnCanonicalize")
