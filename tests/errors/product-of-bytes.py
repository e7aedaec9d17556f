from compassc.dsl import script as S


@S.prim_func
def k(c: S.ptr("i8", "global")):
    v = S.vload(c)
    c[0:32] = v * v
