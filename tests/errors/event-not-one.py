from compassc.dsl import script as S


@S.prim_func
def k(n: S.i32):
    S.wait_events(n * 1.0)
