"""A kernel with constants to choose, one of which makes it wrong and one infeasible."""

from compassc.dsl import script as S


@S.autotune(space={"TILE": [8, 32, 64, 7, 1 << 20], "SPOILT": [0, 1]}, key=["n"], sizes=[{"n": 256}])
def twofold(TILE, SPOILT):
    if TILE % 8:
        raise ValueError(f"a tile of {TILE} is no whole number of vectors")

    @S.prim_func
    def twofold(x: S.ptr("i32", "global"), y: S.ptr("i32", "global"), n: S.i32):
        tile = S.alloc(TILE, "i32", scope="lsram")
        for i in range(S.get_local_id() * TILE, n, S.get_local_size() * TILE):
            size = S.min(TILE, n - i)
            S.dma_copy(tile, x + i, size)
            for j in range(0, TILE, 8):
                tile[j : j + 8] = tile[j : j + 8] * 2 + SPOILT
            S.dma_copy(y + i, tile, size)

    return twofold
