from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), u: S.u32):
    s = S.i32(0)
    for i in range(s, u):
        a[i] = 1
