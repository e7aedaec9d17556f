from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32, x: S.fp32):
    def g(x):
        return x
    a[0] = g(n)
