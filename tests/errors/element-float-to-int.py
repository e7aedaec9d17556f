from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    v = S.vload(a)
    v[0] = 1.5
    a[0:8] = v
