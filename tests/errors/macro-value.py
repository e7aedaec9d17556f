from compassc.dsl import script as S


@S.macro
def twice(x):
    return x + x


@S.prim_func
def k(a: S.ptr("i32", "global")):
    a[0] = twice(a[0])
