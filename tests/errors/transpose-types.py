from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), f: S.ptr("fp32", "global")):
    t = S.alloc(64, "fp32", "lsram")
    S.dma_transpose2d(t, a, 8, 8)
    f[0] = t[0]
