from compassc.dsl import script as S


@S.prim_func
def k(w: S.ptr("u32", "global")):
    w[0:8] = S.vsl(S.vload(w), 1, saturate=True)
