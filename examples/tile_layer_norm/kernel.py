"""Layer norm of every row of a rows x cols matrix of halves: (x - mean) / sqrt(variance + eps) * scale + shift."""

from compassc.dsl import script as S

ROWS, COLS = 2, 512  # COLS is the largest number of columns


@S.prim_func
def tile_layer_norm(
    x: S.ptr("fp16", "global"),
    scale: S.ptr("fp32", "global"),
    shift: S.ptr("fp32", "global"),
    y: S.ptr("fp16", "global"),
    rows: S.i32,
    cols: S.i32,
    eps: S.fp32,
):
    src, dst = S.match_buffer(x, (rows, cols)), S.match_buffer(y, (rows, cols))
    s, b = S.match_buffer(scale, (cols,)), S.match_buffer(shift, (cols,))
    gain, bias = S.tile_load(s, 0, COLS), S.tile_load(b, 0, COLS)
    one = 1.0 / S.fp32(cols)
    exists = S.tile_where(S.tile_index(COLS) < cols, S.tile_full(COLS, 1, "fp32"), 0.0)
    for t in S.parallel_tiles(S.ceildiv(rows, ROWS), stages=2):
        v = S.tile_load(src, (t * ROWS, 0), (ROWS, COLS))
        wide = S.cast(v, "fp32")
        centred = (wide - S.tile_sum(wide) * one) * exists
        variance = S.tile_sum(centred * centred) * one
        S.tile_store(dst, (t * ROWS, 0), S.cast(centred * S.rsqrt(variance + eps) * gain + bias, "fp16"))
