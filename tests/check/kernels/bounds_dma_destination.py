"""A transfer fills more than the LSRAM buffer has."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(128), zeros(128))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((64,), "int32", "lsram")
    if S.get_local_id() == 0:
        S.dma_copy(buf, a, 32, times=3)  # check-bounds: TEC 0 writes 'buf[64:96]'
        S.dma_copy(b, a, 128)
