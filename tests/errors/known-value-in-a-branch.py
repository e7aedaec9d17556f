from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    t = S.meta_var(1)
    if n > 0:
        t = S.meta_var(2)
    else:
        a[1] = t
    a[0] = t
