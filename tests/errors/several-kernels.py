from compassc.dsl import script as S


@S.prim_func
def f(a: S.ptr("i32", "global")):
    a[0] = 1


@S.prim_func
def g(a: S.ptr("i32", "global")):
    a[0] = 2
