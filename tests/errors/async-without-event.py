from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    t = S.alloc(8, "i32", "lsram")
    S.async_dma_copy(t, a, 8)
    a[0] = t[0]
