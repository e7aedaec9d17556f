"""A transfer reads more than the tensor has."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(100), zeros(128))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((128,), "int32", "lsram")
    if S.get_local_id() == 0:
        S.dma_copy(buf, a, 128)  # check-bounds: TEC 0 reads 'a[0:128]'
        S.dma_copy(b, a, 100)
        S.dma_copy(b + 100, a, 28)
