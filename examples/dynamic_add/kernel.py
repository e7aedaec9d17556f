"""c = a + b on any number of halves: tiles in LSRAM, and a mask for what does not fill a vector."""

from compassc.dsl import script as S

LANES = 16
TILE = 2048  # elements: a has room for three tiles, b for two, 20 KiB of the 32 KiB LSRAM


@S.prim_func
def add_tile(x: S.ptr("fp16", "lsram"), y: S.ptr("fp16", "lsram"), n: S.i32):
    """x += y on n elements."""
    full = n // LANES
    for i in range(full):
        p = x + i * LANES
        S.vstore(S.vadd(S.vload(p), S.vload(y + i * LANES)), p)

    rest = n % LANES
    if rest > 0:
        mask = S.tail_mask(rest, LANES)
        q = x + full * LANES
        S.vstore(S.vadd(S.vload(q, mask), S.vload(y + full * LANES, mask)), q, mask)


@S.prim_func
def dynamic_add(
    a: S.ptr("fp16", "global"),
    b: S.ptr("fp16", "global"),
    c: S.ptr("fp16", "global"),
    n: S.i32,
):
    la = S.alloc(TILE, "fp16", scope="lsram")
    lb = S.alloc(TILE, "fp16", scope="lsram")

    # Shares are whole vectors, so that only the last one has a tail. A TEC without work has a negative `left`.
    share = S.ceildiv(S.ceildiv(n, LANES), S.get_local_size()) * LANES
    first = S.get_local_id() * share
    left = S.min(share, n - first)
    # Tiles are copied while others are added: S.pipelined makes the buffers, events and waits for it.
    for done in S.pipelined(0, left, TILE):
        now = S.min(left - done, TILE)
        S.dma_copy(la, a + first + done, now)
        S.dma_copy(lb, b + first + done, now)
        add_tile(la, lb, now)
        S.dma_copy(c + first + done, la, now)
