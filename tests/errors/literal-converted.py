from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    a[0] = S.i32(3000000000)
