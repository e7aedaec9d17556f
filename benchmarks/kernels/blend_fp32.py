"""y = a + t * (b - a); n is a multiple of 32."""

from compassc.dsl import script as S


@S.prim_func
def blend_fp32(
    a: S.ptr("fp32", "global"),
    b: S.ptr("fp32", "global"),
    t: S.ptr("fp32", "global"),
    y: S.ptr("fp32", "global"),
    n: S.i32,
):
    share = n // S.get_local_size()
    first = S.get_local_id() * share
    for i in range(first, first + share, 8):
        va = S.vload(a + i)
        S.vstore(S.fma(va, S.vload(t + i), S.vload(b + i) - va), y + i)
