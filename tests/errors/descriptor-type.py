from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("fp32", "global"), b: S.ptr("fp32", "global"), c: S.ptr("fp32", "global")):
    S.aiff(a, b, c)
