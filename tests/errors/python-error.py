from compassc.dsl import script as S


LIMIT = 1 / 0


@S.prim_func
def k(a: S.i32):
    pass
