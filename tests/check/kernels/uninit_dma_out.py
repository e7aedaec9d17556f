"""A buffer is copied out before the transfer in has been waited for by a mask that is too short."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(32), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((32,), "int32", "lsram")
    if S.get_local_id() == 0:
        for i in range(4):
            S.vstore(S.vload(a + i * 8), buf.addr_of(i * 8), mask=S.tail_mask(6, 8))
        S.dma_copy(b, buf, 32)  # check-uninit: 'b[6]'
