"""Rows and columns of a transpose are given in the wrong order."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(8, 16), zeros(16, 8))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((128,), "int32", "lsram")
    if S.get_local_id() == 0:
        S.dma_transpose2d(buf, a, 16, 8, src_stride=16)  # check-bounds: TEC 0 reads 'a[128:136]'
        S.dma_copy(b, a, 128)
