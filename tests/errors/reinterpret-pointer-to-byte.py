from compassc.dsl import script as S


@S.prim_func
def k(c: S.ptr("i8", "global")):
    c[0] = S.reinterpret(c, "i8")
