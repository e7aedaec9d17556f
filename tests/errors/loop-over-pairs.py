from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    for i, x in ((1, 2), (3, 4, 5)):
        a[i] = x
