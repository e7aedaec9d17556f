"""Every row of x to mean 0 and variance 1, then scaled and shifted; cols is a multiple of 8, at most 4096."""

from compassc.dsl import script as S

LANES = 8
COLS = 4096


@S.prim_func
def layer_norm(
    x: S.ptr("fp32", "global"),
    w: S.ptr("fp32", "global"),
    b: S.ptr("fp32", "global"),
    y: S.ptr("fp32", "global"),
    rows: S.i32,
    cols: S.i32,
):
    row = S.alloc(COLS, "fp32", scope="lsram")
    for r in range(S.get_local_id(), rows, S.get_local_size()):
        S.dma_copy(row, x + r * cols, cols)
        total = S.fp32x8(0)
        for i in range(0, cols, LANES):
            total = total + S.vload(row + i)
        mean = S.vrpadd(total)[0] / S.fp32(cols)
        squares = S.fp32x8(0)
        for j in range(0, cols, LANES):
            d = S.vload(row + j) - mean
            squares = S.fma(squares, d, d)
        scale = 1.0 / S.sqrt(S.vrpadd(squares)[0] / S.fp32(cols) + 1e-5)
        for k in range(0, cols, LANES):
            S.vstore(S.fma(S.vload(b + k), (S.vload(row + k) - mean) * scale, S.vload(w + k)), row + k)
        S.dma_copy(y + r * cols, row, cols)
