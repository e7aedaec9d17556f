from compassc.dsl import script as S

SCALED = False


def finish(total, count):
    return total / count if SCALED else total


@S.prim_func
def k(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global"), n: S.i32):
    if S.get_local_id() == 0:
        mean = S.fp32(0)
        if SCALED:
            mean = x[0]
        count = S.fp32(n)
        total = S.fp32(0)
        for i in range(n):
            v = x[i]
            if SCALED:
                v = v - mean
            total += v
        y[0] = finish(total, count)
