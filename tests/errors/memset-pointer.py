from compassc.dsl import script as S


@S.prim_func
def k(n: S.i32):
    S.dma_memset(n, 0, 8)
