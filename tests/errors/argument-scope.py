from compassc.dsl import script as S


@S.prim_func
def g(x: S.ptr("i32", "lsram")):
    x[0] = 1


@S.prim_func
def k(a: S.ptr("i32", "global")):
    g(a)
