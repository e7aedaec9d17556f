from compassc.dsl import script as S


@S.prim_func
def g(x: S.ptr("i32", "global")) -> S.i32:
    return x


@S.prim_func
def k(a: S.ptr("i32", "global")):
    a[0] = g(a)
