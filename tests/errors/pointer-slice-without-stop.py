from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    p = a[1:]
    a[0:8] = p
