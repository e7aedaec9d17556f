"""An LSRAM buffer is smaller than what is put in."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(64), zeros(64))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((48,), "int32", "lsram")
    if S.get_local_id() == 0:
        for i in range(64):
            buf[i] = a[i]  # check-bounds: TEC 0 writes 'buf[48]'
        S.dma_copy(b, buf, 48)
