"""c = a @ b.T with int8 inputs and int32 sums, in tiles: a is rows x depth, b is cols x depth, of any size."""

from compassc.dsl import script as S

ROWS, COLS, DEPTH = 32, 32, 128


@S.prim_func
def tile_matmul(
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
    for i, j in S.parallel_tiles(S.ceildiv(rows, ROWS), S.ceildiv(cols, COLS)):
        acc = S.tile_full((ROWS, COLS), 0, "int32")
        for k in S.pipelined(0, depth, DEPTH):
            ta = S.tile_load(a, (i * ROWS, k), (ROWS, DEPTH))
            tb = S.tile_load(b, (j * COLS, k), (COLS, DEPTH))
            acc = S.tile_dot(ta, tb, acc, transpose_b=True)
        S.tile_store(c, (i * ROWS, j * COLS), acc)
