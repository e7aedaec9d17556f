from compassc.dsl import script as S

TILE = 512


@S.prim_func
def k(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global"), n: S.i32):
    ping = S.alloc(TILE, "fp32", "lsram")
    pong = S.alloc(TILE, "fp32", "lsram")
    e0, e1 = S.alloc_events(2)
    tid = S.get_local_id()
    tiles = n // TILE
    cur = tid
    if cur < tiles:
        S.async_dma_copy(ping, x + cur * TILE, TILE, event=e0)
    step = S.i32(0)
    while cur < tiles:
        nxt = cur + 4
        if step % 2 == 0:
            if nxt < tiles:
                S.async_dma_copy(pong, x + nxt * TILE, TILE, event=e1)
            S.wait_events(e0)
            for i in range(TILE // 8):
                p = ping + i * 8
                S.vstore(S.exp(S.vload(p)), p)
            S.dma_copy(y + cur * TILE, ping, TILE)
        else:
            if nxt < tiles:
                S.async_dma_copy(ping, x + nxt * TILE, TILE, event=e0)
            S.wait_events(e1)
            for i in range(TILE // 8):
                p = pong + i * 8
                S.vstore(S.exp(S.vload(p)), p)
            S.dma_copy(y + cur * TILE, pong, TILE)
        cur = nxt
        step = step + 1
    S.free_events(e0, e1)
