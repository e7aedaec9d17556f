from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    for i in range(8):
        with S.block("fill"):
            vi = S.axis.spatial(8, i)
            a[vi] = n
