from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    assert n > 0, "n must be positive"
    a[0] = n
