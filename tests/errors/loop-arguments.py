from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    for i in S.tec_range(0, n, 2, 3):
        a[i] = 1
