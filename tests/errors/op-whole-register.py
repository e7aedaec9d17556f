from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    v = a[0:5]
    a[0:5] = S.vaddh(v, v)
