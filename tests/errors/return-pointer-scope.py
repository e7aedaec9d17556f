from compassc.dsl import script as S


@S.prim_func
def g(x: S.ptr("i32", "global")) -> S.ptr("i32", "lsram"):
    return x


@S.prim_func
def k(a: S.ptr("i32", "global")):
    p = g(a)
    p[0] = 1
