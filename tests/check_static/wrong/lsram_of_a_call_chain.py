from compassc.dsl import script as S


@S.prim_func
def work(x: S.ptr("i32", "global"), n: S.i32) -> S.i32:
    t = S.alloc(6000, "i32", "lsram")  # expect: over-allocation
    S.dma_copy(t, x, n)
    return t[0]


@S.prim_func
def k(x: S.ptr("i32", "global"), y: S.ptr("i32", "global"), n: S.i32):
    u = S.alloc(4000, "i32", "lsram")
    S.dma_copy(u, x, n)
    y[0] = work(x, n) + u[0]
