from compassc.dsl import script as S

W = 128


@S.prim_func
def k(x: S.ptr("i16", "global"), y: S.ptr("i16", "global"), rows: S.i32):
    line = S.alloc(W + 32, "i16", "lsram")
    out = S.alloc(W, "i16", "lsram")
    S.dma_memset(line, 0, W + 32)
    for r in S.tec_range(4):
        for row in range(r, rows, 4):
            S.dma_copy(line + 16, x + row * W, W)
            for c in range(0, W, 16):
                left = S.vload(line + 15 + c)
                mid = S.vload(line + 16 + c)
                right = S.vload(line + 17 + c)
                S.vstore(left + mid + right, out + c)
            S.dma_copy(y + row * W, out, W)
