from compassc.dsl import script as S


@S.prim_func
def half(x: S.i32) -> S.i32:
    return x // 2


@S.prim_func
def kernel(a: S.ptr("i32", "global"), local: S.i32):
    a[0] = half(local)
