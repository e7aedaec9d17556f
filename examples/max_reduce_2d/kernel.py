"""out[r] = the largest of row r, for a matrix of rows x cols floats."""

from compassc.dsl import script as S

LANES = 8


@S.prim_func
def max_reduce_2d(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global"), rows: S.i32, cols: S.i32):
    src = S.match_buffer(x, (rows, cols))
    out = S.match_buffer(y, (rows,))

    full = cols // LANES * LANES
    rest = cols % LANES
    mask = S.tail_mask(rest, LANES)
    for r in range(S.get_local_id(), rows, S.get_local_size()):
        best = S.fp32x8("-inf")
        for c in range(0, full, LANES):
            best = S.max(best, src[r, c : c + LANES])
        if rest > 0:
            tail = S.vload(src.addr_of((r, full)), mask)
            best = S.max(best, tail, mask=mask, r=best)
        out[r] = S.vrpmax(best)[0]
