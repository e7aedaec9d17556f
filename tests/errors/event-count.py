from compassc.dsl import script as S


@S.prim_func
def k(n: S.i32):
    e = S.alloc_events(n)
    S.wait_events(e)
