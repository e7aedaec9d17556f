"""Softmax of every row of a rows x cols matrix of halves, computed in float."""

from compassc.dsl import script as S

LANES = 16
COLS = 4096  # largest number of columns: 8 KiB of halves and 16 KiB of floats in LSRAM


@S.prim_func
def row_max(row: S.ptr("fp16", "lsram"), n: S.i32) -> S.fp32:
    best = S.vload(row)
    for i in range(LANES, n, LANES):
        best = S.max(best, S.vload(row + i))
    return S.fp32(S.vrpmax(best)[0])


@S.prim_func
def exponentials(e: S.ptr("fp32", "lsram"), row: S.ptr("fp16", "lsram"), n: S.i32, top: S.fp32) -> S.fp32:
    """e = exp(row - top), the result is their sum."""
    total = S.fp32x16(0)
    for i in range(0, n, LANES):
        v = S.exp(S.cast(S.vload(row + i), "fp32") - top)
        S.vstore(v, e + i)
        total = total + v
    return S.vrpadd(total)[0]


@S.prim_func
def softmax(x: S.ptr("fp16", "global"), y: S.ptr("fp16", "global"), rows: S.i32, cols: S.i32):
    src = S.match_buffer(x, (rows, cols))
    dst = S.match_buffer(y, (rows, cols))
    row = S.alloc(COLS, "fp16", scope="lsram")
    e = S.alloc(COLS, "fp32", scope="lsram")

    last = (cols - 1) // LANES * LANES
    beyond = ~S.tail_mask(cols - last, LANES)
    for r in S.pipelined(S.get_local_id(), rows, S.get_local_size()):
        S.dma_copy(row, src.addr_of((r, 0)), cols)
        # Lanes after the row become -inf: they never win the maximum and add nothing to the sum.
        S.vstore(S.fp16x16("-inf"), row + last, beyond)
        scale = 1.0 / exponentials(e, row, cols, row_max(row, cols))
        for i in range(0, cols, LANES):
            S.vstore(S.cast(S.vload(e + i, lanes=LANES) * scale, "fp16"), row + i)
        S.dma_copy(dst.addr_of((r, 0)), row, cols)
