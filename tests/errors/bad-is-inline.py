from compassc.dsl import script as S


@S.prim_func(is_inline="yes")
def k(a: S.i32):
    pass
