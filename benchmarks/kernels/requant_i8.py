"""y = sat8(round(x / 2**shift) + zero), from sums of 32 bits; n is a multiple of 128."""

from compassc.dsl import script as S

LANES = 32


@S.prim_func
def requant_i8(x: S.ptr("i32", "global"), y: S.ptr("i8", "global"), n: S.i32, shift: S.i32, zero: S.i32):
    share = n // S.get_local_size()
    first = S.get_local_id() * share
    for i in range(first, first + share, LANES):
        value = S.vsr(S.vload(x + i, lanes=LANES), shift, with_round=True) + zero
        S.vstore(S.cast(value, "int8", saturate=True), y + i)
