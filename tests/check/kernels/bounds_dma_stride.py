"""The strides of a transfer go beyond the matrix."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(8, 32), zeros(128))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((128,), "int32", "lsram")
    if S.get_local_id() == 0:
        S.dma_copy(buf, a + 16, 16, src_stride=40, times=8)  # check-bounds: TEC 0 reads 'a[256:272]'
        S.dma_copy(b, a, 128)
