from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    p = nn
    q = p + 1
    r = a[1.5]
    a[0] = r
    if n > 0:
        a[1] = mm
