from compassc.dsl import script as S


@S.prim_func
def k(a: S.i32):
    a = = 1
