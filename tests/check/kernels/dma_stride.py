"""The stride of the destination is less than a row."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(64), zeros(64))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        S.dma_copy(b, a, 16, src_stride=16, times=4, dst_stride=8)  # check-dma: the stride is less than a row
