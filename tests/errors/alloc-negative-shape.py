from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    t = S.alloc(0, "i32", "lsram")
    a[0] = t[0]
