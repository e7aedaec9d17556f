from compassc.dsl import script as S


@S.prim_func
def g(p: S.ptr("i32", "global")):
    k(p, 1)


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    a[0] = n
    g(a)
