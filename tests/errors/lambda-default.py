from compassc.dsl import script as S


@S.prim_func
def k(f: S.ptr("fp32", "global"), n: S.i32):
    g = 1
    f[0] = g(n)
