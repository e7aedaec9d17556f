"""c = a + b; n is a multiple of 32."""

from compassc.dsl import script as S


@S.prim_func
def add_i32(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), c: S.ptr("i32", "global"), n: S.i32):
    share = n // S.get_local_size()
    first = S.get_local_id() * share
    for i in range(first, first + share, 8):
        S.vstore(S.vload(a + i) + S.vload(b + i), c + i)
