from compassc.dsl import script as S


@S.prim_func
def k(f: S.ptr("fp32", "global")):
    f[0:8] = S.vor(S.vload(f), S.vload(f))
