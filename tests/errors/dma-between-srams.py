from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    s = S.alloc(8, "i32", "lsram")
    t = S.alloc(8, "i32", "shared")
    S.dma_copy(s, a, 8)
    S.dma_copy(t, s, 8)
    a[0] = n
