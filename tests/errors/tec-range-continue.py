from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    for i in S.tec_range(n):
        if a[i] == 0:
            continue
        a[i] = 1
