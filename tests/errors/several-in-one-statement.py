from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    a[offset] = S.vload(n) + n.size
    x = S.vadd(vector, a, mask=n.mask)
    y = x + offset
    a[0] = y
