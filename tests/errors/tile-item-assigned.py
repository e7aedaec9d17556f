from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), n: S.i32):
    x = S.match_buffer(a, (4, 8))
    t = S.tile_load(x, (0, 0), (4, 8))
    t[1:2, :] = 3
