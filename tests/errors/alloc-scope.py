from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    t = S.alloc(8, "i32", "global")
    a[0] = t[0]
