"""A decision by an element that was never set."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(8), zeros(8))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    flags = S.alloc_buffer((8,), "int32", "lsram")
    if S.get_local_id() == 0:
        for i in range(4):
            flags[i] = a[i]
        for i in range(8):
            if flags[i] > 2:  # check-uninit: decides or computes an address by a value that was never set
                b[i] = 1
