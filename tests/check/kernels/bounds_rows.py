"""Rows and columns of a matrix are mixed up."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(4, 16), zeros(4, 16))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    x = S.match_buffer(a, (4, 16))
    y = S.match_buffer(b, (4, 16))
    if S.get_local_id() == 0:
        for i in range(16):
            for j in range(4):
                y[j, i] = x[i, j]  # check-bounds: TEC 0 reads 'x[64]'
