from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), h: S.ptr("fp16", "global")):
    v = S.vload(a)
    g = S.vload(h)
    a[0:8] = v + g
