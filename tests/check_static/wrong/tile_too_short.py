from compassc.dsl import script as S


# tile has 64 elements, loop runs 9 vectors of 8
@S.prim_func
def k(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    tile = S.alloc(64, "i32", "lsram")
    S.dma_copy(tile, x, 64)
    for i in range(9):
        v = S.vload(tile + i * 8)  # expect: out-of-bounds
        S.vstore(v + 1, y + i * 8)
