from compassc.dsl import script as S


@S.prim_func
def k(x: S.ptr("i32", "global"), y: S.ptr("i32", "global"), n: S.i32):
    t = S.alloc(256, "i32", "lsram")
    for i in range(n):
        ev = S.alloc_events(1)  # expect: event-not-freed
        S.async_dma_copy(t, x + i * 256, 256, event=ev)
        S.wait_events(ev)
        S.vstore(S.vload(t), y + i * 8)
