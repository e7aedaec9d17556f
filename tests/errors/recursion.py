from compassc.dsl import script as S


@S.prim_func
def g(n: S.i32) -> S.i32:
    return g(n)


@S.prim_func
def k(a: S.ptr("i32", "global")):
    a[0] = g(1)
