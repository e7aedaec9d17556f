from compassc.dsl import script as S


@S.prim_func
def k(n: S.i32):
    p = (n > 0)
    q = p.addr
    q[0] = 1
