from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    v = S.vload(a)
    a[0:4] = v[0:4]
