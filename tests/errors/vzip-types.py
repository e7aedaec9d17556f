from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), f: S.ptr("fp32", "global")):
    a[0:8] = S.vzip(S.vload(a), S.vload(f), "low")
