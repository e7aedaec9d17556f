from compassc.dsl import script as S


@S.prim_func
def k(p: S.ptr("void", "global")):
    m = S.match_buffer(p, (4,))
    m[0] = 1
