from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    p = nn
    q = p + 1
    r = a[1.5]
    a[0] = r
    if n > 0:
        a[1] = mm
    s = S.vbcast(0)
    s = S.i32x8(1)
    S.vstore(s, a)
    a[2] = s
