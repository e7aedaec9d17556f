"""y[r] = the mean of row r of halves, summed in float; cols is a multiple of 16."""

from compassc.dsl import script as S

LANES = 16


@S.prim_func
def row_mean(x: S.ptr("fp16", "global"), y: S.ptr("fp32", "global"), rows: S.i32, cols: S.i32):
    for r in range(S.get_local_id(), rows, S.get_local_size()):
        total = S.fp32x16(0)
        for i in range(0, cols, LANES):
            total = total + S.cast(S.vload(x + (r * cols + i)), "fp32")
        y[r] = S.vrpadd(total)[0] / S.fp32(cols)
