"""Layer norm of rows of halves, by hand: three passes over a row in LSRAM."""

from compassc.dsl import script as S

LANES = 16
COLS = 512


@S.prim_func
def norm_row(
    row: S.ptr("fp16", "lsram"),
    wide: S.ptr("fp32", "lsram"),
    s: S.ptr("fp32", "lsram"),
    b: S.ptr("fp32", "lsram"),
    n: S.i32,
    eps: S.fp32,
):
    last = (n - 1) // LANES * LANES
    total = S.fp32x16(0)
    for i in range(0, last, LANES):
        v = S.cast(S.vload(row + i), "fp32")
        S.vstore(v, wide + i)
        total = total + v
    mask = S.tail_mask(n - last, LANES)
    v = S.cast(S.vload(row + last, mask), "fp32")
    S.vstore(v, wide + last)
    total = total + v
    mean = S.vrpadd(total)[0] / S.fp32(n)
    square = S.fp32x16(0)
    for i in range(0, last, LANES):
        d = S.vload(wide + i, lanes=16) - mean
        S.vstore(d, wide + i)
        square = square + d * d
    d = S.vsel(S.vload(wide + last, lanes=16) - mean, 0.0, mask)
    S.vstore(d, wide + last)
    square = square + d * d
    scale = S.rsqrt(S.vrpadd(square)[0] / S.fp32(n) + eps)
    for i in range(0, n, LANES):
        r = S.vload(wide + i, lanes=16) * scale * S.vload(s + i, lanes=16) + S.vload(b + i, lanes=16)
        S.vstore(S.cast(r, "fp16"), row + i)


@S.prim_func
def layer_norm(
    x: S.ptr("fp16", "global"),
    sc: S.ptr("fp32", "global"),
    sh: S.ptr("fp32", "global"),
    y: S.ptr("fp16", "global"),
    rows: S.i32,
    cols: S.i32,
    eps: S.fp32,
):
    src, dst = S.match_buffer(x, (rows, cols)), S.match_buffer(y, (rows, cols))
    row = S.alloc(COLS, "fp16", "lsram")
    wide = S.alloc(COLS, "fp32", "lsram")
    s = S.alloc(COLS, "fp32", "lsram")
    b = S.alloc(COLS, "fp32", "lsram")
    S.dma_copy(s, sc, cols)
    S.dma_copy(b, sh, cols)
    for r in range(S.get_local_id(), rows, S.get_local_size()):
        S.dma_copy(row, src.addr_of((r, 0)), cols)
        norm_row(row, wide, s, b, cols, eps)
        S.dma_copy(dst.addr_of((r, 0)), row, cols)
