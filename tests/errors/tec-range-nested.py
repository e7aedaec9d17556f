from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    for i in S.tec_range(n):
        for j in S.tec_range(8):
            a[j] = i
