from compassc.dsl import script as S


@S.prim_func
def find(p: S.ptr("i32", "lsram"), n: S.i32, what: S.i32) -> S.i32:
    for i in range(n):
        if p[i] == what:
            return i
    return -1


@S.prim_func
def sign(v: S.i32) -> S.i32:
    if v > 0:
        return 1
    elif v < 0:
        return -1
    else:
        return 0


@S.prim_func
def k(x: S.ptr("i32", "global"), y: S.ptr("i32", "global"), n: S.i32):
    if S.get_local_id() != 0:
        return
    t = S.alloc(256, "i32", "lsram")
    m = S.min(n, 256)
    S.dma_copy(t, x, m)
    y[0] = find(t, m, 42)
    y[1] = sign(y[0])
