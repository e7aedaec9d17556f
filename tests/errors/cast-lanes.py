from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), h: S.ptr("fp16", "global")):
    h[0:8] = S.cast(S.vload(a), "fp16x16")
