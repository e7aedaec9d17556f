"""y = 3x3 convolution of int8, stride 1, padded: x is h x w x 32, weights are 9 x 32 inputs x 32 outputs."""

from compassc.dsl import script as S

C = 32  # inputs, and outputs
WIDTH = 32


@S.prim_func
def tile_conv3x3(
    x: S.ptr("i8", "global"), weights: S.ptr("i8", "global"), y: S.ptr("i8", "global"), h: S.i32, w: S.i32, shift: S.i32
):
    src, dst = S.match_buffer(x, (h, w, C)), S.match_buffer(y, (h, w, C))
    flat = S.match_buffer(weights, (9 * C, C))
    kernel = S.tile_load(flat, (0, 0), (9 * C, C))
    for r, t in S.parallel_tiles(h, S.ceildiv(w, WIDTH), stages=2):
        acc = S.tile_full((WIDTH, C), 0, "int32")
        for dy in S.unroll(3):
            row = S.tile_load(src, (r + dy - 1, t * WIDTH - 1, 0), (WIDTH + 2, C))
            for dx in S.unroll(3):
                acc = S.tile_dot(row[dx : dx + WIDTH], kernel[(3 * dy + dx) * C : (3 * dy + dx + 1) * C], acc)
        S.tile_store(dst, (r, t * WIDTH, 0), S.cast(S.vsr(acc, shift, with_round=True), "int8", saturate=True))
