from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    t = S.meta_var(1)
    for i in range(n):
        a[i] = t
        t = S.meta_var(t + 1)
