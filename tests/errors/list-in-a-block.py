from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    t = (a[0], a[1])
    if n > 0:
        t = (a[2], a[3])
    a[0] = t[0]
