from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32, u: S.u32):
    if n < u:
        a[0] = 1
