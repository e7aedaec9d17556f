"""A memset counts bytes instead of elements."""

from check_data import zeros

from compassc.dsl import script as S

ARGUMENTS = (zeros(64),)


@S.prim_func
def wrong(b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((64,), "int32", "lsram")
    if S.get_local_id() == 0:
        S.dma_memset(buf, 0, 64 * 4)  # check-bounds: TEC 0 writes 'buf[0:256]'
        S.dma_copy(b, buf, 64)
