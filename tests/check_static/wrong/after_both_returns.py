from compassc.dsl import script as S


@S.prim_func
def clampy(v: S.i32, hi: S.i32) -> S.i32:
    if v > hi:
        return hi
    else:
        return v
    v = v + 1  # expect: unreachable
    return v


@S.prim_func
def k(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    y[0] = clampy(x[0], 7)
