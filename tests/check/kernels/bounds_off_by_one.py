"""A loop that goes one too far."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(32), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    tid = S.get_local_id()
    for i in range(9):
        if tid == 3:
            b[tid * 8 + i] = a[tid * 8 + i]  # check-bounds: 'a[32]' # check-bounds: 'b[32]'
