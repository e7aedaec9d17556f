from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), f: S.ptr("fp32", "global")):
    v = S.vload(a)
    a[0:8] = S.vtbl((v, v), S.vload(f))
