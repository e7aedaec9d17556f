"""c = a @ b.T with int8 inputs and int32 sums: a is rows x depth, b is cols x depth (weights as layers keep them)."""

from compassc.dsl import script as S

LANES = 32
DEPTH = 8192  # largest depth: a row of a fits in a quarter of LSRAM


@S.prim_func
def dot(a: S.ptr("i8", "lsram"), b: S.ptr("i8", "global"), depth: S.i32) -> S.i32:
    acc = S.i32x8(0)
    full = depth // LANES * LANES
    for k in range(0, full, LANES):
        acc = S.vqdpa(acc, S.vload(a + k), S.vload(b + k))
    rest = depth % LANES
    if rest > 0:
        mask = S.tail_mask(rest, LANES)
        acc = S.vqdpa(acc, S.vload(a + full, mask), S.vload(b + full, mask), mask)
    return S.vrpadd(acc)[0]


@S.prim_func
def matmul_int8(
    x: S.ptr("i8", "global"),
    w: S.ptr("i8", "global"),
    y: S.ptr("i32", "global"),
    rows: S.i32,
    cols: S.i32,
    depth: S.i32,
):
    a = S.match_buffer(x, (rows, depth))
    b = S.match_buffer(w, (cols, depth))
    c = S.match_buffer(y, (rows, cols))
    row = S.alloc(DEPTH, "i8", scope="lsram")

    for i in S.pipelined(S.get_local_id(), rows, S.get_local_size()):
        S.dma_copy(row, a.addr_of((i, 0)), depth)  # used cols times, so it is worth bringing close
        for j in range(cols):
            c[i, j] = dot(row, b.addr_of((j, 0)), depth)
