from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    m = S.isnan(S.vload(a))
    a[0:8] = S.vsel(1, S.vload(a), mask=m)
