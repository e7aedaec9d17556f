from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), n: S.i32):
    x, y = S.match_buffer(a, (4, 8)), S.match_buffer(b, (4, 8))
    S.tile_store(S.tile_load(x, (0, 0), (4, 8)), y, (0, 0))
