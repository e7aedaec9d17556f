from compassc.dsl import script as S


@S.prim_func
def k(n: S.i32):
    p = (n + 1).addr
    p[0] = 1
