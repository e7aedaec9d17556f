from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    m = S.match_buffer(a, (4, 8))
    a[0:8] = m[0:8, 1]
