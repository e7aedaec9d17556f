from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    p = a + 1
    m = S.match_buffer(p, (4,))
    m[0] = n
