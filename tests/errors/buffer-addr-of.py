from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    m = S.match_buffer(a, (4, 4))
    p = m.addr_of((0, 0, 0))
    p[0] = 1
