from compassc.dsl import script as S


@S.prim_func
def k(b: S.ptr("bf16", "global")):
    b[0] = S.exp(b[0])
