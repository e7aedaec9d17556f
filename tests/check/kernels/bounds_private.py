"""A private array with an index from the data."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(16), zeros(16))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    count = S.alloc_buffer((10,), "int32")
    if S.get_local_id() == 0:
        for i in range(10):
            count[i] = 0
        for i in range(16):
            count[a[i]] = i  # check-bounds: TEC 0 writes 'count[10]'
        for i in range(10):
            b[i] = count[i]
