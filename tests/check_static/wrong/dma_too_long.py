from compassc.dsl import script as S

N = 1000


@S.prim_func
def k(x: S.ptr("fp16", "global"), y: S.ptr("fp16", "global")):
    buf = S.alloc_buffer((N,), "fp16", "lsram")
    S.dma_copy(buf, x, N + 24)  # expect: out-of-bounds
    for i in range(N // 16):
        S.vstore(S.vload(buf.addr_of(i * 16)), y + i * 16)
