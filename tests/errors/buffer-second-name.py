from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    m = S.match_buffer(a, (4, 4))
    d = m
    d[0, 0] = n
