from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), f: S.ptr("fp32", "global")):
    p = a + 1
    p = f + 1
    p[0] = 1
