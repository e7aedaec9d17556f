from compassc.dsl import script as S


@S.prim_func
def k(c: S.ptr("i8", "global")):
    t = S.alloc(8, "i8", "lsram")
    S.dma_memset(t, 300, 8)
    c[0] = t[0]
