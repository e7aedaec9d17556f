from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    names = (1, 2, 3)
    for i in S.unroll(2, 5):
        a[i] = names[i]
