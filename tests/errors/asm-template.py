from compassc.dsl import script as S


@S.prim_func
def k(n: S.i32):
    S.asm(n)
