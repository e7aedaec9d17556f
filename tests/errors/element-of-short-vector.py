from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    v = a[0:4]
    a[0] = v[0]
