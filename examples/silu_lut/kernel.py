"""SiLU, x / (1 + exp(-x)), on n halves: linear interpolation in a table that is computed while compiling."""

import numpy as np

from compassc.dsl import script as S

LANES = 16
LOW, HIGH = -8.0, 8.0
STEPS = 512
SCALE = STEPS / (HIGH - LOW)


def silu(x):
    return x / (1 + np.exp(-x))


TABLE = silu(np.linspace(LOW, HIGH, STEPS + 1)).astype("float16")


@S.prim_func
def silu_lut(x: S.ptr("fp16", "global"), y: S.ptr("fp16", "global"), n: S.i32):
    table = S.alloc_const((STEPS + 1,), "float16", TABLE)

    share = S.ceildiv(S.ceildiv(n, LANES), S.get_local_size()) * LANES
    first = S.get_local_id() * share
    for at in range(first, S.min(first + share, n), LANES):
        mask = S.tail_mask(S.min(n - at, LANES), LANES)
        v = S.cast(S.vload(x + at, mask), "fp32")

        # Integer part of the position: which step of the table; fraction: how far into it.
        position = (S.clip(v, LOW, HIGH) - LOW) * SCALE
        step = S.min(S.cast(position, "int32"), STEPS - 1)
        fraction = position - S.cast(step, "fp32")
        index = S.cast(step, "int16")
        left = S.cast(S.vload_gather(table, index), "fp32")
        right = S.cast(S.vload_gather(table, index + 1), "fp32")
        inside = left + fraction * (right - left)

        # Outside the table SiLU is x or 0, as far as halves can tell.
        result = v if v > HIGH else 0.0 if v < LOW else inside
        S.vstore(S.cast(result, "fp16"), y + at, mask)
