from compassc.dsl import script as S


V = S.vadd(1, 2)


@S.prim_func
def k(a: S.i32):
    pass
