from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    p: S.i32 = 3
    a[0] = p
