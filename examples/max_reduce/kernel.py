"""out[0] = the largest of n integers: vectors first, then lanes, then TECs."""

from compassc.dsl import script as S

LANES = 8
TECS = 4
LOWEST = -(2**31)


@S.prim_func
def max_reduce(x: S.ptr("i32", "global"), out: S.ptr("i32", "global"), n: S.i32):
    partial = S.alloc(TECS, "i32", scope="shared")
    tec = S.get_local_id()

    best = S.i32x8(LOWEST)
    full = n // LANES
    for i in range(tec, full, S.get_local_size()):
        best = S.max(best, S.vload(x + i * LANES))

    rest = n % LANES
    if rest > 0:  # every TEC looks at the tail: the same element twice does not change a maximum
        mask = S.tail_mask(rest, LANES)
        best = S.max(best, S.vload(x + full * LANES, mask), mask=mask, r=best)

    partial[tec] = S.vrpmax(best)[0]
    S.barrier()
    if tec == 0:
        result = partial[0]
        for t in range(1, TECS):
            result = S.max(result, partial[t])
        out[0] = result
