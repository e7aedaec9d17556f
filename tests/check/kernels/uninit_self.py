"""A running sum that starts with itself."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(8), zeros(8))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    sums = S.alloc_buffer((8,), "int32", "shared")
    if S.get_local_id() == 0:
        for i in range(1, 8):
            sums[i] = sums[i - 1] + a[i]
        S.dma_copy(b, sums, 8)  # check-uninit: TEC 0 stores a value that was never set: 'b[0]'
