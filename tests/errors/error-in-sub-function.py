from compassc.dsl import script as S


@S.prim_func
def inner(x: S.i32) -> S.i32:
    return x + missing


@S.prim_func
def g(x: S.i32) -> S.i32:
    return inner(x)


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    a[0] = g(n) + g(1)
