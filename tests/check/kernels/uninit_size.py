"""The size of a transfer comes from an element that was never set."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(8), zeros(8))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    sizes = S.alloc_buffer((4,), "int32", "lsram")
    if S.get_local_id() == 0:
        for i in range(3):
            sizes[i] = 2 * i
        for i in range(4):
            S.dma_copy(b, a, sizes[i] & 7)  # check-uninit: TEC 0 decides or computes an address by a value
