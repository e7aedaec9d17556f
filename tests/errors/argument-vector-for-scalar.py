from compassc.dsl import script as S


@S.prim_func
def g(x: S.i32, y: S.i32 = 3) -> S.i32:
    return x + y


@S.prim_func
def k(a: S.ptr("i32", "global")):
    a[0] = g(S.vload(a))
