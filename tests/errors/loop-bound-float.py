from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), x: S.fp32):
    for i in range(x):
        a[i] = 1
