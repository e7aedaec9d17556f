from compassc.dsl import script as S


@S.prim_func
def g(x: S.i32) -> S.i32:
    if x > 0:
        return
    return x


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    a[0] = g(n)
