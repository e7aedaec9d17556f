from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i8", "global")):
    a[0] = 300
