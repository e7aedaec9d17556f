from compassc.dsl import script as S


@S.prim_func
def k(h: S.ptr("fp16", "global")):
    v = S.vload(h)
    h[0:16] = v / v
