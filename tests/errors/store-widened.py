from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i8", "global")):
    S.vstore(S.vload(a) + 300, a)
