from compassc.dsl import script as S


@S.prim_func
def k(x: S.ptr("fp16", "global"), y: S.ptr("fp16", "global"), n: S.i32):
    w = S.alloc(1024, "fp16", "shared")
    tid = S.get_local_id()
    for step in range(n):
        if tid == 0:
            S.dma_copy(w, x + step * 1024, 1024)
        S.barrier()
        for i in range(16):
            q = tid * 256 + i * 16
            S.vstore(S.vload(w + q), y + step * 1024 + q)
        S.barrier()
