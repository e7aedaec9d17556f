"""An index that was never set."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(8), zeros(8))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    order = S.alloc_buffer((8,), "int32", "lsram")
    if S.get_local_id() == 0:
        for i in range(7):
            order[i] = 6 - i
        for i in range(8):
            b[i] = a[order[i] & 7]  # check-uninit: decides or computes an address
