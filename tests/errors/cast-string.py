from compassc.dsl import script as S


@S.prim_func
def k(f: S.ptr("fp32", "global")):
    f[0] = S.fp32("infinity")
