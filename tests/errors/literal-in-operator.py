from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    S.vstore(S.vload(a) + 5000000000, a)
