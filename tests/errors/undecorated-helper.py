from compassc.dsl import script as S


def g(x: S.i32):
    return x


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    a[0] = g(n)
