"""Softmax of every row of a rows x cols matrix of halves, in tiles, computed in float."""

from compassc.dsl import script as S

ROWS, COLS = 2, 1024  # COLS is the largest number of columns


@S.prim_func
def tile_softmax(x: S.ptr("fp16", "global"), y: S.ptr("fp16", "global"), rows: S.i32, cols: S.i32):
    src = S.match_buffer(x, (rows, cols))
    dst = S.match_buffer(y, (rows, cols))
    for t in S.parallel_tiles(S.ceildiv(rows, ROWS), stages=2):
        v = S.tile_load(src, (t * ROWS, 0), (ROWS, COLS), fill=float("-inf"))
        e = S.exp(S.cast(v, "fp32") - S.cast(S.tile_max(v), "fp32"))
        S.tile_store(dst, (t * ROWS, 0), S.cast(e * (1.0 / S.tile_sum(e)), "fp16"))
