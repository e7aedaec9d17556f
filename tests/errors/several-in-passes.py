from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    for i in S.tec_range(n):
        for j in S.tec_range(8):
            a[i] = 4
    for i in S.unroll(n):
        a[i] = 4
    for i in S.vectorized(n):
        a[i] = 4
    for i in S.unroll(n + 1):
        a[i] = 4
