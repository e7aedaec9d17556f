from compassc.dsl import script as S


@S.prim_func
def k(x: S.ptr("i8", "global"), y: S.ptr("i8", "global")):
    m = S.match_buffer(x, (4, 32))
    o = S.match_buffer(y, (32, 4))
    for i, j in S.grid(4, 32):
        o[i, j] = m[i, j]  # expect: out-of-bounds
