from compassc.dsl import script as S


@S.prim_func
def k(x: S.ptr("i8", "global"), y: S.ptr("i8", "global")):
    scratch = S.alloc_buffer((4, 256), "i8", "shared")
    for t in S.tec_range(4):
        S.dma_copy(scratch.addr_of((t, 0)), x + t * 256, 256)
        for i in range(8):
            p = scratch.addr_of((t, i * 32))
            S.vstore(S.vload(p) & 15, y + t * 256 + i * 32)
