from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), f: S.ptr("fp32", "global")):
    v = S.cast(S.vload(a), "fp32", part="high")
    f[0:8] = v
