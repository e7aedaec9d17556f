from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    p = a * 2
    p[0] = 1
