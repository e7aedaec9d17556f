from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("fp32", "global"), b: S.ptr("fp16", "global")):
    S.vstore(S.vload(a), b)
