from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    p = a + 1
    p = n
    a[0] = p
