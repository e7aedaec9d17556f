from compassc.dsl import script as S


@S.prim_func
def k(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    t = S.alloc(64, "i32", "lsram")
    a, b = S.alloc_events(2)  # expect: event-not-freed
    S.async_dma_copy(t, x, 32, event=a)
    S.async_dma_copy(t + 32, x + 32, 32, event=b)
    S.wait_events(a, b)
    S.free_events(a)
    S.vstore(S.vload(t), y)
