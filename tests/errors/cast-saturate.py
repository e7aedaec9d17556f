from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), f: S.ptr("fp32", "global")):
    f[0:8] = S.cast(S.vload(a), "fp32", saturate="yes")
