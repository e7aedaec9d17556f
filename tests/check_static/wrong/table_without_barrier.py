from compassc.dsl import script as S


@S.prim_func
def k(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global")):
    lut = S.alloc(256, "fp32", "shared")
    if S.get_local_id() == 0:
        S.dma_copy(lut, x, 256)
    base = S.get_local_id() * 64
    for i in range(8):
        S.vstore(S.vload(lut + base + i * 8), y + base + i * 8)  # expect: missing-barrier
